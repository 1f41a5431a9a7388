"""Several server processes on one log: one order, one chain, nothing missed by who follows."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from support.warm_servers import own_environment, run_program
from unit.log.sample_events import CATALOGUE, make_log, written

pytestmark = pytest.mark.anyio

WRITER = [sys.executable, str(Path(__file__).parents[1] / "unit/log/writer_process.py")]
WRITERS = 4
APPENDS = 60


@pytest.mark.parametrize("kind", ["file", "postgres"])
async def test_processes_that_make_and_write_one_log_share_one_order_and_a_follower_misses_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    # A file is made by whoever comes first; tables in PostgreSQL by a step of their own.
    path: LogPlace = tmp_path / "log.db" if kind == "file" else request.getfixturevalue("postgres").new_log()
    ended: list[subprocess.CompletedProcess[str]] = []

    async def write(number: int) -> None:
        ended.append(await run_program([*WRITER, written(path), str(number), str(APPENDS)], env=own_environment()))

    followed: list[tuple[int, str, int]] = []
    async with anyio.create_task_group() as writers:
        for number in range(1, WRITERS + 1):
            writers.start_soon(write, number)
        async with make_log(path) as log:
            with anyio.fail_after(30):
                async for event in log.follow():
                    followed.append((event.position, event.stream_id, event.version))
                    if len(followed) == WRITERS * (APPENDS + 1):
                        break
            assert await log.compare_open_index() == []

    assert [writer.returncode for writer in ended] == [0] * WRITERS
    assert [position for position, _, _ in followed] == list(range(1, WRITERS * (APPENDS + 1) + 1))
    acknowledged = {(int(position), stream_id, int(version))
                    for writer in ended for line in writer.stdout.splitlines() if line.startswith("counter")
                    for stream_id, version, position in [line.split()]}
    assert acknowledged == {place for place in followed if place[1].startswith("counter")}
    with LogReader(path, CATALOGUE) as reader:
        assert list(reader.find_breaks()) == []
        assert [(event.position, event.stream_id, event.version) for event in reader.read_log()] == followed
