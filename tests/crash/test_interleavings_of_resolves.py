"""A resolve beside another request, or beside the end of who had its callback, let in at every moment of it.

Whatever the moment: an action is over once and both callers are told the same end of it, its callback runs at most
once, what isn't told as applied has written nothing, and the log verifies.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.log.reader import LogReader
from codespace_es.command_handlers.finishing import FinishWorkCommand
from codespace_es.command_handlers.orphaning import orphan_actions
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.command_handlers.steering import OpenWorkCommand
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.tool_host import ActionCall, CallbackResult
from support.commands import lines_of
from support.holds import ask, grant
from support.interleaving import WITHIN_A_PATCH, Act, at_every_moment, end_session
from support.pending import CALLER, FakeToolHost, push_closure, push_edits, push_handler, resolve, session_of
from support.server import Server

Begin = Callable[[Server], Any]
Make = Callable[[Any], Act]

_PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-{old}\n+{new}\n*** End Patch\n"


def pairs(
    directory: Path, begin: Begin, first: Make, second: Make, *, is_begun_by_second: bool = False, **policy: Any
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Path]]:
    """Yield both answers and the workspace, for every moment of the first act."""

    def make(scratch: Path, root: Path) -> Server:
        (root / "a.txt").write_text("one\n")
        host = FakeToolHost({"go": counted(root)})
        return Server(scratch, {"demo": root}, tool_host=host, **policy)

    return at_every_moment(
        directory, make, begin, first, second, told_as="pairs about pending actions",
        is_begun_by_second=is_begun_by_second, skipped=WITHIN_A_PATCH,
    )


def counted(root: Path) -> Callable[[ActionCall], Any]:
    """Return a callback that shows how often it ran, and has a file written."""

    async def apply(_call: ActionCall) -> CallbackResult:
        with (root.parent / "runs").open("a") as runs:
            runs.write("once\n")
        return CallbackResult("done", patches=(_PATCH.format(old="one", new="two"),))

    return apply


def root_of(server: Server) -> Path:
    return Path(server.world.workspaces["demo"].root)


async def stage_edits(server: Server) -> str:
    return (await push_edits(server, root_of(server), {"a.txt": b"two\n"})).action_id


async def stage_callback(server: Server) -> str:
    return (await push_handler(server, "go")).action_id


async def stage_closure(server: Server) -> str:
    host = server.world.tool_host
    assert isinstance(host, FakeToolHost)
    return (await push_closure(server, host, counted(root_of(server)))).action_id


def resolving(action: str) -> Make:
    """Return how an action is resolved by its id."""
    return lambda action_id: ResolveAction.model_validate({"action": action, "id": action_id})


apply, discard = resolving("apply"), resolving("discard")


def outcome_of(answer: dict[str, Any]) -> str:
    return str(answer.get("outcome") or answer.get("detail", {}).get("outcome"))


@pytest.mark.parametrize(("stage", "first", "second"), [
    (stage_edits, apply, apply), (stage_edits, apply, discard), (stage_edits, discard, apply),
    (stage_callback, apply, apply), (stage_callback, discard, apply),
])
def test_an_action_ends_once_and_both_are_told_how_at_every_moment(
    memory_path: Path, stage: Begin, first: Make, second: Make
) -> None:
    for one, two, root in pairs(memory_path, stage, first, second):
        assert outcome_of(one) == outcome_of(two), (one, two)
        assert sorted([bool(one["replayed"]), bool(two["replayed"])]) == [False, True]
        assert one.get("operation_id") == two.get("operation_id")
        is_applied = outcome_of(one) == "applied"
        assert (root / "a.txt").read_text() == ("two\n" if is_applied else "one\n")
        assert lines_of(root.parent / "runs") == (stage is stage_callback and is_applied)


def test_two_resolves_without_an_id_take_two_actions_at_every_moment(memory_path: Path) -> None:
    async def begin(server: Server) -> None:
        await push_edits(server, root_of(server), {"a.txt": b"two\n"}, label="older")
        await push_edits(server, root_of(server), {"b.txt": b"new\n"}, label="newer")

    def newest(_begun: None) -> ResolveAction:
        return ResolveAction(action="apply", workspace_id="demo")

    for one, two, root in pairs(memory_path, begin, newest, newest):
        assert sorted([one["label"], two["label"]]) == ["newer", "older"], (one, two)
        assert [one["outcome"], two["outcome"]] == ["applied", "applied"]
        assert sorted([one["remaining"], two["remaining"]]) == [0, 1]
        assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("two\n", "new\n")


@pytest.mark.parametrize(("stage", "is_patch_first"), [
    (stage_edits, True), (stage_edits, False), (stage_callback, False),
])
def test_a_patch_of_the_same_line_comes_before_or_after_at_every_moment(
    memory_path: Path, stage: Begin, *, is_patch_first: bool
) -> None:
    """Whoever comes second finds another line than it was made for."""

    def patch(_begun: str) -> ApplyPatch:
        return ApplyPatch(workspace_id="demo", patch=_PATCH.format(old="one", new="three"))

    order = (patch, apply) if is_patch_first else (apply, patch)
    for one, two, root in pairs(memory_path, stage, *order):
        patched, resolved = (one, two) if is_patch_first else (two, one)
        told = (patched["status"], outcome_of(resolved), (root / "a.txt").read_text())
        late = "failed" if stage is stage_edits else "returned"
        assert told in (("applied", late, "three\n"), ("INVALID_PATCH", "applied", "two\n")), told


def test_a_work_is_never_closed_over_what_is_being_resolved_at_any_moment(memory_path: Path) -> None:
    async def begin(server: Server) -> str:
        work_id = (await ask(server, OpenWorkCommand(workspace_id="demo")))["work_id"]
        await push_edits(server, root_of(server), {"a.txt": b"two\n"}, work_id=work_id)
        return str(work_id)

    def finish(work_id: str) -> FinishWorkCommand:
        return FinishWorkCommand(work_id=work_id)

    def resolve_of(work_id: str) -> ResolveAction:
        return ResolveAction(action="apply", workspace_id="demo", work_id=work_id)

    for resolved, finished, root in pairs(memory_path, begin, resolve_of, finish):
        assert resolved["outcome"] == "applied"
        assert (finished["closed"], finished.get("reason")) in ((True, None), (False, "pending_actions"))
        assert (root / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("is_finish_first", [True, False])
def test_a_work_is_never_closed_over_what_was_pushed_before_at_any_moment(
    memory_path: Path, *, is_finish_first: bool
) -> None:
    """A push that comes after the end isn't refused, as no call is that names a closed work."""

    async def begin(server: Server) -> str:
        return str((await ask(server, OpenWorkCommand(workspace_id="demo")))["work_id"])

    def finish(work_id: str) -> Act:
        return FinishWorkCommand(work_id=work_id)

    def push(work_id: str) -> Act:
        async def stage(server: Server) -> None:
            await push_edits(server, root_of(server), {"a.txt": b"two\n"}, work_id=work_id)

        return stage

    seen = set()
    for one, two, root in pairs(memory_path, begin, *((finish, push) if is_finish_first else (push, finish))):
        finished = one if is_finish_first else two
        with LogReader(root.parent / "data" / "codespace.db", CATALOGUE) as reader:
            at = {recorded.topic: recorded.position for recorded in reader.read_log()}
        pushed, closed = at["pending.action_pushed.v1"], at.get("steering.work_closed.v1")
        assert (finished["closed"], finished.get("reason")) == (
            (False, "pending_actions") if closed is None else (True, None))
        assert closed is None or closed < pushed
        seen.add(closed is None)
    assert len(seen) == 2, "both orders came about"


