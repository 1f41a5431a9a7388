"""One table: this server, the SDK's floor and the servers that people use, doing the same jobs for one raw client.

    .venv/bin/python benchmarks/peers.py [--peers DIR] [--only NAME …] [--quick]

Peers are only compared if they are there: `--install` says how each gets into DIR. A call that is refused, or hasn't
its effect, is counted under `bad` and never hidden. Ours makes every change durable before it answers.
Times are medians in milliseconds; memory is that of the whole process tree, shared pages counted once, in MiB.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from peer_servers import SERVERS, Job, Place, Server
from raw_client import Client, FailedError, told

JOB_SECONDS_MAX = 8.0
MEMORY_SECONDS_MAX = 120.0
MEMORY_CALLS = (500, 50_000)
QUICK_MEMORY_CALLS = (100, 1_000)


class Row:
    """What is measured of one server."""

    def __init__(self, server: Server, place: Place, *, is_quick: bool) -> None:
        self.server = server
        self.place = place
        self.calls = 40 if is_quick else 400
        self.memory_calls = QUICK_MEMORY_CALLS if is_quick else MEMORY_CALLS
        self.bad = 0
        self.cells: dict[str, str] = {}

    def measure(self) -> None:
        starts = []
        for _ in range(2):
            client = self._connect()
            starts.append(client.start_ms)
            client.end()
        client = self._connect()
        starts.append(client.start_ms)
        try:
            self._prepare(client)
            self.cells["start"] = f"{median(starts):.0f}"
            self._time("list", lambda: client.ask("tools/list", {}), lambda _: True)
            self._time_job(client, "read 4 KiB", self.server.read)
            self._time_edits(client)
            self._time_echoes(client)
            self._time_job(client, "structural", self.server.structural)
            for callers in (8, 32):
                self._many(client, callers)
            self._memory(client)
        finally:
            self.cells["bad"] = str(self.bad)
            client.end()

    def _connect(self) -> Client:
        return Client(self.server.command(self.place), self.place.root, self.server.environment)

    def _prepare(self, client: Client) -> None:
        for job in self.server.set_up:
            is_good, answer = client.call(*job(self.place))
            self.bad += not is_good
            if self.server.learn is not None:
                self.server.learn(self.place, answer)

    def _time(self, name: str, work: Callable[[], Any], is_good: Callable[[Any], bool], count: int = 0) -> None:
        times = []
        until = time.perf_counter() + JOB_SECONDS_MAX
        for number in range((count or self.calls) + 3):
            started = time.perf_counter()
            answer = work()
            ended = time.perf_counter()
            self.bad += not is_good(answer)
            if number >= 3:
                times.append((ended - started) * 1000)
            if ended > until and times:
                break
        self.cells[name] = f"{median(times):.2f}"

    def _time_job(self, client: Client, name: str, job: Job | None) -> None:
        if job is not None:
            self._time(name, lambda: client.call(*job(self.place)), lambda answer: answer[0])

    def _time_edits(self, client: Client) -> None:
        edit = self.server.edit
        if edit is None:
            return
        place = self.place

        def change() -> tuple[bool, str]:
            request = edit(place)
            is_good, text = client.call(*request)
            is_there = f"{place.new}\n" in Path(place.edit_file).read_text()
            if is_there:
                place.old, place.new = place.new, f"line {int(place.new.split()[1]) + 1}"
            return is_good and is_there, text

        self._time("edit a line", change, lambda answer: answer[0], self.calls // 2)

    def _time_echoes(self, client: Client) -> None:
        echo = self.server.echo
        if echo is None:
            return

        def run() -> bool:
            self.place.token = f"t{time.perf_counter_ns()}"
            is_good, text = client.call(*echo(self.place))
            return is_good and self.place.token in text

        self._time("echo", run, bool, self.calls // 4)

    def _many(self, client: Client, callers: int) -> None:
        job = self.server.read
        if job is None:
            return
        rates = []
        for _ in range(3):
            started = time.perf_counter()
            done = self._pipeline(client, job, callers, self.calls, JOB_SECONDS_MAX)
            rates.append(done / (time.perf_counter() - started))
        self.cells[f"{callers} callers, calls/s"] = f"{median(rates):,.0f}"

    def _pipeline(self, client: Client, job: Job, callers: int, calls: int, seconds_max: float) -> int:
        """Keep `callers` calls under way until `calls` are answered or the time is over; return how many were."""
        sent = answered = 0
        until = time.perf_counter() + seconds_max
        tool, arguments = job(self.place)
        while answered < calls:
            while sent < calls and sent - answered < callers and time.perf_counter() < until:
                client.send("tools/call", {"name": tool, "arguments": arguments})
                sent += 1
            if sent == answered:
                break
            self.bad += not told(client.receive())[0]
            answered += 1
        return answered

    def _memory(self, client: Client) -> None:
        job = self.server.read or self.server.echo
        assert job is not None, "a server does something"
        done = 0
        for calls in self.memory_calls:
            done += self._pipeline(client, job, 8, calls - done, MEMORY_SECONDS_MAX)
            note = "" if done == calls else f" (at {done:,})"
            self.cells[f"MiB after {calls:,}"] = f"{client.memory_mib():.0f}{note}"


def place_in(scratch: Path, peers: Path) -> Place:
    root = scratch / "ws"
    (root / "code").mkdir(parents=True)
    (root / "read.txt").write_text(("x" * 63 + "\n") * 64)
    (root / "edit.txt").write_text("".join(f"other {n}\n" for n in range(100)) + "line 0\n" + "end\n" * 99)
    for number in range(50):
        (root / "code" / f"m{number}.py").write_text(f"def f{number}(a):\n    print(a)\n" * 20)
    return Place(root, peers)


def rows(chosen: argparse.Namespace) -> Iterator[tuple[str, dict[str, str]]]:
    for name, server in SERVERS.items():
        if chosen.only and not any(part in name for part in chosen.only):
            continue
        with tempfile.TemporaryDirectory() as directory:
            row = Row(server, place_in(Path(directory), chosen.peers), is_quick=chosen.quick)
            try:
                row.measure()
            except (OSError, FailedError) as error:
                row.cells["bad"] = f"not measured: {error}"
        yield name, row.cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=Path("peers"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--install", action="store_true")
    chosen = parser.parse_args()
    chosen.peers = chosen.peers.resolve()
    if chosen.install:
        print("\n".join(f"{name}: {server.install}" for name, server in SERVERS.items() if server.install))
        return
    memory_calls = QUICK_MEMORY_CALLS if chosen.quick else MEMORY_CALLS
    columns = ["start", "list", "read 4 KiB", "edit a line", "echo", "structural", "8 callers, calls/s",
               "32 callers, calls/s", *(f"MiB after {calls:,}" for calls in memory_calls), "bad"]
    print("| server | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1), flush=True)
    for name, cells in rows(chosen):
        print(f"| {name} | " + " | ".join(cells.get(column, "-") for column in columns) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
