"""One log, written once by the real adapter, and a copy of it for each test."""

import shutil
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
from scripted_log import write_a_life

from adapters.log.places import LogPlace
from codespace_es.vocabulary.identifiers import OperationId


class Life(NamedTuple):
    """A log file of 30 events, with its operations by what became of them."""

    path: Path
    operations: dict[str, OperationId]


@pytest.fixture(scope="session")
def written_life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    path = tmp_path_factory.mktemp("life") / "log.db"
    return Life(path, anyio.run(write_a_life, path))


@pytest.fixture
def life(written_life: Life, tmp_path: Path) -> Life:
    return Life(Path(shutil.copy(written_life.path, tmp_path / "copy.db")), written_life.operations)


@pytest.fixture(scope="session", params=["file", "postgres"])
def place(request: pytest.FixtureRequest, written_life: Life) -> LogPlace:
    """Where the same life was written: a file, and PostgreSQL."""
    if request.param == "file":
        return written_life.path
    address: LogPlace = request.getfixturevalue("postgres").new_log()
    assert anyio.run(write_a_life, address) == written_life.operations
    return address
