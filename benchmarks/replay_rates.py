"""How fast a log is read by each part of the audit, against a raw scan of its rows, and in how much memory.

`python benchmarks/replay_rates.py [EVENTS]` makes a log of patches in a temporary directory (three events and four
contents each) and reads it. Times are processor time, since nothing waits for a disk; memory is the highest of the
process, grown since the log was made.
"""

import resource
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "src"), str(REPOSITORY / "tests/replay")]

import anyio  # noqa: E402
from large_log import make_log  # noqa: E402

from adapters.log.reader import LogReader  # noqa: E402
from codespace_es.event_catalogue import CATALOGUE  # noqa: E402
from codespace_es.projections.timeline import project  # noqa: E402
from replay.compare import compare  # noqa: E402
from replay.export import json_lines  # noqa: E402
from replay.files_at import files_at  # noqa: E402
from replay.state_at import state_at  # noqa: E402
from replay.verify import verify  # noqa: E402

READS: dict[str, Callable[[LogReader], object]] = {
    "raw scan of rows": lambda source: deque(source.raw_rows(), maxlen=0),
    "raw scan of contents": lambda source: deque(source.stored_contents(), maxlen=0),
    "events decoded": lambda source: deque(source.read_log(), maxlen=0),
    "timeline": lambda source: deque(map(project, source.read_log()), maxlen=0),
    "state at the end": lambda source: state_at(source, source.head()[0]),
    "export": lambda source: deque(json_lines(source), maxlen=0),
    "verify": verify,
    "files at the end": lambda source: files_at(source, source.head()[0]),
    "compare": compare,
}


def measure(path: Path) -> None:
    """Print a row for each read."""
    print(f"{'read':24} {'events/s':>10} {'us/event':>9} {'grown MB':>9}")
    for name, read in READS.items():
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with LogReader(path, CATALOGUE) as source:
            events = source.head()[0]
            started = time.process_time()
            read(source)
            seconds = time.process_time() - started
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown) // 1024
        print(f"{name:24} {events / seconds:10,.0f} {seconds / events * 1e6:9.1f} {grown:9}")


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.db"
        anyio.run(make_log, path, events)
        measure(path)


if __name__ == "__main__":
    main()
