"""What real servers write on real files keeps every law, after each moment of death too, and the files agree."""

from pathlib import Path

import anyio
import pytest

from adapters.log.reader import LogReader
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.fault_points import no_faults
from codespace_es.vocabulary.errors import CodespaceError
from replay.story import tell
from replay.timeline import Timeline, Wanted
from replay.verify import VerifyReport, verify
from replay.workspace_check import WorkspaceReport, check_workspace
from support.server import DieFrom, Server, ServerDied

pytestmark = pytest.mark.anyio

ADD = """*** Begin Patch
*** Add File: a.txt
+one
*** Add File: deep/er/b.txt
+b
*** End Patch"""
CHANGE = """*** Begin Patch
*** Update File: a.txt
@@
-one
+two
*** Update File: deep/er/b.txt
*** Move to: c.txt
@@
-b
+c
*** End Patch"""
IMPOSSIBLE = """*** Begin Patch
*** Update File: a.txt
@@
-nothing of the kind
+two
*** End Patch"""


def audit(scratch: Path, root: Path, *, is_settled: bool = True) -> tuple[VerifyReport, WorkspaceReport]:
    """Return both halves of the audit, which have to find nothing."""
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as reader:
        report, files = verify(reader), check_workspace(reader, root, is_settled=is_settled)
    assert report.findings == ()
    assert files.problems == ()
    return report, files


@pytest.fixture
def root(tmp_path):
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


async def test_the_log_of_a_real_server_keeps_every_law_and_its_files_agree(tmp_path, root):
    async with Server(tmp_path, {"demo": root}) as server:
        await server.handle(ApplyPatch(workspace_id="demo", patch=ADD, operation_key="add"))
        changed = await server.handle(ApplyPatch(workspace_id="demo", patch=CHANGE, operation_key="change"))
        again = await server.handle(ApplyPatch(workspace_id="demo", patch=CHANGE, operation_key="change"))
        assert again.operation_id == changed.operation_id
        with pytest.raises(CodespaceError):
            await server.handle(ApplyPatch(workspace_id="demo", patch=IMPOSSIBLE, operation_key="impossible"))
        report, _ = audit(tmp_path, root)
        assert report.open_items == 1
        await server.handle(RevertOperation(operation_id=changed.operation_id, check_only=True))
        await server.handle(RevertOperation(operation_id=changed.operation_id))
    report, files = audit(tmp_path, root)
    assert (report.open_items, files.files) == (0, 3)
    with LogReader(tmp_path / "data" / "codespace.db", CATALOGUE) as reader:
        story = tell(reader, "change")
        assert (story.id, story.report.status) == (changed.operation_id, "applied")
        assert story.report.reverted_by is not None
        assert [file.planned.path for file in story.files] == ["a.txt", "deep/er/b.txt", "c.txt"]
        topics = [entry.topic for entry in Timeline(reader).read(Wanted(operation=changed.operation_id)).entries]
    assert topics[:3] == ["claim.taken.v1", "operation.minted.v1", "operation.finished.v1"]
    assert topics[-1] == "operation.reverted.v1"


async def test_a_file_that_was_changed_behind_the_servers_back_is_told(tmp_path, root):
    async with Server(tmp_path, {"demo": root}) as server:
        await server.handle(ApplyPatch(workspace_id="demo", patch=ADD))
    (root / "a.txt").write_text("somebody else's\n")
    with LogReader(tmp_path / "data" / "codespace.db", CATALOGUE) as reader:
        files = check_workspace(reader, root)
    assert [problem.path for problem in files.problems] == ["a.txt"]


async def test_whenever_a_server_dies_log_and_files_agree_before_and_after_settling(tmp_path):
    deaths = 0
    for k in range(1, 200):
        scratch = tmp_path / str(k)
        root = scratch / "root"
        root.mkdir(parents=True)
        async with Server(scratch, {"demo": root}) as first:
            await first.handle(ApplyPatch(workspace_id="demo", patch=ADD))
        faults = DieFrom(k)
        with anyio.fail_after(30):
            is_over = await _patch_and_die(scratch, root, faults)
        if is_over:
            break
        deaths += 1
        audit(scratch, root, is_settled=False)
        async with Server(scratch, {"demo": root}):
            pass
        report, _ = audit(scratch, root)
        assert report.open_items == 0
    assert deaths > 20


async def _patch_and_die(scratch: Path, root: Path, faults: DieFrom) -> bool:
    """Run a patch that dies on cue; return whether it ended before its cue."""
    server = await Server(scratch, {"demo": root}).start()
    server.hook = faults
    try:
        await server.handle(ApplyPatch(workspace_id="demo", patch=CHANGE, operation_key="change"))
    except ServerDied:
        await server.die()
        return False
    except CodespaceError:
        # The log's own writer died: the effect has been told that nothing was stored.
        assert faults.has_struck
        await server.die()
        return False
    if faults.has_struck:
        await server.die()
        return False
    server.hook = no_faults
    await server.stop()
    return True
