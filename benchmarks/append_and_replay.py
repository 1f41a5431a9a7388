"""Append and replay against raw SQLite, in one run and taking turns, so that a noisy machine is noisy to all.

Run: `.venv/bin/python benchmarks/append_and_replay.py [--quick]`. Durability is full and the hash chain is on
throughout; raw SQLite writes the very same rows into the same tables with the same driver. Ratios are medians over
turns.
"""

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import anyio  # noqa: E402
import anyio.to_thread  # noqa: E402
from log_load import (  # noqa: E402
    CALLER,
    CATALOGUE,
    IDS,
    OperationMinted,
    WallClock,
    claim,
    finish,
    instance,
    make_log,
    mint,
    open_rule,
    start,
)

from adapters.log import bodies  # noqa: E402
from adapters.log.event_log import StoredEventLog  # noqa: E402
from adapters.log.reader import LogReader  # noqa: E402
from adapters.log.rows import encode_envelope, encode_event  # noqa: E402
from adapters.log.scanning import scan_events  # noqa: E402
from adapters.log.sqlite import schema  # noqa: E402
from adapters.log.sqlite.connecting import connect_writer  # noqa: E402
from adapters.log.statements import STREAM  # noqa: E402
from codespace_es.ports.log import Append  # noqa: E402
from codespace_es.vocabulary.event import RecordedEvent  # noqa: E402
from codespace_es.vocabulary.identifiers import AppendId  # noqa: E402

QUICK = "--quick" in sys.argv


@dataclass
class Line:
    name: str
    measured: str
    target: str
    is_met: bool


LINES: list[Line] = []


def report(name: str, value: float, unit: str, target: float, *, at_least: bool = False) -> None:
    LINES.append(Line(name, f"{value:,.2f} {unit}".rstrip(), f"{'>=' if at_least else '<='} {target:,g}",
                      value >= target if at_least else value <= target))


