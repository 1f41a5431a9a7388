"""What holds for a log in a file: privacy, refusals, locks, full disks, tools that read beside servers."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import anyio
import pytest
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from adapters.log.reader import LogReader
from adapters.log.rows import Decoder
from adapters.log.sqlite.connecting import driver, guard_version
from codespace_es.ports.log import (
    Append,
    LogFormatError,
    LogMissingError,
    NewBody,
    NewEvent,
    StoreUnavailableError,
)
from codespace_es.vocabulary.identifiers import StreamId
from unit.log.sample_events import (
    CALLER,
    CATALOGUE,
    ME,
    CounterIncreased,
    FromTheFuture,
    fill,
    finished,
    make_log,
    minted,
    open_rule,
    operation,
    started,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "log.db"


def tamper(path: Path, *statements: str) -> None:
    """Change the file as somebody would who means it: without the triggers."""
    connection = driver.connect(path, isolation_level=None)
    for statement in ("DROP TRIGGER events_refuse_update", "DROP TRIGGER events_refuse_delete", *statements):
        connection.execute(statement)
    connection.close()


async def test_every_file_is_private_from_the_moment_it_is_made(path: Path) -> None:
    before = os.umask(0)
    try:
        async with make_log(path) as log:
            await log.append(started(), CALLER)
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["log.db", "log.db-wal", "log.db-shm", "log.db-turn", "log.db-next"], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_file_that_others_could_read_is_made_private(path: Path) -> None:
    await fill(path)
    path.chmod(0o644)
    async with make_log(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("statement", ["UPDATE events SET topic = 'x'", "DELETE FROM events WHERE position = 1"])
async def test_the_file_refuses_to_change_or_drop_an_event(path: Path, statement: str) -> None:
    await fill(path)
    connection = driver.connect(path)
    with pytest.raises(driver.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(("statement", "position"), [
    ("UPDATE events SET state = replace(state, 'applied', 'unknown') WHERE position = 5", 5),
    ("UPDATE events SET topic = 'operation.finished.v1' WHERE position = 2", 2),
    ("UPDATE events SET stream_id = stream_id || '0' WHERE position = 3", 3),
    ("UPDATE events SET version = 7 WHERE position = 4", 4),
    ("UPDATE events SET hash = zeroblob(32) WHERE position = 1", 1),
    ("DELETE FROM events WHERE position = 2", 2),
])
async def test_a_tampered_row_is_named_by_its_position(path: Path, statement: str, position: int) -> None:
    await fill(path)
    with LogReader(path, CATALOGUE) as reader:
        assert list(reader.find_breaks()) == []
    tamper(path, statement)
    with LogReader(path, CATALOGUE) as reader:
        assert next(reader.find_breaks()).position == position


async def test_a_row_that_is_no_event_is_named_by_its_position(path: Path) -> None:
    await fill(path)
    tamper(path, "UPDATE events SET state = x'00' WHERE position = 3")
    async with make_log(path) as log:
        with pytest.raises(StoreUnavailableError, match="damaged at position 3"):
            await log.read_stream(operation(2))
        assert len(await log.read_stream(operation(1))) == 2


async def test_the_library_s_own_recorder_reads_and_folds_the_log(path: Path) -> None:
    await fill(path)
    recorder = SQLiteApplicationRecorder(SQLiteDatastore(str(path), originator_id_type="text"))
    try:
        recorder.create_table()
        notifications = recorder.select_notifications(1, 100)
        stream = recorder.select_events(operation(1))
        rows = [(n.id, str(n.originator_id), n.originator_version, n.topic, n.state) for n in notifications]
        decoded = list(Decoder(CATALOGUE).decode(rows))
        assert recorder.max_notification_id() == 5
        assert [event.topic for event in stream] == ["operation.minted.v1", "operation.finished.v1"]
        with pytest.raises(Exception, match="view"):
            recorder.insert_events(stream)
    finally:
        recorder.datastore.close()
    with LogReader(path, CATALOGUE) as reader:
        assert [event.event for event in decoded] == [event.event for event in reader.read_log()]


async def test_a_tool_reads_while_servers_write(path: Path) -> None:
    await fill(path)
    async with make_log(path) as log:
        with LogReader(path, CATALOGUE) as reader:
            await log.append(minted(9), CALLER)
            assert reader.head() == await log.head()
            assert [event.position for event in reader.read_log(after=4)] == [5, 6]
            assert [event.topic for event in reader.read_stream(operation(9))] == ["operation.minted.v1"]
            assert list(reader.open_items()) == await log.open_items()
            body = next(reader.stored_bodies())
            assert reader.read_body(body.stream_id, body.digest) == b"body 1"
            assert reader.compare_open_index(open_rule) == []
            with pytest.raises(driver.OperationalError, match=r"readonly|read-only"):
                reader._connection.execute("INSERT INTO open_items VALUES ('a', 'b', NULL, 'c', 1)")


async def test_a_copy_taken_while_a_server_runs_is_read_with_its_write_ahead_log(path: Path, tmp_path: Path) -> None:
    async with make_log(path) as log:
        await log.append(started(), CALLER)
        copies = tmp_path / "copy"
        copies.mkdir()
        for name in ("log.db", "log.db-wal"):
            shutil.copy(path.with_name(name), copies / name)
        await log.append(minted(1), CALLER)
        with LogReader(copies / "log.db", CATALOGUE) as reader:
            assert reader.head()[0] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may read and not write")
async def test_a_log_in_a_directory_that_cannot_be_written_is_read_in_place(path: Path) -> None:
    await fill(path)
    for file in path.parent.iterdir():
        file.chmod(0o444)
    for directory in [parent for parent in path.parents if parent.is_relative_to(gettempdir())]:
        directory.chmod(directory.stat().st_mode | 0o055)
    script = ("import os, sys; from pathlib import Path; from unit.log.sample_events import CATALOGUE;"
              "from adapters.log.reader import LogReader; os.setgid(65534); os.setuid(65534);"
              "print(LogReader(Path(sys.argv[1]), CATALOGUE).head()[0])")
    finished_process = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True,
                                      env=child_environment(), check=False)
    assert finished_process.stdout == "5\n", finished_process.stderr
    assert sorted(file.name for file in path.parent.iterdir()) == ["log.db", "log.db-next", "log.db-turn"]


def child_environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": f"{root}/src:{root}:{root}/tests"}


def test_a_missing_log_is_not_made_by_reading(path: Path) -> None:
    with pytest.raises(LogMissingError):
        LogReader(path, CATALOGUE)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 50, b"{}"])
async def test_a_file_that_is_no_database_is_refused_and_kept(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(LogFormatError):
        LogReader(path, CATALOGUE)
    with pytest.raises(LogFormatError):
        async with make_log(path):
            pass
    assert path.read_bytes() == content


async def test_another_program_s_database_is_refused_and_kept(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE precious (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LogFormatError):
        LogReader(path, CATALOGUE)
    with pytest.raises(LogFormatError):
        async with make_log(path):
            pass
    assert path.read_bytes() == before


async def test_a_log_of_a_newer_format_is_refused(path: Path) -> None:
    await fill(path)
    connection = driver.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(LogFormatError, match="format 2"):
        LogReader(path, CATALOGUE)
    with pytest.raises(LogFormatError, match="format 2"):
        async with make_log(path):
            pass


async def test_a_log_that_cannot_be_opened_says_so(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreUnavailableError, match="can't be opened"):
        async with make_log(path):
            pass


def test_a_sqlite_that_may_corrupt_a_shared_file_is_refused() -> None:
    guard_version((3, 51, 3))
    with pytest.raises(StoreUnavailableError, match=r"3\.51\.2 .* 3\.51\.3"):
        guard_version((3, 51, 2))


async def test_a_log_locked_for_long_refuses_and_then_works_again(path: Path) -> None:
    async with make_log(path, lock_timeout_seconds=0.2) as log:
        await log.append(started(), CALLER)
        outsider = driver.connect(path, isolation_level=None)
        outsider.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match=r"locked .* nothing was stored"):
            await log.append(minted(1), CALLER)
        outsider.execute("ROLLBACK")
        await log.append(minted(1), CALLER)
        outsider.close()
        assert log.failure is None
        assert (await log.head())[0] == 2


async def test_an_append_waits_for_somebody_else_s_lock(path: Path) -> None:
    async with make_log(path) as log:
        await log.append(started(), CALLER)
        outsider = driver.connect(path, isolation_level=None)
        outsider.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as group:
            group.start_soon(log.append, minted(1), CALLER)
            await anyio.wait_all_tasks_blocked()
            assert await log.read_stream(operation(1)) == []
            outsider.execute("COMMIT")
        outsider.close()
        assert len(await log.read_stream(operation(1))) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB, where root may mount one."""
    mountpoint = tmp_path / "small"
    mountpoint.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mountpoint)],
                             capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk; the file size limit is tested in any case")
    yield mountpoint
    subprocess.run(["umount", "--lazy", str(mountpoint)], check=True)


