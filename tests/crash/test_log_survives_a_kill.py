"""A server that is killed in the middle of its appends: what it had acknowledged is in the log, whole and in order."""

import signal
import sys
from pathlib import Path

import anyio
import pytest

from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.vocabulary.identifiers import StreamId
from support.programs import running
from support.warm_servers import own_environment, run_to_end
from unit.log.sample_events import CALLER, CATALOGUE, OTHER, make_log, started, written

WRITER = [sys.executable, str(Path(__file__).parents[1] / "unit/log/writer_process.py")]


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> LogPlace:
    """Where the log is that the dying write."""
    return tmp_path / "log.db" if request.param == "file" else request.getfixturevalue("postgres").new_log()


def read_back(place: LogPlace) -> list[tuple[str, int, int]]:
    """Return stream, version and position of every event, of a log whose chain and index are whole."""
    from unit.log.sample_events import open_rule

    with LogReader(place, CATALOGUE) as reader:
        assert list(reader.find_breaks()) == []
        assert reader.compare_open_index(open_rule) == []
        return [(event.stream_id, event.version, event.position) for event in reader.read_log()]


def append_after(place: LogPlace) -> None:
    """Another server goes on with the log."""
    async def run() -> None:
        async with make_log(place, instance_id=OTHER, lock_timeout_seconds=5) as log:
            before, _ = await log.head()
            receipt = await log.append(started(OTHER), CALLER)
            assert receipt.first_position == before + 1

    anyio.run(run)


@pytest.mark.parametrize("acknowledged_before", [1, 37, 150])
def test_every_acknowledged_append_outlives_its_killed_server(
    request: pytest.FixtureRequest, place: LogPlace, acknowledged_before: int
) -> None:
    with running([*WRITER, written(place), "1", "100000"]) as writer:
        lines = [writer.stdout.readline() for _ in range(acknowledged_before)]
        writer.process.send_signal(signal.SIGKILL)
        lines += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        assert writer.process.wait(5) == -signal.SIGKILL

    if isinstance(place, PostgresAddress):  # which still does what the killed had sent
        request.getfixturevalue("postgres").wait_until_unused()
    stored = read_back(place)
    for line in lines:
        stream_id, version, position = line.split()
        assert stored[int(position) - 1] == (StreamId(stream_id), int(version), int(position))
    assert len(stored) - 1 - len(lines) in {0, 1}
    append_after(place)


@pytest.mark.parametrize(("point", "is_stored"), [
    (FaultPoint.APPEND_BEGIN, False), (FaultPoint.APPEND_IN_TRANSACTION, False), (FaultPoint.APPEND_COMMITTED, True),
])
def test_a_server_that_dies_at_a_moment_of_an_append_leaves_all_or_nothing_of_it(
    place: LogPlace, point: FaultPoint, *, is_stored: bool
) -> None:
    script = """
import os, sys, anyio
from codespace_es.ports.log import Append, NewBody
from unit.log.sample_events import CALLER, finished, make_log, minted, operation, place_of, started

armed = []
def die(point):
    if point in armed:
        os._exit(7)

async def main():
    async with make_log(place_of(sys.argv[1]), faults=die) as log:
        await log.append(started(), CALLER)
        armed.append(sys.argv[2])
        body = NewBody(operation(1), "request", b"bytes")
        await log.append(Append((*minted(1).events, *minted(2).events), (body,)), CALLER)
anyio.run(main)
"""
    ended = run_to_end([sys.executable, "-c", script, written(place), point], env=own_environment())
    assert ended.returncode == 7
    assert len(read_back(place)) == (3 if is_stored else 1)
    with LogReader(place, CATALOGUE) as reader:
        assert len(list(reader.stored_bodies())) == (1 if is_stored else 0)
        assert len(reader.open_items(kind="operation")) == (2 if is_stored else 0)
    append_after(place)
