"""Whose stack a call means, what survives a restart, approvals of an apply, and resolves that meet each other."""

from pathlib import Path

import anyio
import pytest

from codespace_es.command_handlers.calling_back import begin_effect
from codespace_es.command_handlers.effect import TaskGroupEffects
from codespace_es.command_handlers.gating import require_resolved
from codespace_es.command_handlers.orphaning import orphan_actions
from codespace_es.command_handlers.reading import DescribeWorkspace, ReadFile
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.ports.tool_host import CallbackLostError, CallbackRaisedError, CallbackResult
from codespace_es.vocabulary.errors import CodespaceError
from support.holds import addition, ask, audit, create, deny, grant, look, read_hold, resume
from support.pending import (
    CALLER,
    FakeToolHost,
    adds,
    push_closure,
    push_edits,
    push_handler,
    raises,
    resolve,
    returns,
    session_of,
    stack_of,
    waiting,
)
from support.server import Server

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("one\n")
    return tmp_path / "root"


@pytest.fixture
def host() -> FakeToolHost:
    return FakeToolHost({"go": returns()})


def serve(tmp_path: Path, root: Path, host: FakeToolHost, **more) -> Server:
    return Server(tmp_path, {"demo": root}, tool_host=host, **more)


# Whose stack


async def test_one_client_means_its_own_newest_push_and_many_have_to_say(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host) as first, serve(tmp_path, root, host) as second, \
            serve(tmp_path, root, host, is_shared=True) as http:
        await push_handler(first, "go", label="first", work_id="w1")
        pushed = await push_handler(second, "go", label="second", work_id="w2")
        told = await resolve(http)
        assert told["code"] == "PENDING_ACTION_MISMATCH"
        stacks = [(each["work_id"], each["label"]) for each in told["detail"]["stacks"]]
        assert stacks == [("w1", "first"), ("w2", "second")]
        assert (await resolve(first, "discard"))["label"] == "first"
        assert (await resolve(http, "discard"))["id"] == pushed.action_id
    assert audit(tmp_path).findings == ()


async def test_selectors_and_ids_find_their_stack_from_anywhere(tmp_path: Path, root: Path, host: FakeToolHost):
    async with serve(tmp_path, root, host, is_shared=True) as server:
        plain = await push_handler(server, "go", label="plain")
        await push_handler(server, "go", label="one", work_id="w1")
        two = await push_handler(server, "go", label="two", work_id="w2")
        assert (await resolve(server, work_id="w9"))["code"] == "NO_PENDING_ACTION"
        assert (await resolve(server, workspace_id="no"))["code"] == "WORKSPACE_NOT_FOUND"
        assert (await resolve(server, id=two.action_id, work_id="w1"))["code"] == "PENDING_ACTION_MISMATCH"
        assert (await resolve(server, workspace_id="demo"))["id"] == plain.action_id
        assert (await resolve(server, work_id="w1"))["label"] == "one"
        assert (await resolve(server, id=two.action_id))["label"] == "two"
        assert (await resolve(server, id=plain.action_id))["replayed"] is True


async def test_a_hint_is_that_of_the_call_s_session(tmp_path: Path, root: Path, host: FakeToolHost):
    async with serve(tmp_path, root, host, is_shared=True) as server:
        await push_handler(server, "go", label="one", work_id="w1")
        mine = await ask(server, ReadFile(workspace_id="demo", path="a.txt", work_id="w1"))
        other = await ask(server, ReadFile(workspace_id="demo", path="a.txt", work_id="w2"))
        assert mine["pending_actions"]["head"]["label"] == "one"
        assert "pending_actions" not in other
        silent = (await server.handle(ReadFile(workspace_id="demo", path="a.txt", work_id="w1"), "cli")).to_wire()
        assert "pending_actions" not in silent


# The gate


async def test_the_gate_stops_the_session_that_has_something_pending_and_no_other(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host, is_shared=True, pending_bias="require") as server:
        workspace = server.world.workspaces["demo"]
        await push_handler(server, "go", work_id="w1")
        for free in (None, "w2"):
            await require_resolved(server.world, workspace, free, CALLER)
        with pytest.raises(CodespaceError) as caught:
            await require_resolved(server.world, workspace, "w1", CALLER)
        assert caught.value.code == "PENDING_ACTION_UNRESOLVED"
        await resolve(server, "discard", work_id="w1")
        await require_resolved(server.world, workspace, "w1", CALLER)


