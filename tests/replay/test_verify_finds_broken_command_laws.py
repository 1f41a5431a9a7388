"""`verify` finds what can't be true together of commands, in a log that a real server wrote."""

import shutil
from pathlib import Path

import anyio
import pytest
from tampering import Tamperer

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.finding import Law
from replay.verify import verify
from support.commands import Commands
from support.server import Server


async def _write(scratch: Path) -> None:
    root = scratch / "ws"
    root.mkdir()
    async with Server(scratch, {"ws": root}, sandbox="off") as server:
        commands = Commands(server)
        await commands.run("true", operation_key="k")
        process_id = await commands.start("sleep", "300")
        await commands.terminate(process_id)
        await commands.ended(process_id)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("commands")
    anyio.run(_write, scratch)
    return scratch / "data" / "codespace.db"


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(written, tmp_path / "copy.db"))


def places(path: Path) -> dict[Law, int]:
    with LogReader(path, CATALOGUE) as reader:
        return {finding.law: finding.position for finding in verify(reader).findings}


def position_of(tamperer: Tamperer, topic: str, *, last: bool = False) -> int:
    found = tamperer.execute("SELECT position FROM events WHERE topic = ? ORDER BY position", topic)
    assert found
    return int(found[-1 if last else 0][0])


def test_what_a_real_server_wrote_breaks_no_law(path):
    assert places(path) == {}


def test_a_command_whose_key_was_never_claimed_is_found(path):
    with Tamperer(path) as tamperer:
        tamperer.drop(position_of(tamperer, "claim.taken.v1"))
        tamperer.hide()
        spawned = position_of(tamperer, "process.spawned.v1")
    assert places(path)[Law.CLAIM] == spawned


def test_a_claim_with_another_fingerprint_than_its_command_is_found(path):
    with Tamperer(path) as tamperer:
        spawned = position_of(tamperer, "process.spawned.v1")
        mark = b'"fingerprint":"sha256:'
        start = tamperer.state(spawned).index(mark) + len(mark)
        tamperer.change_state(spawned, lambda state: state[:start] + b"0" * 64 + state[start + 64:])
        tamperer.hide()
    assert places(path)[Law.CLAIM] == spawned


def test_a_command_of_a_directory_that_is_not_on_record_is_found(path):
    with Tamperer(path) as tamperer:
        tamperer.drop(position_of(tamperer, "workspace.bound.v1"))
        tamperer.hide()
        spawned = position_of(tamperer, "process.spawned.v1")
    assert places(path)[Law.WORKSPACE] == spawned


@pytest.mark.parametrize(("old", "new", "is_last"), [
    (b'"termination":"exited","exit_code":0', b'"termination":"timeout"', False),
    (b'"termination":"terminated"', b'"termination":"exited","exit_code":0', True),
    (b'"termination":"terminated"', b'"termination":"timeout"', True),
])
def test_an_end_that_nobody_asked_for_or_that_was_asked_for_is_found(path, old, new, is_last):
    with Tamperer(path) as tamperer:
        exited = position_of(tamperer, "process.exited.v1", last=is_last)
        assert old in tamperer.state(exited)
        tamperer.change_state(exited, lambda state: state.replace(old, new))
        tamperer.hide()
    assert places(path)[Law.PROCESS] == exited
