"""A death at every moment of a patch's whole story, and at every moment of settling what it left.

The promises checked at each: it was done wholly or not at all; a repeat of the request gets one answer for ever; what
was acknowledged stays; a second settling changes nothing; no temporary file is left.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.ports.fault_points import FaultPoint, no_faults
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.errors import CodespaceError
from support.crash_faults import FailAt, Recorder
from support.crash_faults import count as tally
from support.kept_trees import keep
from support.server import DieFrom, Server, ServerDied

pytestmark = pytest.mark.anyio

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-one
+ONE
*** Add File: new/deep/b.txt
+fresh
*** Delete File: gone.txt
*** Update File: c.txt
*** Move to: moved/c.txt
@@
-see
+SEE
*** End Patch
"""
COMMAND = ApplyPatch(workspace_id="demo", patch=PATCH, operation_key="the-key")

STORY_POINTS = {
    FaultPoint.APPEND_BEGIN, FaultPoint.APPEND_IN_TRANSACTION, FaultPoint.APPEND_COMMITTED,
    FaultPoint.PATCH_LEASED, FaultPoint.PATCH_PLANNED, FaultPoint.PATCH_MINTED, FaultPoint.PATCH_WRITTEN,
    FaultPoint.PATCH_FINISHED,
}
SETTLE_POINTS = {
    FaultPoint.SETTLE_LOCKED, FaultPoint.SETTLE_FILES_DONE, FaultPoint.SETTLE_CLOSED, FaultPoint.INSTANCE_RECOVERED,
}

Tree = dict[str, tuple[bytes, int] | None]


def fresh_scene(scratch: Path) -> Path:
    """Make a workspace with something to update, delete and move."""
    root = scratch / "ws"
    root.mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "gone.txt").write_text("bye\n")
    (root / "c.txt").write_text("see\n")
    (root / "c.txt").chmod(0o755)
    return root