async def test_a_replay_and_a_granted_hold_of_resolve_pass_the_gate_and_another_hold_waits(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host, pending_bias="require") as server:
        first = await ask(server, addition("n.txt", key="k"))
        held = (await create(server, addition("m.txt")))["approval_id"]
        await grant(server, held)
        await push_edits(server, root, {"a.txt": b"uno"})
        assert (await ask(server, addition("n.txt", key="k")))["operation_id"] == first["operation_id"]
        assert (await ask(server, addition("o.txt")))["code"] == "PENDING_ACTION_UNRESOLVED"
        assert (await resume(server, held))["code"] == "PENDING_ACTION_UNRESOLVED"
        assert (await look(server, held))["state"] == "granted"
        assert (await resolve(server))["outcome"] == "applied"
        assert (await resume(server, held))["apply_patch"]["status"] == "applied"


async def test_after_a_crash_what_is_left_can_never_lock_a_session(tmp_path: Path, root: Path, host: FakeToolHost):
    dead = await serve(tmp_path, root, host, pending_bias="require").start()
    await push_closure(dead, host, returns(), label="closure")
    await push_handler(dead, "not here any more", label="durable")
    await dead.die()
    async with serve(tmp_path, root, FakeToolHost(), pending_bias="require") as server:
        assert (await ask(server, addition()))["code"] == "PENDING_ACTION_UNRESOLVED"
        assert (await resolve(server, "apply"))["detail"]["outcome"] == "returned"
        assert (await resolve(server, "discard"))["outcome"] == "discarded"
        assert (await ask(server, addition()))["status"] == "applied"


# Restart


async def test_durable_actions_survive_a_restart_and_closures_are_orphaned_and_said_so_once(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host) as first:
        await push_edits(first, root, {"a.txt": b"uno"}, label="edits")
        await push_closure(first, host, returns(), label="closure")
        await push_handler(first, "go", {"n": 1}, label="handler")
    async with serve(tmp_path, root, FakeToolHost({"go": returns("went")})) as second:
        assert await waiting(second) == ["edits", "handler"]
        told = await ask(second, DescribeWorkspace(workspace_id="demo"))
        assert [each["kind"] for each in told["warnings"]] == ["pending_action_orphaned"]
        assert "closure" in told["warnings"][0]["message"]
        assert "warnings" not in await ask(second, DescribeWorkspace(workspace_id="demo"))
        assert (await resolve(second))["source_result"]["text"] == "went"
        assert (await resolve(second))["outcome"] == "applied"
    assert (root / "a.txt").read_text() == "uno"
    assert audit(tmp_path).findings == ()


async def test_closures_of_a_server_that_lives_are_left_alone(tmp_path: Path, root: Path, host: FakeToolHost):
    async with serve(tmp_path, root, host) as first:
        await push_closure(first, host, returns(), label="closure")
        async with serve(tmp_path, root, FakeToolHost()) as second:
            assert await waiting(second) == ["closure"]
        assert (await resolve(first))["outcome"] == "applied"


async def test_a_closure_of_another_server_waits_for_that_one_and_can_be_discarded_by_any(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host) as first, serve(tmp_path, root, other := FakeToolHost()) as second:
        await push_closure(first, host, returns(), label="doomed")
        pushed = await push_closure(first, host, returns("done"), label="closure")
        refusal = await resolve(second, id=pushed.action_id)
        assert (refusal["code"], refusal["detail"]["outcome"]) == ("APPLY_FAILED", "returned")
        assert refusal["detail"]["next"]["id"] == pushed.action_id
        assert other.calls == []
        assert (await resolve(first, id=pushed.action_id))["source_result"]["text"] == "done"
        assert (await resolve(second, "discard"))["outcome"] == "discarded"
        assert await waiting(first) == []
    assert audit(tmp_path).findings == ()


