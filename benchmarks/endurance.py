"""Does anything grow? A server through a million calls beside a new one; a log of a million events beside a short one.

    ./dev run python benchmarks/endurance.py [--calls 1000000] [--quick] [--directory DIR]
        [--transport http] [--log postgres]
    ./dev run python benchmarks/endurance.py --events 1000000 [--calls 100000] [--keep DIR] [--transport http]

Both live days of `agent_day.py`, over stdio with a log in a file unless said otherwise, with the default durability;
for `--log postgres` a PostgreSQL is started, which flushes too. What decides is the server's own processor
time a call, measured against another server's in turns, a day each, so that whatever else the machine does meets both:
a new server with an empty log, at each mark; or, with `--events`, one on a log of 10,000 events all along.
Ends with 1 if an answer was wrong, the log isn't whole or hasn't each patch, the server's time a call against the
other's has grown by more than 15 %, or what its process tree has allocated by more than 8 MiB: SQLite's page caches
(2 MiB a connection) and the allocator's slack still fill at the first mark, and a leak of 10 bytes a call would show.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY), str(REPOSITORY / "tests")]

from agent_day import Day, make_workspace  # noqa: E402
from peer_servers import Place, ours  # noqa: E402
from raw_client import Client, anonymous_mib  # noqa: E402
from raw_http_client import HttpClient  # noqa: E402
from start import lengthen  # noqa: E402

from adapters.log.places import LogPlace  # noqa: E402
from adapters.log.reader import LogReader  # noqa: E402
from codespace_es.event_catalogue import CATALOGUE  # noqa: E402
from support.postgres import PostgresServer  # noqa: E402

GROWTH_MAX = 1.15
MEMORY_MIB_MAX = 8.0
FIRST_MARK = 10_000
SHORT_LOG_EVENTS = 10_000
DAYS_IN_TURNS = 7
CALLS_A_DAY = 1_000
"""About."""
PROGRAM = str(Path(sys.executable).with_name("codespace-es"))


@dataclass
class Run:
    """One server, its client's days, and the processor time that they took it while it was measured."""

    day: Day
    data: Path
    log: LogPlace
    told_calls: int = 0
    told_ms: float = 0.0

    def live(self) -> float:
        """Live a day; return the server's processor time a call, in milliseconds."""
        before = self.day.client.processor_ms()
        calls = self.day.live()
        return (self.day.client.processor_ms() - before) / calls

    def take_ms_a_call(self) -> float:
        """Return the same for all calls since this was asked last."""
        calls, used_ms = self.day.calls, self.day.client.processor_ms()
        taken = (used_ms - self.told_ms) / (calls - self.told_calls)
        self.told_calls, self.told_ms = calls, used_ms
        return taken


@dataclass
class Kind:
    """How servers are reached, and where their logs are: a PostgreSQL, or None for a file each."""

    client: type[Client] | type[HttpClient]
    postgres: PostgresServer | None

    @contextmanager
    def served(self, directory: Path) -> Iterator[Run]:
        """Serve a workspace in `directory`, with the log that is there or a new one."""
        place = Place(directory / "ws", directory)
        if not place.root.exists():
            make_workspace(place.root)
        data = directory / "data"
        log: LogPlace = data / "codespace.db" if self.postgres is None else self.postgres.new_log()
        client = self.client(ours(place), place.root, variables(log))
        try:
            yield Run(Day(client, place.root), data, log)
        finally:
            client.end()

    def tell_database(self) -> str:
        """Return what all of PostgreSQL has allocated, as far as there is one."""
        if self.postgres is None:
            return ""
        return f"; PostgreSQL has allocated {anonymous_mib(self.postgres.pid):.1f} MiB in all"


def variables(log: LogPlace) -> dict[str, str]:
    return {} if isinstance(log, Path) else {"CODESPACE_STORE": log.url}


def count_events(log: LogPlace) -> int:
    with LogReader(log, CATALOGUE) as reader:
        return reader.head()[0]


def in_turns(run: Run, other: Run, days: int) -> tuple[float, float]:
    """Let both live so many days in turns; return the processor time a call of each, the median of its days."""
    own_ms, other_ms = [], []
    for number in range(days):
        turns = [(run, own_ms), (other, other_ms)]
        for each, taken in turns if number % 2 == 0 else reversed(turns):
            taken.append(each.live())
    return median(own_ms), median(other_ms)


def tell(kind: Kind, run: Run, own_ms: float, other_ms: float, begun: float) -> float:
    """Print what was seen up to here; return what the process tree has allocated, in MiB."""
    allocated = run.day.client.anonymous_mib()
    size = sum(each.stat().st_size for each in run.data.rglob("*") if each.is_file()) / 2**20
    print(f"\nafter {run.day.calls:,} calls, {time.perf_counter() - begun:,.0f} s: {run.take_ms_a_call():.3f} ms of "
          f"processor time a call; in turns {own_ms:.3f}, the other server {other_ms:.3f}: {own_ms / other_ms:.3f} "
          f"times; {allocated:.1f} MiB allocated, {run.day.client.memory_mib():.1f} with the files, "
          f"{run.day.client.descriptors()} descriptors, {len(list(run.day.client.tree()))} processes; "
          f"{count_events(run.log):,} events, {size:,.0f} MiB in the data directory; bad {sum(run.day.bad.values())}"
          f"{kind.tell_database()}")
    for asked, times in run.day.take_times():
        if len(times) > 1:
            cuts = quantiles(times, n=100)
            print(f"    {asked:26} {len(times):8,}   p50 {cuts[49]:8.2f} ms   p99 {cuts[98]:8.2f} ms")
    sys.stdout.flush()
    return allocated


