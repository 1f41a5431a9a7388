"""A death, or an error, at every moment of a push and of a resolve, by staged edits and by callbacks.

The promises checked at each: what is popped as applied is on disk, what waits has written nothing, what was done can't
be done again, here, there or after a restart; the log of it is whole.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codespace_es.command_handlers.calling_back import begin_effect
from codespace_es.command_handlers.outcomes import find_end
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.ports.fault_points import FaultHook, FaultPoint
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.ports.pending_actions import PushedAction
from codespace_es.ports.tool_host import ActionCall, CallbackResult
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from support.crash_faults import Death, FailAt, Recorder
from support.crash_faults import count as tally
from support.holds import ask, audit, grant
from support.kept_trees import keep
from support.pending import (
    CALLER,
    FakeToolHost,
    push_closure,
    push_edits,
    push_handler,
    resolve,
    session_of,
    stack_of,
)
from support.server import DieFrom, Server, ServerDied

pytestmark = pytest.mark.anyio

_BEFORE, _AFTER = "0\n", "0\n1\n"
_PATCH = "*** Begin Patch\n*** Update File: n.txt\n@@\n-0\n+0\n+1\n*** End Patch\n"

POINTS_OF_EDITS = {
    FaultPoint.APPEND_BEGIN, FaultPoint.APPEND_COMMITTED, FaultPoint.PATCH_LEASED, FaultPoint.PATCH_PLANNED,
    FaultPoint.PATCH_MINTED, FaultPoint.PATCH_WRITTEN, FaultPoint.PATCH_FINISHED,
}
POINTS_OF_CALLBACKS = {FaultPoint.RESOLVE_STARTED, FaultPoint.CALLBACK_RETURNED}


@dataclass
class Scene:
    """A fresh directory with a log, a workspace and something outside that a callback can do only once."""

    scratch: Path
    approvals: str = "off"
    runs: int = 0
    """How often the callback ran what can't be taken back."""
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.scratch / "ws"
        self.root.mkdir(parents=True)
        (self.root / "n.txt").write_text(_BEFORE)

    def make(self, *, settles_at_start: bool = True) -> Server:
        """Return a server with the tools that every server of this scene has."""
        host = FakeToolHost({"patches": self._patches, "external": self._external})
        self.server = Server(
            self.scratch, {"demo": self.root}, approvals=self.approvals, tool_host=host,
            settles_at_start=settles_at_start,
        )
        return self.server

    async def _patches(self, _call: ActionCall) -> CallbackResult:
        return CallbackResult("patched", patches=(_PATCH,))

    async def _external(self, call: ActionCall) -> CallbackResult:
        await begin_effect(self.server.world, session_of(self.server), call.action_id, CALLER)
        self.runs += 1
        return CallbackResult("ran", patches=(_PATCH,), is_external=True)

    async def push(self, kind: str) -> PushedAction:
        """Stage what a `kind` stages."""
        if kind.startswith(("edits", "held")):
            return await push_edits(self.server, self.root, {"n.txt": _AFTER.encode()})
        if kind.startswith("closure"):
            host = self.server.world.tool_host
            assert isinstance(host, FakeToolHost)
            return await push_closure(self.server, host, self._patches)
        return await push_handler(self.server, kind.partition(",")[0])

    @property
    def text(self) -> str:
        return (self.root / "n.txt").read_text()


KINDS = {
    "edits": POINTS_OF_EDITS,
    "held": POINTS_OF_EDITS,
    "patches": POINTS_OF_EDITS | POINTS_OF_CALLBACKS,
    "external": POINTS_OF_EDITS | POINTS_OF_CALLBACKS | {FaultPoint.RESOLVE_EFFECT_BEGUN},
    "closure": POINTS_OF_EDITS | POINTS_OF_CALLBACKS,
    "edits, discarded": {FaultPoint.APPEND_COMMITTED},
    "patches, discarded": {FaultPoint.RESOLVE_STARTED, FaultPoint.RESOLVE_ENDED},
}


async def prepare(scene: Scene, kind: str) -> tuple[str, Command]:
    """Stage, and return the action with the request that is going to be disturbed."""
    action_id = (await scene.push(kind)).action_id
    action = "discard" if kind.endswith("discarded") else "apply"
    if kind == "held":
        held = (await resolve(scene.server, id=action_id))["approval_id"]
        await grant(scene.server, held)
        return action_id, ResumeOperation(approval_id=held)
    return action_id, ResolveAction.model_validate({"action": action, "id": action_id})


def scene_of(path: Path, kind: str) -> Scene:
    return Scene(path, "confirm" if kind == "held" else "off")


async def points_of(path: Path, kind: str) -> list[FaultPoint]:
    """Return the points that an undisturbed resolve passes, up to its answer."""
    scene, recorder = scene_of(path, kind), Recorder()
    async with scene.make() as server:
        _, request = await prepare(scene, kind)
        server.hook = recorder
        await ask(server, request)
    assert set(recorder.points) >= KINDS[kind]
    return list(recorder.points)


async def disturb(scene: Scene, kind: str, hook: FaultHook) -> tuple[str, Command, dict[str, Any] | None]:
    """Resolve in a server whose hook strikes, and let it die; return what the client was told, or None."""
    server = await scene.make().start()
    action_id, request = await prepare(scene, kind)
    server.hook = hook
    told = None
    with suppress(ServerDied, OSError, StoreUnavailableError):
        told = await ask(server, request)
    await server.die()
    return action_id, request, told