async def test_a_full_disk_refuses_stores_nothing_and_works_again_with_room(small_disk: Path) -> None:
    path = small_disk / "log.db"
    async with make_log(path) as log:
        await log.append(started(), CALLER)
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 1_500_000)
        body = NewBody(operation(1), "image", os.urandom(700_000))
        with pytest.raises(StoreUnavailableError, match="nothing was stored"):
            await log.append(minted(1, bodies=(body,)), CALLER)
        assert await log.read_stream(operation(1)) == []
        ballast.unlink()
        await log.append(minted(1, bodies=(body,)), CALLER)
        assert log.failure is None
        assert await log.read_body(operation(1), body.body.digest) == body.content
    with LogReader(path, CATALOGUE) as reader:
        assert list(reader.find_breaks()) == []


def test_a_write_that_the_system_refuses_ends_the_log_s_writing(path: Path) -> None:
    """Beyond the file size limit a write fails as an I/O error does: nothing is acknowledged after it."""
    script = """
import os, resource, sys, anyio
from pathlib import Path
from codespace_es.ports.log import NewBody, StoreUnavailableError
from unit.log.sample_events import CALLER, make_log, minted, operation, started

async def main():
    async with make_log(Path(sys.argv[1])) as log:
        await log.append(started(), CALLER)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        body = NewBody(operation(1), "image", os.urandom(900_000))
        for append in (minted(1, bodies=(body,)), minted(2)):
            try:
                await log.append(append, CALLER)
            except StoreUnavailableError:
                print("refused", log.failure is not None)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
anyio.run(main)
"""
    ended = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False,
                           env=child_environment())
    assert ended.stdout == "refused True\nrefused True\n", ended.stderr
    with LogReader(path, CATALOGUE) as reader:
        assert [event.position for event in reader.read_log()] == [1]