async def test_a_tool_host_that_dies_takes_its_closures_along(tmp_path: Path, root: Path, host: FakeToolHost):
    async with serve(tmp_path, root, host) as server:
        lost = await push_closure(server, host, returns(), label="closure")
        kept = await push_handler(server, "go", label="handler")
        await orphan_actions(server.world, session_of(server), [lost.action_id, kept.action_id], CALLER)
        assert await waiting(server) == ["handler"]
        told = await ask(server, DescribeWorkspace(workspace_id="demo"))
        assert told["warnings"][0]["kind"] == "pending_action_orphaned"


async def test_a_closure_is_orphaned_while_another_action_is_being_resolved(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host) as server:
        lost = await push_closure(server, host, returns(), label="closure")

        async def outlives_it(call):
            await orphan_actions(server.world, session_of(server), [lost.action_id], CALLER)
            return await returns()(call)

        host.handlers["go"] = outlives_it
        await push_handler(server, "go", label="handler")
        assert (await resolve(server))["remaining"] == 0
        assert (await resolve(server, id=lost.action_id))["detail"]["outcome"] == "orphaned"
    assert audit(tmp_path).findings == ()


async def test_a_host_that_dies_in_the_middle_of_an_apply_ends_it_once(tmp_path: Path, root: Path, host: FakeToolHost):
    async with serve(tmp_path, root, host) as server:

        async def dies(call):
            await orphan_actions(server.world, session_of(server), [call.action_id], CALLER)
            raise CallbackLostError("the host died")

        pushed = await push_closure(server, host, dies)
        assert (await resolve(server))["detail"]["outcome"] == "orphaned"
        assert (await resolve(server, id=pushed.action_id))["detail"]["replayed"] is True
    assert audit(tmp_path).findings == ()


async def test_a_closure_that_is_lost_while_its_apply_comes_to_nothing_is_orphaned_by_the_next(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host) as server:

        async def fits_nowhere(call):
            del host.closures[call.action_id]
            await orphan_actions(server.world, session_of(server), [call.action_id], CALLER)
            return CallbackResult("done", patches=(adds("a.txt"),))

        await push_closure(server, host, fits_nowhere)
        assert (await resolve(server))["detail"]["outcome"] == "returned"
        assert (await resolve(server))["detail"]["outcome"] == "orphaned"
        assert await waiting(server) == []
    assert (root / "a.txt").read_text() == "one\n"
    assert audit(tmp_path).findings == ()


# Approvals


async def test_an_apply_is_held_whatever_its_reason_and_runs_once_when_it_is_resumed(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host, approvals="confirm") as server:
        pushed = await push_edits(server, root, {"a.txt": b"uno"}, label="Rename")
        held = await resolve(server, reason="one")
        assert held["code"] == "APPROVAL_REQUIRED"
        assert (await resolve(server, id=pushed.action_id, reason="two"))["approval_id"] == held["approval_id"]
        report = await look(server, held["approval_id"])
        assert (report["title"], report["files"], report["moved_on"]) == ("Apply: Rename", ["a.txt"], [])
        assert "+uno" in report["diff"]
        assert await waiting(server) == ["Rename"]
        assert (root / "a.txt").read_text() == "one\n"
        await grant(server, held["approval_id"])
        told = await resume(server, held["approval_id"])
        assert (told["resolve"]["outcome"], told["resolve"]["reason"]) == ("applied", "one")
        assert (root / "a.txt").read_text() == "uno"
        again = await resume(server, held["approval_id"])
        assert again["resolve"]["replayed"] is True
        assert (await resolve(server, id=pushed.action_id))["replayed"] is True
    assert audit(tmp_path).findings == ()


async def test_a_grant_that_is_resumed_in_another_server_than_its_closure_s_is_kept_for_that_one(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host, approvals="confirm") as first, \
            serve(tmp_path, root, other := FakeToolHost(), approvals="confirm") as second:
        pushed = await push_closure(first, host, returns("done"))
        held = (await resolve(first, id=pushed.action_id))["approval_id"]
        await grant(first, held)
        version = len(await first.log.read_stream(held))
        refusal = await resume(second, held)
        assert (refusal["code"], refusal["detail"]["outcome"]) == ("APPLY_FAILED", "returned")
        assert (refusal["approval_id"], refusal["detail"]["id"]) == (held, pushed.action_id)
        assert (len(await first.log.read_stream(held)), other.calls) == (version, [])
        assert (await resume(first, held))["resolve"]["source_result"]["text"] == "done"
        assert (await resume(second, held))["resolve"]["replayed"] is True
    assert audit(tmp_path).findings == ()


