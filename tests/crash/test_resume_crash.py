"""A death, or an error, at every moment of a resume, for a patch, an undo and a command, seen by either gateway.

The promises checked at each: the effect happens at most once; a hold is consumed exactly when its stored answer is
there; what is answered is what the disk says; another resume never runs it again, here, there or after a restart.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codespace_es.aggregates.approval import Consumed
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.command_handlers.reverting import RevertOperation, RevertOperations
from codespace_es.ports.fault_points import FaultHook, FaultPoint, no_faults
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.errors import CodespaceError
from support.crash_faults import FailAt, Recorder
from support.crash_faults import count as tally
from support.holds import ask, audit, deny, grant, held_and_granted, hold, read_hold, resume, script
from support.kept_trees import keep
from support.server import DieFrom, Server, ServerDied

pytestmark = pytest.mark.anyio

_BEFORE, _AFTER = "0\n", "0\n1\n"
_PATCH = "*** Begin Patch\n*** Update File: n.txt\n@@\n-0\n+0\n+1\n*** End Patch\n"
_ANSWERS = ("apply_patch", "exec_command", "operation_revert")

POINTS_OF_A_PATCH = {
    FaultPoint.APPEND_BEGIN, FaultPoint.APPEND_IN_TRANSACTION, FaultPoint.APPEND_COMMITTED, FaultPoint.PATCH_LEASED,
    FaultPoint.PATCH_PLANNED, FaultPoint.PATCH_MINTED, FaultPoint.PATCH_WRITTEN, FaultPoint.PATCH_FINISHED,
}
POINTS_OF_A_COMMAND = {
    FaultPoint.APPEND_BEGIN, FaultPoint.APPEND_IN_TRANSACTION, FaultPoint.APPEND_COMMITTED, FaultPoint.EXEC_LEASED,
    FaultPoint.EXEC_FORKED, FaultPoint.EXEC_RECORDED, FaultPoint.EXEC_GONE,
}


async def hold_patch(server: Server, root: Path) -> str:
    """A patch that would fail, or show, if it ran twice."""
    (root / "n.txt").write_text(_BEFORE)
    return await held_and_granted(server, ApplyPatch(workspace_id="demo", patch=_PATCH))


async def hold_command(server: Server, root: Path) -> str:
    """A command that shows how often it ran."""
    (root / "n.txt").write_text(_BEFORE)
    return await held_and_granted(server, script("printf '1\\n' >> n.txt"))


async def hold_undo(server: Server, root: Path) -> str:
    """An undo, from the state that it undoes."""
    first = await resume(server, await hold_patch(server, root))
    return await held_and_granted(server, RevertOperation(operation_id=first["apply_patch"]["operation_id"]))


async def hold_undos(server: Server, root: Path) -> str:
    """An undo of two operations at one blow."""
    first = await resume(server, await hold_patch(server, root))
    more = ApplyPatch(workspace_id="demo", patch="*** Begin Patch\n*** Add File: more.txt\n+more\n*** End Patch\n")
    second = await resume(server, await held_and_granted(server, more))
    ids = [each["apply_patch"]["operation_id"] for each in (first, second)]
    return await held_and_granted(server, RevertOperations(operation_id=ids[0], also=(ids[1],)))


async def hold_refused(server: Server, root: Path) -> str:
    """A patch that is refused when it runs."""
    (root / "n.txt").write_text(_BEFORE)
    patch = "*** Begin Patch\n*** Delete File: no.txt\n*** End Patch\n"
    return await held_and_granted(server, ApplyPatch(workspace_id="demo", patch=patch))


KINDS: dict[str, tuple[Callable[[Server, Path], Awaitable[str]], set[FaultPoint]]] = {
    "patch": (hold_patch, POINTS_OF_A_PATCH),
    "command": (hold_command, POINTS_OF_A_COMMAND),
    "undo": (hold_undo, POINTS_OF_A_PATCH),
    "undos": (hold_undos, POINTS_OF_A_PATCH),
    "refused": (hold_refused, set()),
}


class Scene:
    """A fresh directory with a log and a workspace."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.root = scratch / "ws"
        self.root.mkdir(parents=True)

    def make(self, *, settles_at_start: bool = True) -> Server:
        return Server(self.scratch, {"demo": self.root}, approvals="confirm", settles_at_start=settles_at_start)

    async def server(self) -> Server:
        return await self.make().start()

    @property
    def text(self) -> str:
        return (self.root / "n.txt").read_text()


async def points_of(scene: Scene, kind: str) -> list[FaultPoint]:
    """Return the points that an undisturbed resume passes, up to its answer."""
    make, expected = KINDS[kind]
    recorder = Recorder()
    async with scene.make() as server:
        held = await make(server, scene.root)
        server.hook = recorder
        await resume(server, held)
        points = list(recorder.points)
        server.hook = no_faults
    assert set(points) >= expected
    return points


async def disturb(scene: Scene, kind: str, make_hook: Callable[[], FaultHook]) -> tuple[str, dict[str, Any] | None]:
    """Resume in a server whose hook strikes, and let it die; return the hold and what the client was told, or None."""
    server = await scene.server()
    held = await KINDS[kind][0](server, scene.root)
    server.hook = make_hook()
    told = None
    with suppress(ServerDied, OSError, StoreUnavailableError):
        told = await ask(server, ResumeOperation(approval_id=held))
    await server.die()
    return held, told