class Raw:
    """The same rows by hand: prepared values, one transaction."""

    def __init__(self, path: Path) -> None:
        self.connection = connect_writer(path)
        self.connection.execute("PRAGMA busy_timeout = 5000")
        schema.create_if_empty(self.connection)
        self.position = 0

    def prepare(self, append: Append) -> list[tuple[str, tuple[Any, ...]]]:
        envelope = encode_envelope(CALLER, recorded_at=WallClock().now(), instance_id=instance(1),
                                   append_id=AppendId(f"apd-{uuid4()}"))
        statements: list[tuple[str, tuple[Any, ...]]] = []
        for new in append.events:
            self.position += 1
            statements.append(("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (
                self.position, new.stream_id, new.version, new.event.TOPIC, envelope + encode_event(new.event),
                uuid4().bytes + uuid4().bytes)))
            change = open_rule(new.stream_id, new.event)
            for kind, workspace_key in change.opens if change else ():
                statements.append(("INSERT INTO open_items VALUES (?, ?, ?, ?, ?)",
                                   (new.stream_id, kind, workspace_key, instance(1), self.position)))
        statements.extend(("INSERT INTO bodies VALUES (?, ?, ?, ?, ?, ?)", bodies.row_of(body, 0))
                          for body in append.bodies)
        return statements

    def run(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        for statement, values in statements:
            execute(statement, values)
        execute("COMMIT")


async def turns(
    name: str, make: Callable[[], Append], directory: Path, *, target: float | None, count: int = 40, rounds: int = 60
) -> None:
    """Compare one append at a time with raw SQLite: `rounds` turns of `count` each, in rotating order."""
    raw = Raw(directory / f"raw-{name}.db")
    ratios: list[float] = []
    times: dict[str, list[float]] = {"raw": [], "ours": []}
    async with make_log(directory / f"ours-{name}.db") as log:
        await log.append(start(), CALLER)
        for turn in range(rounds // 4 if QUICK else rounds):
            prepared = [raw.prepare(make()) for _ in range(count)]
            appends = [make() for _ in range(count)]
            spent: dict[str, float] = {}

            def run_raw(prepared: Any = prepared, spent: dict[str, float] = spent) -> None:
                begun = time.perf_counter()
                for statements in prepared:
                    raw.run(statements)
                spent["raw"] = time.perf_counter() - begun

            gc.collect()
            gc.disable()
            if turn % 2:
                run_raw()
            begun = time.perf_counter()
            for append in appends:
                await log.append(append, CALLER)
            spent["ours"] = time.perf_counter() - begun
            if not turn % 2:
                run_raw()
            gc.enable()
            ratios.append(spent["ours"] / spent["raw"])
            for contender, seconds in spent.items():
                times[contender].append(seconds / count * 1e6)
    raw.connection.close()
    print(f"{name:32} raw {median(times['raw']):8.1f} us   ours {median(times['ours']):8.1f} us   "
          f"ratio {median(ratios):.2f} (quartiles {sorted(ratios)[len(ratios) // 4]:.2f}"
          f"-{sorted(ratios)[3 * len(ratios) // 4]:.2f})")
    if target is not None:
        report(f"{name}, ours / raw", median(ratios), "", target)


async def many_callers(directory: Path) -> None:
    """32 callers, one event each: ours against the library's own save, taking turns."""
    from eventsourcing.application import Application
    from eventsourcing.domain import Aggregate, event

    class Taken(Aggregate):
        @event("Taken")
        def __init__(self, kind: str, holder: str, fingerprint: str) -> None:
            self.kind, self.holder, self.fingerprint = kind, holder, fingerprint

    class Claims(Application[Any]):
        pass

    library = Claims(env={"PERSISTENCE_MODULE": "eventsourcing.sqlite",
                          "SQLITE_DBNAME": str(directory / "library.db"), "SQLITE_LOCK_TIMEOUT": "30"})
    callers, each = 32, 10 if QUICK else 30
    ratios: list[float] = []
    rates: dict[str, list[float]] = {"library": [], "ours": []}

    async def timed(call: Callable[[], Awaitable[object]]) -> float:
        async def caller() -> None:
            for _ in range(each):
                await call()

        begun = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(callers):
                group.start_soon(caller)
        return time.perf_counter() - begun

    async with make_log(directory / "many.db") as log:
        await log.append(start(), CALLER)
        for _ in range(4 if QUICK else 10):
            theirs = await timed(lambda: anyio.to_thread.run_sync(
                lambda: library.save(Taken("hold", f"appr-{IDS.uuid()}", "sha256:" + "0" * 64))))
            mine = await timed(lambda: log.append(claim(), CALLER))
            ratios.append(theirs / mine)
            rates["library"].append(callers * each / theirs)
            rates["ours"].append(callers * each / mine)
    library.close()
    print(f"{'32 callers':32} library {median(rates['library']):,.0f}/s   ours {median(rates['ours']):,.0f}/s   "
          f"times as many {median(ratios):.1f}")
    report("32 callers, ours / library's save", median(ratios), "x", 6, at_least=True)


async def fill(log: StoredEventLog, make: Callable[[], list[Append]], count: int) -> None:
    """Append `count` events, from 64 callers at once."""
    await log.append(start(), CALLER)
    left = count

    async def caller() -> None:
        nonlocal left
        while left > 0:
            for append in make():
                left -= len(append.events)
                await log.append(append, CALLER)

    async with anyio.create_task_group() as group:
        for _ in range(64):
            group.start_soon(caller)


def patch_story() -> list[Append]:
    """A patch from its mint to its end, without its bodies."""
    append = mint(16)
    return [Append(append.events), finish(append.events[1].stream_id)]


def claim_story() -> list[Append]:
    return [claim()]


def fold(events: Iterable[RecordedEvent]) -> int:
    return sum(type(recorded.event) is OperationMinted for recorded in events)


async def replay(directory: Path, name: str, make: Callable[[], list[Append]], *, has_target: bool) -> None:
    """Fold a whole log in one pass, and verify its chain, against a scan and a validation written by hand."""
    path = directory / f"{name}.db"
    validate = {topic: kind.__pydantic_validator__.validate_json for topic, kind in CATALOGUE.items()}
    async with make_log(path) as log:
        await fill(log, make, 20_000 if QUICK else 100_000)
    with LogReader(path, CATALOGUE) as reader:
        total = reader.head()[0]

        def validate_by_hand() -> None:
            for _, _, _, topic, state in scan_events(reader._connection):
                validate[topic](state.partition(b"\n")[2])

        runs: dict[str, Callable[[], object]] = {
            "scan": lambda: sum(1 for _ in scan_events(reader._connection)),
            "scan and validate": validate_by_hand,
            "fold": lambda: fold(reader.read_log()),
            "verify": lambda: len(list(reader.find_breaks())),
        }
        times: dict[str, list[float]] = {run: [] for run in runs}
        for _ in range(7):
            for run, call in runs.items():
                begun = time.perf_counter()
                call()
                times[run].append(time.perf_counter() - begun)
    rates = {run: total / median(seconds) for run, seconds in times.items()}
    print(f"{format(total, ',') + ' events: ' + name:32} "
          + "   ".join(f"{run} {rate:,.0f}/s" for run, rate in rates.items()))
    if has_target:
        report(f"one-pass fold, {name}", rates["fold"], "events/s", 400_000, at_least=True)
        report(f"verify the chain, {name}", rates["verify"], "events/s", 400_000, at_least=True)


async def gets(directory: Path) -> None:
    """Get streams of two events one by one; count what comes on top of their select."""
    over: list[float] = []
    whole: list[float] = []
    async with make_log(directory / "gets.db") as log:
        await fill(log, patch_story, 6_000)
        streams = [event.stream_id async for event in log.read_log() if type(event.event) is OperationMinted]
        database = log._database
        assert database is not None
        for first in range(0, len(streams) - 100, 100):
            chosen = streams[first:first + 100]
            seconds: list[float] = []
            for _ in range(2):  # the first time warms the pages
                begun = time.perf_counter()
                for stream_id in chosen:
                    database.reading.connection.execute(STREAM, (stream_id,)).fetchall()
                seconds.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            for stream_id in chosen:
                await log.read_stream(stream_id)
            got = time.perf_counter() - begun
            over.append((got - seconds[1]) / len(chosen) * 1e6)
            whole.append(got / len(chosen) * 1e6)
    print(f"{'get of a stream of two events':32} {median(whole):.1f} us, beyond its select {median(over):.1f} us")
    report("get of two events beyond its select", median(over), "us", 10)


def four_processes(directory: Path) -> None:
    """Four saturated writer processes on one file: the slowest append of all."""
    path = directory / "shared.db"
    seconds = "2" if QUICK else "6"
    command = [sys.executable, str(ROOT / "benchmarks/log_load.py"), str(path)]
    writers = [subprocess.Popen([*command, str(number), seconds], stdout=subprocess.PIPE, text=True,
                                env={"PYTHONPATH": str(ROOT / "src")}) for number in range(1, 5)]
    results = [writer.communicate()[0].split() for writer in writers]
    slowest = max(float(result[1]) for result in results)
    counts = [int(result[0]) for result in results]
    with LogReader(path, CATALOGUE) as reader:
        assert not list(reader.find_breaks())
    print(f"{'four saturated writer processes':32} appends {counts}, together {sum(counts) / float(seconds):,.0f}/s, "
          f"slowest {slowest:.1f} ms")
    report("four writers, slowest append", slowest, "ms", 300)


async def main() -> None:
    with tempfile.TemporaryDirectory(dir=ROOT) as name:
        directory = Path(name)
        await turns("one event", claim, directory, target=None)
        await turns("mint", mint, directory, target=1.3)
        await turns("mint of two 32 KiB images", lambda: mint(32_768), directory, target=None, count=20)
        await many_callers(directory)
        await replay(directory, "small events", claim_story, has_target=True)
        await replay(directory, "patches", patch_story, has_target=False)
        await gets(directory)
        four_processes(directory)
    print()
    for line in LINES:
        print(f"{'met   ' if line.is_met else 'MISSED'}  {line.name:40} {line.measured:>24}   target {line.target}")


if __name__ == "__main__":
    anyio.run(main)