@pytest.mark.parametrize("state", ["pending", "granted"])
async def test_a_discard_is_never_held_and_denies_the_hold_in_the_same_append(
    tmp_path: Path, root: Path, host: FakeToolHost, state: str
):
    async with serve(tmp_path, root, host, approvals="confirm") as server:
        await push_edits(server, root, {"a.txt": b"uno"})
        held = (await resolve(server))["approval_id"]
        if state == "granted":
            await grant(server, held)
        assert (await resolve(server, "discard"))["outcome"] == "discarded"
        assert (await look(server, held))["state"] == "denied"
        appends = {
            each.envelope.append_id async for each in server.log.read_log()
            if each.topic in ("approval.denied.v1", "pending.action_popped.v1")
        }
        assert len(appends) == 1
    assert read_hold(tmp_path, held)[1] is None
    assert audit(tmp_path).findings == ()


async def test_a_callback_s_apply_is_held_too_and_its_discard_runs_reject(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host, approvals="confirm") as server:
        await push_handler(server, "go")
        held = (await resolve(server))["approval_id"]
        assert host.calls == []
        await grant(server, held)
        assert (await resume(server, held))["resolve"]["text"] == "Applied: Do it\ndone"
        await push_handler(server, "go")
        held = (await resolve(server))["approval_id"]
        assert (await resolve(server, "discard"))["outcome"] == "discarded"
        assert (await look(server, held))["state"] == "denied"
    assert audit(tmp_path).findings == ()


async def test_a_resume_whose_action_is_on_top_no_more_is_consumed_with_a_mismatch(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host, approvals="confirm") as server:
        await push_handler(server, "go", label="below")
        held = (await resolve(server))["approval_id"]
        await grant(server, held)
        await push_handler(server, "go", label="above")
        assert (await resume(server, held))["code"] == "PENDING_ACTION_MISMATCH"
        assert (await look(server, held))["state"] == "consumed"
        assert (await resume(server, held))["code"] == "PENDING_ACTION_MISMATCH"
        assert await waiting(server) == ["below", "above"]
        assert host.calls == []
    assert audit(tmp_path).findings == ()


@pytest.mark.parametrize(("how", "outcome"), [("raise", "returned"), ("stale", "failed"), ("error", "failed")])
async def test_a_held_apply_that_does_not_succeed_uses_its_hold_up(
    tmp_path: Path, root: Path, host: FakeToolHost, how: str, outcome: str
):
    async with serve(tmp_path, root, host, approvals="confirm") as server:
        if how == "stale":
            await push_edits(server, root, {"a.txt": b"uno"})
        else:
            host.handlers["go"] = raises(CallbackRaisedError("no")) if how == "raise" else returns("no", is_error=True)
            await push_handler(server, "go")
        held = (await resolve(server))["approval_id"]
        await grant(server, held)
        (root / "a.txt").write_text("changed\n")
        told = await resume(server, held)
        assert told["detail"]["outcome"] == outcome
        assert (await look(server, held))["state"] == "consumed"
        assert (await resume(server, held))["code"] == told["code"]
        assert len(await waiting(server)) == (outcome == "returned")
    assert audit(tmp_path).findings == ()


