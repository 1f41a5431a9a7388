"""A log is read without locks only where nobody can be writing it: on media that can't be written."""

import os
from pathlib import Path

import anyio
import pytest

from adapters.log import reader
from adapters.log.reader import LogReader
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

    original = reader.connect_reader
    monkeypatch.setattr(reader, "connect_reader", refuse)
    with pytest.raises(StoreUnavailableError):
        LogReader(path, CATALOGUE)
    monkeypatch.setattr(reader.os, "access", is_accessible)
    with LogReader(path, CATALOGUE) as source:
        assert source.head()[0] > 0