def tree(root: Path) -> Tree:
    """Every path beneath `root`: a file's bytes and mode, None for a directory."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o7777) if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def scratches(memory_path: Path) -> Iterator[Path]:
    """One fresh directory after the other."""
    for number in count():
        scratch = memory_path / str(number)
        scratch.mkdir()
        yield scratch


async def report(server: Server) -> dict[str, Any] | None:
    """What the log says of the key, None if nothing."""
    try:
        return (await server.handle(ReportOperation(operation_key="the-key"))).to_wire()
    except CodespaceError as error:
        if error.code != "OPERATION_NOT_FOUND":
            raise
        return None


async def run_to_death(scratch: Path, root: Path, k: int) -> bool:
    """Run the patch in a server that dies at its k-th point; return whether it got there."""
    server = await Server(scratch, {"demo": root}).start()
    server.hook = fate = DieFrom(k)
    try:
        await server.handle(COMMAND)
    except ServerDied:
        pass
    except CodespaceError as error:
        # On the writer thread a death is a failed transaction: the client is told that nothing was stored.
        if error.code != "STORE_UNAVAILABLE":
            raise
    await server.die()
    return fate.has_struck


async def check_whole(server: Server, root: Path, before: Tree, after: Tree) -> str:
    """Check that disk and log agree; return what the repeat was answered."""
    said = await report(server)
    if said is None:
        assert tree(root) == before
        answer = (await server.handle(COMMAND)).to_wire()
        assert answer["status"] == "applied"
        assert answer["replayed"] is False
        assert tree(root) == after
        return "nothing"
    status = str(said["status"])
    assert status in ("applied", "failed_rolled_back")
    assert tree(root) == (after if status == "applied" else before)
    answer = (await server.handle(COMMAND)).to_wire()
    assert (answer["status"], answer["operation_id"], answer["replayed"]) == (status, said["operation_id"], True)
    assert [event["name"] for event in said["events"]] == ["minted", "finished"]
    return status


async def reference(scratch: Path) -> tuple[Tree, Tree, int, set[FaultPoint]]:
    """Return the tree before and after, how many points the story has, and which."""
    root = fresh_scene(scratch)
    before = tree(root)
    recorder = Recorder()
    async with Server(scratch, {"demo": root}) as server:
        server.hook = recorder
        assert (await server.handle(COMMAND)).to_wire()["status"] == "applied"
        points = list(recorder.points)
        server.hook = no_faults
    return before, tree(root), len(points), set(points)


async def test_a_death_at_any_moment_leaves_all_or_nothing_and_one_answer(memory_path: Path) -> None:
    """T1: crash at every point of the story, settle, ask, repeat, settle again."""
    fresh = scratches(memory_path)
    before, after, points, names = await reference(next(fresh))
    assert names >= STORY_POINTS
    seen = set()
    for k in range(1, points + 1):
        scratch = next(fresh)
        root = fresh_scene(scratch)
        assert await run_to_death(scratch, root, k)
        async with Server(scratch, {"demo": root}) as second:
            seen.add(await check_whole(second, root, before, after))
            settled = tree(root)
        async with Server(scratch, {"demo": root}) as third:
            await third.settle()
            assert tree(root) == settled
        tally("deaths in a patch story", 1)
    assert seen == {"nothing", "failed_rolled_back", "applied"}


async def test_a_death_while_settling_is_settled_by_the_next(memory_path: Path) -> None:
    """T2: for deaths spread over the story, crash at every point of the settling that follows."""
    fresh = scratches(memory_path)
    before, after, points, _ = await reference(next(fresh))
    names: set[FaultPoint] = set()
    for k in range(4, points + 1, 7):
        scratch = next(fresh)
        root = fresh_scene(scratch)
        await run_to_death(scratch, root, k)
        left = keep(scratch)
        for k2 in count(1):
            left.put_back(scratch)
            second = await Server(scratch, {"demo": root}, settles_at_start=False).start()
            second.hook = fate = DieFrom(k2)
            with suppress(ServerDied, StoreUnavailableError):
                await second.settle()
            names |= set(fate.points)
            await second.die()
            async with Server(scratch, {"demo": root}) as third:
                await check_whole(third, root, before, after)
            tally("deaths while settling", 1)
            if not fate.has_struck:
                break
    assert names >= SETTLE_POINTS


async def test_an_error_at_any_moment_is_told_truly(memory_path: Path) -> None:
    """T3: an I/O error at every point, no death: what the caller is told is what disk and log say."""
    fresh = scratches(memory_path)
    before, after, points, _ = await reference(next(fresh))
    for k in range(1, points + 1):
        scratch = next(fresh)
        root = fresh_scene(scratch)
        told = None
        server = await Server(scratch, {"demo": root}).start()
        server.hook = FailAt(k)
        with suppress(CodespaceError, OSError):
            told = (await server.handle(COMMAND)).to_wire()["status"]
        server.hook = no_faults
        await server.die()
        if told == "applied":
            assert tree(root) == after
        elif told is not None:
            assert told == "failed_rolled_back"
            assert tree(root) == before
        async with Server(scratch, {"demo": root}) as second:
            status = await check_whole(second, root, before, after)
            assert told is None or status == told
        tally("errors in a patch story", 1)


async def test_an_edit_between_death_and_restart_is_never_overwritten(memory_path: Path) -> None:
    """T11: somebody writes one of the files before the next server starts; their bytes stay."""
    fresh = scratches(memory_path)
    _, _, points, _ = await reference(next(fresh))
    for k in range(3, points + 1, 4):
        for name in ("a.txt", "new/deep/b.txt", "gone.txt", "moved/c.txt"):
            scratch = next(fresh)
            root = fresh_scene(scratch)
            await run_to_death(scratch, root, k)
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("mine, not yours\n")
            async with Server(scratch, {"demo": root}) as second:
                assert (root / name).read_text() == "mine, not yours\n"
                said = await report(second)
                if said is not None and said["status"] in ("unknown", "failed_partial"):
                    assert {finding["path"] for finding in said["findings"]} >= {name}
            assert not list(root.rglob(".op-*"))
            tally("foreign edits after a death", 1)