async def check(scene: Scene, kind: str, action_id: str, request: Command, told: dict[str, Any] | None) -> str:
    """Check every promise in the next server, then finish what was left; return how the action was found."""
    server = scene.server
    stack = await stack_of(server)
    waits = bool(stack.state.unresolved)
    end = find_end(stack.recorded, action_id)
    assert waits != (end is not None)
    found = "waits" if end is None else str(getattr(end, "outcome", None))
    is_applied = found == "applied"
    assert scene.text == (_AFTER if is_applied else _BEFORE)
    assert scene.runs <= 1
    if scene.runs:
        assert found in ("applied", "failed"), "what was run is never on the stack again"
    if told is not None and told.get("code") is None:
        outcome = told.get("resolve", told)["outcome"]
        assert outcome == found
    runs = scene.runs
    again = await ask(server, request)
    if waits and kind == "held":  # its hold is parked, or used up by an error: then it is asked for anew
        again = await _granted_anew(server, request, again)
    if waits:
        expected = "discarded" if kind.endswith("discarded") else "applied"
        assert again.get("resolve", again)["outcome"] == expected
        assert scene.text == (_AFTER if expected == "applied" else _BEFORE)
        assert scene.runs == (1 if kind == "external" else 0)
    else:
        assert scene.runs == runs, "nothing runs twice"
        assert scene.text == (_AFTER if is_applied else _BEFORE)
    return found


async def _granted_anew(server: Server, request: Command, again: dict[str, Any]) -> dict[str, Any]:
    if "resolve" in again:
        return again
    held = await resolve(server)
    assert held["code"] == "APPROVAL_REQUIRED"
    await grant(server, held["approval_id"])
    return await ask(server, ResumeOperation(approval_id=held["approval_id"]))


EXPECTED_OF_DEATHS = {
    "edits": {"waits", "applied"},
    "held": {"waits", "applied"},
    "patches": {"waits", "applied"},
    "external": {"waits", "failed", "applied"},
    "closure": {"orphaned", "applied"},
    "edits, discarded": {"waits", "discarded"},
    "patches, discarded": {"waits", "discarded"},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_death_at_any_moment_of_a_resolve_does_nothing_twice(memory_path: Path, kind: str) -> None:
    seen = set()
    for k in range(1, len(await points_of(memory_path / "reference", kind)) + 1):
        scene = scene_of(memory_path / str(k), kind)
        action_id, request, told = await disturb(scene, kind, DieFrom(k))
        async with scene.make():
            seen.add(await check(scene, kind, action_id, request, told))
        assert audit(scene.scratch).findings == ()
        tally(f"deaths in a resolve, {kind}", 1)
    assert seen == EXPECTED_OF_DEATHS[kind]


@pytest.mark.parametrize("kind", ["edits", "patches", "external", "patches, discarded"])
async def test_an_error_at_any_moment_of_a_resolve_is_told_truly(memory_path: Path, kind: str) -> None:
    for k in range(1, len(await points_of(memory_path / "reference", kind)) + 1):
        scene = scene_of(memory_path / str(k), kind)
        action_id, request, told = await disturb(scene, kind, FailAt(k))
        async with scene.make():
            await check(scene, kind, action_id, request, told)
        assert audit(scene.scratch).findings == ()
        tally(f"errors in a resolve, {kind}", 1)


@pytest.mark.parametrize("kind", ["edits", "external"])
async def test_a_death_while_a_resolve_is_settled_is_settled_by_the_next(memory_path: Path, kind: str) -> None:
    points = await points_of(memory_path / "reference", kind)
    for k in range(4, len(points) + 1, 6):
        scene = scene_of(memory_path / str(k), kind)
        action_id, request, _ = await disturb(scene, kind, DieFrom(k))
        left, runs = keep(scene.scratch), scene.runs
        for k2 in range(1, 60):
            left.put_back(scene.scratch)
            scene.runs = runs
            second = await scene.make(settles_at_start=False).start()
            second.hook = fate = DieFrom(k2)
            with suppress(ServerDied, CodespaceError, StoreUnavailableError):
                await second.settle()
            await second.die()
            async with scene.make():
                await check(scene, kind, action_id, request, None)
            assert audit(scene.scratch).findings == ()
            tally(f"deaths while a resolve is settled, {kind}", 1)
            if not fate.has_struck:
                break


async def test_a_death_at_any_moment_of_a_push_leaves_an_action_or_none(memory_path: Path) -> None:
    for k in range(1, 20):
        scene = Scene(memory_path / str(k))
        server = await scene.make().start()
        server.hook = fate = DieFrom(k)
        with suppress(Death, StoreUnavailableError):
            await scene.push("edits")
        await server.die()
        async with scene.make() as second:
            assert scene.text == _BEFORE
            waits = (await stack_of(second)).state.unresolved
            assert len(waits) <= 1
            if waits:
                assert (await resolve(second))["outcome"] == "applied"
        assert audit(scene.scratch).findings == ()
        if not fate.has_struck:
            assert waits
            return
    raise AssertionError("a push passes fewer points")