async def test_the_open_index_is_compared_with_the_log_and_made_anew(path: Path) -> None:
    await fill(path)
    tamper(path, f"DELETE FROM open_items WHERE stream_id = '{operation(2)}'",
           f"INSERT INTO open_items VALUES ('{operation(1)}', 'operation', NULL, '{ME}', 2)",
           f"UPDATE open_items SET position = 1 WHERE stream_id = '{operation(3)}'")
    async with make_log(path) as log:
        wrong = await log.compare_open_index()
        assert [(difference.stored is None, difference.folded is None) for difference in wrong] == [
            (False, True), (True, False), (False, False)]
        assert await log.reindex() == wrong
        assert await log.compare_open_index() == []
        assert [item.stream_id for item in await log.open_items(kind="operation")] == [operation(2), operation(3)]
        await log.append(finished(2), CALLER)


async def test_reindexing_leaves_the_rows_of_a_stream_that_a_newer_version_wrote(path: Path) -> None:
    await fill(path)
    async with make_log(path) as log:
        await log.append(Append((NewEvent(operation(2), 2, FromTheFuture()),)), CALLER)
        assert await log.reindex() == []
        assert operation(2) in {item.stream_id for item in await log.open_items()}


async def test_a_long_log_is_verified_from_any_row_on(path: Path) -> None:
    async with make_log(path) as log:
        await log.append(started(), CALLER)
        events = (NewEvent(StreamId("counter"), version, CounterIncreased()) for version in range(1, 500))
        await log.append(Append(tuple(events)), CALLER)
    tamper(path, "UPDATE events SET hash = zeroblob(32) WHERE position = 77")
    with LogReader(path, CATALOGUE) as reader:
        assert [broken.position for broken in reader.find_breaks()] == [77, 78]