@pytest.mark.parametrize("other", [discard, apply])
def test_a_granted_apply_and_another_resolve_at_every_moment(memory_path: Path, other: Make) -> None:
    """A discard takes the action from under the resume, or comes too late; an apply meets its hold, or its end."""

    async def begin(server: Server) -> tuple[str, str]:
        action_id = await stage_edits(server)
        held = (await resolve(server, id=action_id))["approval_id"]
        await grant(server, held)
        return action_id, held

    def resume(begun: tuple[str, str]) -> ResumeOperation:
        return ResumeOperation(approval_id=begun[1])

    for one, two, root in pairs(memory_path, begin, resume, lambda begun: other(begun[0]), approvals="confirm"):
        is_applied = (root / "a.txt").read_text() == "two\n"
        if is_applied:
            assert one["resolve"]["outcome"] == "applied"
            assert outcome_of(two) == "applied" or (other is apply and two["status"] == "APPROVAL_REQUIRED"), two
        else:
            assert other is discard
            assert one["status"] in ("PENDING_ACTION_MISMATCH", "APPROVAL_CONFLICT"), one
            assert two["outcome"] == "discarded"


# The end of a session


def end(_begun: str) -> Act:
    return end_session


def test_a_closure_of_a_server_that_ends_is_never_run_elsewhere_at_any_moment(memory_path: Path) -> None:
    for _, resolved, root in pairs(memory_path, stage_closure, end, apply):
        assert resolved["status"] == "APPLY_FAILED"
        assert outcome_of(resolved) in ("returned", "orphaned")
        assert (root / "a.txt").read_text() == "one\n"
        assert lines_of(root.parent / "runs") == 0


@pytest.mark.parametrize(("stage", "is_end_first"), [
    (stage_edits, True), (stage_callback, True), (stage_callback, False),
])
def test_what_is_durable_is_applied_beside_the_end_of_who_staged_it_at_every_moment(
    memory_path: Path, stage: Begin, *, is_end_first: bool
) -> None:
    order = (end, apply) if is_end_first else (apply, end)
    for one, two, root in pairs(memory_path, stage, *order, is_begun_by_second=not is_end_first):
        assert (two if is_end_first else one)["outcome"] == "applied"
        assert (root / "a.txt").read_text() == "two\n"


def test_a_callback_whose_process_is_found_gone_while_it_applies_at_every_moment(memory_path: Path) -> None:
    """The action is over as what the files say: applied, or orphaned with nothing written."""

    def found_gone(action_id: str) -> Act:
        return lambda server: orphan_actions(server.world, session_of(server), [action_id], CALLER)

    seen = set()
    for one, _, root in pairs(memory_path, stage_closure, apply, found_gone):
        is_applied = (root / "a.txt").read_text() == "two\n"
        assert outcome_of(one) == ("applied" if is_applied else "orphaned"), one
        seen.add(outcome_of(one))
    assert seen == {"applied", "orphaned"}
