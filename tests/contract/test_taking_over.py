"""What was left by servers whose locks nobody can ask any more is taken over, on this very machine too."""

from pathlib import Path

import pytest

from adapters.locks.flock import LockDirectory
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.command_handlers.taking_over import HostTakenOver, TakeOverHost
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.crash_faults import Death
from support.holds import audit
from support.server import MACHINE, Server, ServerDied

pytestmark = pytest.mark.anyio

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch\n"
TAKE_OVER = TakeOverHost(machine_id=MACHINE, reason="its locks were deleted")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    return made


def die_with_a_temp(point: FaultPoint) -> None:
    if point is FaultPoint.TEMP_SYNCED:
        raise Death


async def leave_a_patch_half_done(scratch: Path, root: Path) -> None:
    server = await Server(scratch, {"demo": root}, faults=die_with_a_temp).start()
    with pytest.raises(ServerDied):
        await server.handle(ApplyPatch(workspace_id="demo", patch=PATCH, operation_key="k"))
    await server.die()


async def status_of(server: Server) -> str:
    return (await server.handle(ReportOperation(operation_key="k"))).to_wire()["status"]


async def test_what_was_left_with_locks_that_were_deleted_is_taken_over(tmp_path: Path, root: Path) -> None:
    await leave_a_patch_half_done(tmp_path, root)
    (tmp_path / "locks").rename(tmp_path / "locks-of-before")
    async with Server(tmp_path, {"demo": root}) as server:
        assert await status_of(server) == "unknown"
        taken = await server.handle(TAKE_OVER, channel="cli")
        assert isinstance(taken, HostTakenOver)
        assert (len(taken.instances), len(taken.operations)) == (1, 1)
        report = (await server.handle(ReportOperation(operation_key="k"))).to_wire()
        assert (report["status"], report["error"]["code"]) == ("unknown", "FILE_OPERATION_FAILED")
        assert "findings" not in report  # nobody has looked at its files
        with pytest.raises(CodespaceError, match="settle what a dead one"):
            await server.handle(TAKE_OVER, channel="cli")
        answer = await server.handle(ApplyPatch(workspace_id="demo", patch=PATCH, operation_key="k2"))
        assert answer.to_wire()["status"] == "applied"
    assert audit(tmp_path).findings == ()


async def test_what_can_be_settled_here_is_not_taken_over(tmp_path: Path, root: Path) -> None:
    await leave_a_patch_half_done(tmp_path, root)
    async with Server(tmp_path, {"demo": root}, settles_at_start=False) as server:
        with pytest.raises(CodespaceError) as refused:
            await server.handle(TAKE_OVER, channel="cli")
        assert refused.value.code is ErrorCode.INVALID_ARGUMENT
        assert await status_of(server) == "failed_rolled_back"


async def test_a_server_that_starts_removes_the_locks_of_the_dead_of_any_log(tmp_path: Path, root: Path) -> None:
    """One that was killed, of a log that is gone: nobody would ever ask for its lock."""
    await leave_a_patch_half_done(tmp_path, root)
    left = LockDirectory(str(tmp_path / "locks")).try_lock("inst-of-another-log")
    assert left is not None
    left.release()
    async with Server(tmp_path, {"demo": root}) as server:
        own = f"{server.world.instance_id}.lock"
        assert [path.name for path in (tmp_path / "locks").glob("inst-*")] == [own]
        assert await status_of(server) == "failed_rolled_back"
