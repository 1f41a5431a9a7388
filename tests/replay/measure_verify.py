"""Measure how many events a second `verify` reads: `python tests/replay/measure_verify.py [EVENTS]`.

Makes a log of patches (bound, claim, minted, finished, with their contents) and verifies it three times.
"""

import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "src"), str(REPOSITORY / "tests/replay")]

import anyio  # noqa: E402
from scripted_log import open_server  # noqa: E402

from adapters.log.reader import LogReader  # noqa: E402
from codespace_es.event_catalogue import CATALOGUE  # noqa: E402
from replay.verify import verify  # noqa: E402

_WRITERS = 64


async def make_log(path: Path, events: int) -> None:
    """Write at least `events` events, three a patch, by many callers at once so that they share commits."""
    async with open_server(path) as server:
        await server.start()
        patches = iter(range(events // 3 + 1))

        async def write() -> None:
            for number in patches:
                before, after = f"line {number}\n".encode() * 20, f"new line {number}\n".encode() * 20
                await server.apply({f"file-{number}.txt": (before, after)}, key=f"key-{number}")

        await server.apply({"first.txt": (None, b"")})
        async with anyio.create_task_group() as tasks:
            for _ in range(_WRITERS):
                tasks.start_soon(write)


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.db"
        anyio.run(make_log, path, events)
        for _ in range(3):
            with LogReader(path, CATALOGUE) as reader:
                report = verify(reader)
            print(report.is_ok, report.events, "events", report.bodies, "bodies", report.body_bytes, "bytes",
                  report.duration_ms, "ms", report.events_per_second, "events/s")


if __name__ == "__main__":
    main()