def audit(run: Run, applied_before: int = 0) -> list[str]:
    """Return what is wrong with the log that a run has left."""
    wrong = [f"{count} bad answers: {kind}" for kind, count in run.day.bad.items()]
    verified = json.loads(told("verify", run))
    print(f"verify: {verified['events']:,} events, {verified['bodies']:,} contents, findings: {verified['findings']}, "
          f"{verified['duration_ms'] / 1000:.0f} s")
    if not verified["is_ok"]:
        wrong.append("the log isn't whole")
    applied = json.loads(told("replay", run, "--at", "head"))["operations"]["applied"] - applied_before
    print(f"operations applied: {run.day.applied:,} by the client's count, {applied:,} by the log")
    if applied != run.day.applied:
        wrong.append("the log has other operations than the client")
    return wrong


def told(command: str, run: Run, *arguments: str) -> str:
    ended = subprocess.run([PROGRAM, command, *arguments, "--json", "--data-dir", str(run.data)], capture_output=True,
                           text=True, check=False, env={**os.environ, **variables(run.log)})
    return ended.stdout


def by_calls(kind: Kind, directory: Path, calls: int) -> list[str]:
    """One server through so many calls, before each mark beside a new one; return what is wrong."""
    begun = time.perf_counter()
    first = min(FIRST_MARK, calls // 2)
    step = max(calls // 10, first)
    marks = [first, *(each for each in range(step, calls, step) if each > first), calls]
    ratios, sizes = [], []
    with kind.served(directory / "old") as old:
        for number, mark in enumerate(marks):
            old.day.live()
            while old.day.calls < mark - DAYS_IN_TURNS * CALLS_A_DAY:
                old.day.live()
            with kind.served(directory / f"new-{number}") as new:
                new.day.live()
                own_ms, new_ms = in_turns(old, new, DAYS_IN_TURNS)
            ratios.append(own_ms / new_ms)
            sizes.append(tell(kind, old, own_ms, new_ms, begun))
            old.day.bad += new.day.bad
    grown, more = ratios[-1] / ratios[0], sizes[-1] - sizes[0]
    print(f"\nfrom {first:,} to {calls:,} calls: processor time a call, against a new server's, {grown:.3f} times "
          f"(at most {GROWTH_MAX}); allocated {more:+.1f} MiB (at most {MEMORY_MIB_MAX:+.1f})")
    wrong = audit(old)
    if grown > GROWTH_MAX:
        wrong.append("the time of a call grows")
    if more > MEMORY_MIB_MAX:
        wrong.append("memory grows")
    return wrong


def by_events(kind: Kind, directory: Path, events: int, calls: int) -> list[str]:
    """A server on a log of so many events and one on a short log, in turns; return what is wrong."""
    begun = time.perf_counter()
    runs = {"short": SHORT_LOG_EVENTS, "long": events}
    before = {}
    for name, wanted in runs.items():
        with kind.served(directory / name) as run:
            pass
        missing = wanted - count_events(run.log)
        if missing > 0:
            lengthen(run.data / "codespace.db", missing)
        before[name] = json.loads(told("replay", run, "--at", "head"))["operations"]["applied"]
        print(f"{name}: {count_events(run.log):,} events, {time.perf_counter() - begun:.0f} s")
    with kind.served(directory / "long") as long, kind.served(directory / "short") as short:
        for run in (long, short):
            run.day.live()
        ratios = []
        while long.day.calls < calls:
            own_ms, short_ms = in_turns(long, short, max(1, calls // 10_000))
            ratios.append(own_ms / short_ms)
            tell(kind, long, own_ms, short_ms, begun)
            print(f"    the short log's server: {short.day.client.memory_mib():.1f} MiB")
    mean = sum(ratios) / len(ratios)
    print(f"\nprocessor time a call on the long log: {mean:.3f} times that on the short one (at most {GROWTH_MAX})")
    wrong = [*audit(long, before["long"]), *audit(short, before["short"])]
    return [*wrong, "calls take longer on a long log"] if mean > GROWTH_MAX else wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--quick", action="store_true", help="20,000 calls.")
    parser.add_argument("--events", type=int, help="Compare a log of so many events with a short one.")
    parser.add_argument("--directory", type=Path, help="Where the logs and workspaces are made for the run.")
    parser.add_argument("--keep", type=Path, help="With --events: where the logs are made, and left for the next run.")
    parser.add_argument("--transport", choices=("stdio", "http"), default="stdio")
    parser.add_argument("--log", choices=("file", "postgres"), default="file")
    chosen = parser.parse_args()
    if chosen.events is not None and chosen.log == "postgres":
        parser.error("--events lengthens logs in files")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=chosen.directory)))
        postgres = None
        if chosen.log == "postgres":
            postgres = PostgresServer()
            stack.callback(postgres.stop)
        kind = Kind(HttpClient if chosen.transport == "http" else Client, postgres)
        if chosen.events is None:
            wrong = by_calls(kind, directory, chosen.calls or (20_000 if chosen.quick else 1_000_000))
        else:
            calls = chosen.calls or (20_000 if chosen.quick else 100_000)
            wrong = by_events(kind, chosen.keep.resolve() if chosen.keep else directory, chosen.events, calls)
    print("\n".join(f"WRONG: {each}" for each in wrong) or "all is well")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