async def test_a_hold_can_be_opened_on_purpose_and_a_denied_one_leaves_the_action(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    async with serve(tmp_path, root, host) as server:
        assert (await create(server, ResolveAction(action="apply")))["code"] == "NO_PENDING_ACTION"
        await push_edits(server, root, {"a.txt": b"uno"})
        assert (await create(server, ResolveAction(action="discard")))["code"] == "INVALID_ARGUMENT"
        held = (await create(server, ResolveAction(action="apply")))["approval_id"]
        await deny(server, held)
        assert (await resolve(server))["outcome"] == "applied"


# Resolves that meet


@pytest.mark.parametrize("gateways", [1, 2])
async def test_two_applies_at_once_run_once(tmp_path: Path, root: Path, host: FakeToolHost, gateways: int):
    told: list[dict] = []
    async with serve(tmp_path, root, host) as first, serve(tmp_path, root, host) as second:
        servers = [first, first if gateways == 1 else second]
        for kind in ("edits", "callback"):
            staging = push_edits(first, root, {"a.txt": b"uno"}) if kind == "edits" else push_handler(first, "go")
            pushed = await staging

            async def apply(server: Server, action_id: str = pushed.action_id) -> None:
                told.append(await resolve(server, id=action_id))

            async with anyio.create_task_group() as tasks:
                for server in servers * 2:
                    tasks.start_soon(apply, server)
            assert sorted(each["replayed"] for each in told) == [False, True, True, True]
            told.clear()
        assert len(host.calls) == 1
    assert audit(tmp_path).findings == ()


async def test_resolves_without_ids_take_one_action_each_in_order_of_arrival(
    tmp_path: Path, root: Path, host: FakeToolHost
):
    labels: list[str] = []
    async with serve(tmp_path, root, host) as server:
        for number in range(4):
            await push_handler(server, "go", label=str(number))

        async def apply() -> None:
            labels.append((await resolve(server))["label"])

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(apply)
                await anyio.sleep(0)
    assert labels == ["3", "2", "1", "0"]


async def test_a_caller_that_goes_away_does_not_stop_an_apply(tmp_path: Path, root: Path, host: FakeToolHost):
    begun, go_on = anyio.Event(), anyio.Event()

    async def slow(_call):
        begun.set()
        await go_on.wait()
        return CallbackResult("done", patches=(adds("n.txt"),))

    host.handlers["slow"] = slow
    async with serve(tmp_path, root, host) as server, anyio.create_task_group() as tasks:
        object.__setattr__(server.world, "effects", TaskGroupEffects(tasks))  # tasks, as a server's are
        pushed = await push_handler(server, "slow")
        with anyio.CancelScope() as scope:
            tasks.start_soon(_cancel_when, begun, scope)
            await resolve(server, id=pushed.action_id)
        assert scope.cancelled_caught
        go_on.set()
        with anyio.fail_after(30):
            assert (await resolve(server, id=pushed.action_id))["outcome"] == "applied"
    assert (root / "n.txt").read_text() == "new\n"
    assert len(host.calls) == 1


async def _cancel_when(begun: anyio.Event, scope: anyio.CancelScope) -> None:
    await begun.wait()
    scope.cancel()


async def test_a_resolve_behind_a_slow_one_of_another_server_is_told_that_it_goes_on(
    tmp_path: Path, root: Path, host: FakeToolHost, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("codespace_es.command_handlers.resolving._PATIENCE_SECONDS", 0.05)
    async with serve(tmp_path, root, host) as first, serve(tmp_path, root, host) as second:
        told: list[dict] = []

        async def slow(call):
            told.append(await resolve(second, id=call.action_id))
            told.append(await resolve(second, "discard"))
            return CallbackResult("done")

        host.handlers["slow"] = slow
        await push_handler(first, "slow")
        assert (await resolve(first))["outcome"] == "applied"
        assert [each["code"] for each in told] == ["WORKSPACE_BUSY", "WORKSPACE_BUSY"]


async def test_what_has_begun_is_on_record_before_it_is_done(tmp_path: Path, root: Path, host: FakeToolHost):
    async with serve(tmp_path, root, host) as server:

        async def runs_something(call):
            await begin_effect(server.world, session_of(server), call.action_id, CALLER)
            await begin_effect(server.world, session_of(server), call.action_id, CALLER)
            raise CallbackRaisedError("half-way")

        host.handlers["go"] = runs_something
        pushed = await push_handler(server, "go")
        with pytest.raises(CodespaceError) as caught:
            await begin_effect(server.world, session_of(server), pushed.action_id, CALLER)
        assert caught.value.code == "PENDING_ACTION_MISMATCH"
        assert (await resolve(server))["detail"]["outcome"] == "failed"
        topics = [each.topic for each in (await stack_of(server)).recorded]
        assert topics.count("pending.effect_begun.v1") == 1
        assert (await ask(server, ResumeOperation(approval_id="appr-none")))["code"] == "APPROVAL_NOT_FOUND"
    assert audit(tmp_path).findings == ()
