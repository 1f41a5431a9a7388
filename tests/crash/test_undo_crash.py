"""A death, or an error, at every moment of an undo of several operations: all of them are undone, or none.

The promises checked at each: files and marks agree; a repeat of the request gets one answer; the log verifies.
"""

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from adapters.log.reader import LogReader
from codespace_es.aggregates.operation import OPERATION, Reverted
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reverting import RevertOperations
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.fault_points import FaultHook, no_faults
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.identifiers import StreamId
from replay.verify import verify
from support.crash_faults import FailAt, Recorder
from support.crash_faults import count as tally
from support.kept_trees import keep
from support.server import DieFrom, Server, ServerDied

pytestmark = pytest.mark.anyio

PATCHES = (
    "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n",
    "*** Begin Patch\n*** Add File: new/deep.txt\n+fresh\n*** Delete File: gone.txt\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-two\n+three\n*** End Patch\n",
)
Tree = dict[str, str | None]


class Scene:
    """A workspace with three patches applied, on its own log, and the request that undoes them."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.root = scratch / "ws"
        self.root.mkdir(parents=True)
        (self.root / "a.txt").write_text("one\n")
        (self.root / "gone.txt").write_text("bye\n")
        self.names: list[str] = []

    def server(self) -> Server:
        return Server(self.scratch, {"demo": self.root})

    def tree(self) -> Tree:
        return {
            str(path.relative_to(self.root)): path.read_text() if path.is_file() else None
            for path in sorted(self.root.rglob("*"))
        }

    async def disturb(self, hook: FaultHook) -> dict[str, Any] | None:
        """Apply the patches, undo them in a server that the hook strikes; return what was told, if anything."""
        server = await self.server().start()
        for patch in PATCHES:
            answer = await server.handle(ApplyPatch(workspace_id="demo", patch=patch))
            self.names.append(answer.to_wire()["operation_id"])
        server.hook = hook
        told = None
        with suppress(ServerDied, CodespaceError, OSError, StoreUnavailableError):
            told = (await server.handle(self.command)).to_wire()
        server.hook = no_faults
        await server.die()
        return told

    @property
    def command(self) -> RevertOperations:
        return RevertOperations(operation_id=self.names[0], also=tuple(self.names[1:]), operation_key="the-key")

    def marks(self) -> set[str | None]:
        """Return by whom each of the three is said to be undone."""
        with LogReader(self.scratch / "data" / "codespace.db", CATALOGUE) as reader:
            states = [OPERATION.fold_recorded(reader.read_stream(StreamId(name))) for name in self.names]
            assert verify(reader).findings == ()
        return {state.by if isinstance(state, Reverted) else None for state in states}


async def reference(scratch: Path) -> tuple[Tree, Tree, int]:
    """Return the tree before and after the undo, and how many points it passes."""
    scene = Scene(scratch)
    before, recorder = scene.tree(), Recorder()
    told = await scene.disturb(recorder)
    assert told is not None
    assert told["status"] == "applied"
    assert len(told["also_reverts"]) == 2
    assert scene.tree() == before
    async with scene.server() as server:
        await server.handle(RevertOperations(operation_id=told["operation_id"]))
    return scene.tree(), before, len(recorder.points)


async def check(scene: Scene, applied: Tree, undone: Tree, told: dict[str, Any] | None) -> str:
    """Settle, ask again and check every promise; return what the disturbed undo had come to."""
    async with scene.server() as second:
        await second.settle()
        tree, marks = scene.tree(), scene.marks()
        if told is not None and told["status"] == "applied" and tree == {**undone, "new": None}:
            (scene.root / "new").rmdir()  # an emptied directory that can't be removed stays, and is no reason to fail
            tree = scene.tree()
        assert tree in (applied, undone)
        assert len(marks) == 1, "all of them, or none"
        assert (None not in marks) == (tree == undone)
        again = (await second.handle(scene.command)).to_wire()
        is_first = not again["replayed"]
        assert scene.tree() == (undone if is_first else tree)
        assert (again["status"] == "applied") == (scene.tree() == undone)
        if told is not None:
            assert {**told, "replayed": True} == again
    assert not list(scene.root.rglob(".op-*"))
    return "nothing" if is_first else str(again["status"])


async def test_a_death_at_any_moment_undoes_all_or_none(memory_path: Path) -> None:
    applied, undone, points = await reference(memory_path / "reference")
    seen = set()
    for k in range(1, points + 1):
        scene = Scene(memory_path / str(k))
        told = await scene.disturb(DieFrom(k))
        seen.add(await check(scene, applied, undone, told))
        tally("deaths in an undo of several", 1)
    assert seen == {"nothing", "failed_rolled_back", "applied"}


async def test_an_error_at_any_moment_is_told_truly(memory_path: Path) -> None:
    applied, undone, points = await reference(memory_path / "reference")
    for k in range(1, points + 1):
        scene = Scene(memory_path / str(k))
        told = await scene.disturb(FailAt(k))
        await check(scene, applied, undone, told)
        tally("errors in an undo of several", 1)


async def test_a_death_while_it_is_settled_is_settled_by_the_next(memory_path: Path) -> None:
    applied, undone, points = await reference(memory_path / "reference")
    for k in range(points // 3, points, points // 4):
        scene = Scene(memory_path / str(k))
        await scene.disturb(DieFrom(k))
        left = keep(scene.scratch)
        for k2 in count(1):
            left.put_back(scene.scratch)
            second = await Server(scene.scratch, {"demo": scene.root}, settles_at_start=False).start()
            second.hook = fate = DieFrom(k2)
            with suppress(ServerDied, StoreUnavailableError):
                await second.settle()
            await second.die()
            await check(scene, applied, undone, None)
            if not fate.has_struck:
                break