def told_once(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what tells a repeat from the first."""
    plain = dict(answer)
    for tool in _ANSWERS:
        if tool in plain:
            plain[tool] = {key: value for key, value in plain[tool].items() if key != "replayed"}
    return plain


def less_sure(told: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return what was told, as far as `answer` is still sure of it: a command whose end is lost may not have begun."""
    if answer.get("exec_command", {}).get("dispatch_status") != "unknown":
        return told
    return {**told, "exec_command": {**told["exec_command"], "dispatch_status": "unknown"}}


async def check(scene: Scene, kind: str, held: str, told: dict[str, Any] | None, server: Server) -> str:
    """Resume again and check every promise; return how far the hold had come."""
    before, _ = read_hold(scene.scratch, held)
    answer = await resume(server, held)
    await server.codespace.world.effects.wait_until_idle()
    state, arguments = read_hold(scene.scratch, held)
    assert isinstance(state, Consumed), (before, answer)
    assert arguments is None
    if told is not None and told.get("code") not in ("STORE_UNAVAILABLE", "APPROVAL_AMBIGUOUS", "INTERNAL"):
        assert told_once(answer) == less_sure(told_once(told), answer)
    for _ in range(2):
        assert told_once(await resume(server, held)) == told_once(answer)
    if kind == "refused":
        assert answer["code"] == "FILE_NOT_FOUND"
        assert scene.text == _BEFORE
    elif kind == "command":
        ran = {_BEFORE: 0, _AFTER: 1}[scene.text]
        if answer["exec_command"]["dispatch_status"] == "confirmed":
            assert ran == 1
    else:
        status = answer["apply_patch" if kind == "patch" else "operation_revert"]["status"]
        assert status in ("applied", "failed_rolled_back")
        is_new = (status == "applied") == (kind == "patch")
        assert scene.text == (_AFTER if is_new else _BEFORE)
        if kind == "undos":
            assert (scene.root / "more.txt").exists() == is_new
    return type(before).__name__


@pytest.mark.parametrize(("kind", "gateway"), [
    ("patch", "restarted"), ("patch", "beside"), ("command", "restarted"), ("command", "beside"), ("undo", "restarted"),
    ("undos", "restarted"), ("refused", "beside"),
])
async def test_a_death_at_any_moment_of_a_resume_runs_nothing_twice(memory_path: Path, kind: str, gateway: str) -> None:
    points = await points_of(Scene(memory_path / "reference"), kind)
    seen = set()
    for k in range(1, len(points) + 1):
        scene = Scene(memory_path / str(k))
        beside = await scene.server() if gateway == "beside" else None
        held, told = await disturb(scene, kind, lambda k=k: DieFrom(k))  # type: ignore[misc]  # a default binds it
        second = beside or await scene.server()
        seen.add(await check(scene, kind, held, told, second))
        settled = scene.text
        async with scene.make() as third:
            again = await resume(third, held)
            assert told_once(again) == told_once(await resume(second, held))
        await second.stop()
        assert scene.text == settled
        assert audit(scene.scratch).findings == ()
        tally(f"deaths in a resume, {kind}", 1)
    assert seen >= {"Granted", "Consumed"}


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_at_any_moment_of_a_resume_is_told_truly(memory_path: Path, kind: str) -> None:
    points = await points_of(Scene(memory_path / "reference"), kind)
    for k in range(1, len(points) + 1):
        scene = Scene(memory_path / str(k))
        held, told = await disturb(scene, kind, lambda k=k: FailAt(k))  # type: ignore[misc]  # a default binds it
        async with scene.make() as second:
            await check(scene, kind, held, told, second)
        assert audit(scene.scratch).findings == ()
        tally(f"errors in a resume, {kind}", 1)


@pytest.mark.parametrize("kind", ["patch", "command"])
async def test_a_death_while_a_resume_is_settled_is_settled_by_the_next(memory_path: Path, kind: str) -> None:
    points = await points_of(Scene(memory_path / "reference"), kind)
    for k in range(3, len(points) + 1, 7):
        scene = Scene(memory_path / str(k))
        held, told = await disturb(scene, kind, lambda k=k: DieFrom(k))  # type: ignore[misc]  # a default binds it
        left = keep(scene.scratch)
        for k2 in range(1, 100):
            left.put_back(scene.scratch)
            second = await scene.make(settles_at_start=False).start()
            second.hook = fate = DieFrom(k2)
            with suppress(ServerDied, CodespaceError, StoreUnavailableError):
                await second.handle(ResumeOperation(approval_id=held))
            await second.die()
            async with scene.make() as third:
                await check(scene, kind, held, told, third)
            assert audit(scene.scratch).findings == ()
            tally(f"deaths while a resume is settled, {kind}", 1)
            if not fate.has_struck:
                break


async def test_a_death_at_any_moment_of_holding_and_deciding_leaves_a_hold_or_none(memory_path: Path) -> None:
    """Hold, grant, deny: each is one append, so it is there or it isn't, with its claim and its arguments."""
    for number, step in enumerate(("hold", "grant", "deny")):
        for k in range(1, 20):
            scene = Scene(memory_path / f"{number}-{k}")
            (scene.root / "n.txt").write_text(_BEFORE)
            request = ApplyPatch(workspace_id="demo", patch=_PATCH)
            server = await scene.server()
            if step != "hold":
                held = await hold(server, request)
            server.hook = fate = DieFrom(k)
            with suppress(ServerDied, CodespaceError, StoreUnavailableError, AssertionError):
                if step == "hold":
                    await hold(server, request)
                else:
                    await (grant if step == "grant" else deny)(server, held)
            await server.die()
            async with scene.make() as second:
                if step == "hold":
                    held = await hold(second, request)
                state, arguments = read_hold(scene.scratch, held)
                is_over = type(state).__name__ == "Denied"
                assert (arguments is None) == is_over
                assert (await hold(second, request) == held) != is_over
            assert scene.text == _BEFORE
            assert audit(scene.scratch).findings == ()
            if not fate.has_struck:
                break
