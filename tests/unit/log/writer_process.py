"""A server process that only appends: run by tests and the benchmark as `python writer_process.py PLACE NUMBER COUNT`.

PLACE is a file, or the URL of a PostgreSQL that holds a log.

Prints one line for each acknowledged append: its stream, version and position; and last the slowest one in
milliseconds.
"""

import sys
import time
from pathlib import Path

import anyio

from codespace_es.ports.log import Append, NewEvent
from codespace_es.vocabulary.identifiers import InstanceId, StreamId

sys.path.insert(0, str(Path(__file__).parents[2]))

from unit.log.sample_events import CALLER, CounterIncreased, InstanceStarted, make_log, place_of


async def main(place: str, number: int, count: int) -> None:
    """Append `count` events one by one, as instance `number`."""
    instance_id = InstanceId(f"inst-00000000-0000-4000-8000-{number:012d}")
    stream_id = StreamId(f"counter-{number}")
    slowest = 0.0
    async with make_log(place_of(place), instance_id=instance_id) as log:
        await log.append(Append((NewEvent(StreamId(instance_id), 1, InstanceStarted()),)), CALLER)
        for version in range(1, count + 1):
            begun = time.perf_counter()
            receipt = await log.append(
                Append((NewEvent(stream_id, version, CounterIncreased(writer=number, number=version)),)), CALLER)
            slowest = max(slowest, time.perf_counter() - begun)
            sys.stdout.write(f"{stream_id} {version} {receipt.last_position}\n")
            sys.stdout.flush()
    sys.stdout.write(f"slowest {slowest * 1000:.1f}\n")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
