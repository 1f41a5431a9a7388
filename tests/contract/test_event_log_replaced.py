"""A log that is deleted or replaced under a living server: nothing more is acknowledged, since nobody would find it."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from adapters.log.reader import LogReader
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.log import NewBody, StoreUnavailableError
from unit.log.sample_events import CALLER, CATALOGUE, make_log, minted, operation, started

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "log.db"


def delete_all(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()


def move_away(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def replace_main_file(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def delete_write_ahead_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def delete_shared_memory(path: Path) -> None:
    path.with_name(path.name + "-shm").unlink()


WAYS = [delete_all, move_away, replace_main_file, delete_write_ahead_log, delete_shared_memory]


@pytest.mark.parametrize("take_away", WAYS, ids=lambda way: way.__name__)
async def test_a_log_that_is_taken_away_acknowledges_nothing_more(
    path: Path, take_away: Callable[[Path], None]
) -> None:
    failures: list[str] = []
    async with make_log(path, on_failure=failures.append) as log:
        await log.append(started(), CALLER)
        take_away(path)
        for number in (1, 2):
            with pytest.raises(StoreUnavailableError, match="removed or replaced"):
                await log.append(minted(number), CALLER)
        await anyio.wait_all_tasks_blocked()
    assert len(failures) == 1


async def test_a_log_that_is_taken_away_stores_no_large_content_either(path: Path) -> None:
    async with make_log(path) as log:
        await log.append(started(), CALLER)
        delete_all(path)
        body = NewBody(operation(1), "image", b"x" * 2_000_000)
        with pytest.raises(StoreUnavailableError, match="removed or replaced"):
            await log.append(minted(1, bodies=(body,)), CALLER)


async def test_a_log_that_is_deleted_in_the_middle_of_a_transaction_acknowledges_nothing(path: Path) -> None:
    is_armed = False

    def strike(point: FaultPoint) -> None:
        if is_armed and point is FaultPoint.APPEND_IN_TRANSACTION:
            delete_all(path)

    async with make_log(path, faults=strike) as log:
        await log.append(started(), CALLER)
        is_armed = True
        with pytest.raises(StoreUnavailableError):
            await log.append(minted(1), CALLER)
        assert log.failure is not None


async def test_a_log_that_is_renamed_with_its_files_keeps_what_was_acknowledged(path: Path) -> None:
    async with make_log(path) as log:
        await log.append(started(), CALLER)
        await log.append(minted(1), CALLER)
        move_away(path)
        with pytest.raises(StoreUnavailableError):
            await log.append(minted(2), CALLER)
    with LogReader(path.parent.with_name("elsewhere") / path.name, CATALOGUE) as reader:
        assert [str(event.stream_id) for event in reader.read_log()][1:] == [str(operation(1))]
