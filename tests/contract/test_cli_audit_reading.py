"""A log is read without locks only where nobody can be writing it: on media that can't be written."""

import os
import shutil
from pathlib import Path

import anyio
import pytest

from adapters.log.reader import LogReader
from adapters.log.sqlite import reading
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import StoreUnavailableError
from support.cli_project import Project, patch

PYSQLITE = pytest.importorskip("pysqlite3.dbapi2")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose log has everything in its main file and an empty write-ahead log."""
    made = Project.make(tmp_path)

    async def live() -> None:
        async with made.opened() as opened:
            await patch(opened, key="first")

    anyio.run(live)
    return made


READING = (
    ["verify"], ["log", "--text", "hello"], ["show", "first"], ["replay", "--all"], ["diff", "0.."], ["files"],
    ["compare"], ["export", "--bodies"], ["export", "--format", "otlp"], ["prune", "--older-than", "0m"],
    ["store", "reindex", "--check"], ["approvals", "list"], ["processes"],
)


def test_reading_changes_neither_the_log_nor_what_was_not_folded_back_into_it(project: Project, tmp_path: Path) -> None:
    """What a killed server leaves: the newest events stand in the write-ahead log alone."""
    left = Project(project.root, tmp_path / "left")

    async def live() -> None:
        async with project.opened() as opened:
            await patch(opened, "*** Begin Patch\n*** Delete File: greeting.txt\n*** End Patch\n", key="second")
            shutil.copytree(project.data, left.data)

    def looks() -> dict[str, tuple[int, int, int, bytes]]:
        return {
            path.name: (status.st_ino, status.st_mtime_ns, status.st_size, path.read_bytes())
            for path in (*left.data.iterdir(), *left.root.iterdir()) if not path.name.endswith("-shm")
            for status in [path.stat()]
        }

    anyio.run(live)
    before = looks()
    assert before["codespace.db-wal"][2] > 0
    for command in READING:
        done = (left.run if command[0] == "export" else left.call)(*command)
        assert done.returncode == 0, (command, done.stderr)
        assert looks() == before, command


def test_a_locked_log_is_not_read_around_its_lock(project: Project) -> None:
    path = project.data / "codespace.db"
    connection = PYSQLITE.connect(path, isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    try:
        waiting = path.with_name(path.name + "-wal")
        assert not waiting.exists() or not waiting.stat().st_size
        with pytest.raises(StoreUnavailableError, match="locked"):
            LogReader(path, CATALOGUE)
        done = project.call("verify")
    finally:
        connection.close()
    assert done.returncode == 2
    assert "locked" in done.stderr


def test_a_log_on_read_only_media_is_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.data / "codespace.db"

    def is_accessible(_path: object, mode: int) -> bool:
        return not mode & os.W_OK

    # As the superuser, who runs some of these tests, nothing but the medium itself refuses to be written.
    def refuse(path: Path, *, is_immutable: bool = False) -> object:
        if not is_immutable:
            raise StoreUnavailableError("unable to open database file") from PYSQLITE.OperationalError("unable")
        return original(path, is_immutable=True)

    original = reading.connect_reader
    monkeypatch.setattr(reading, "connect_reader", refuse)
    with pytest.raises(StoreUnavailableError):
        LogReader(path, CATALOGUE)
    monkeypatch.setattr(reading.os, "access", is_accessible)
    with LogReader(path, CATALOGUE) as source:
        assert source.head()[0] > 0
