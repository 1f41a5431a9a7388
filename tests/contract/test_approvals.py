"""Holds, in one server and in two: who may decide, what runs, what a resume is answered, and what stays stored."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from codespace_es.aggregates.approval import Consumed, Granted, Parked, Queued
from codespace_es.command_handlers.deciding import CreateHold
from codespace_es.command_handlers.driving import WriteInput
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reading import DescribeWorkspace
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.ports.fault_points import FaultPoint, no_faults
from codespace_es.vocabulary.identifiers import ProcessId
from support.clock import HandClock
from support.holds import (
    addition,
    ask,
    audit,
    create,
    deny,
    grant,
    held_and_granted,
    hold,
    look,
    read_hold,
    resume,
    script,
)
from support.server import Server

pytestmark = pytest.mark.anyio

Open = Callable[..., Awaitable[Server]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
async def opened(tmp_path: Path, root: Path) -> AsyncIterator[Open]:
    """Open servers over one log; at the end of the test they stop, and the log has to keep every law."""
    async with AsyncExitStack() as stack:

        async def open_one(**policy: Any) -> Server:
            roots = policy.pop("roots", {"demo": root})
            return await stack.enter_async_context(Server(tmp_path, roots, **{"approvals": "confirm", **policy}))

        yield open_one
    assert audit(tmp_path).findings == ()


# One hold a request


async def test_the_same_request_meets_its_active_hold_whoever_asks(opened: Open) -> None:
    left, right = await opened(), await opened()
    held = await hold(left, addition(key="k"))
    assert await hold(right, addition(key="k")) == held
    assert (await create(left, addition(key="k"))) == {"approval_id": held, "state": "pending"}
    await grant(left, held)
    assert (await create(right, addition(key="k"))) == {"approval_id": held, "state": "granted"}
    assert await hold(left, addition(key="other")) != held
    assert await hold(left, addition(text="other", key="k")) != held
    await resume(left, held)
    assert await create(right, addition(key="k")) != {"approval_id": held, "state": "consumed"}


async def test_twenty_who_ask_at_once_meet_one_hold(opened: Open) -> None:
    servers = [await opened(), await opened()]
    answers: list[str] = []

    async def one(server: Server) -> None:
        answers.append(await hold(server, addition()))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, servers[number % 2])
    assert len(set(answers)) == 1


async def test_a_request_may_be_held_anew_once_its_hold_is_over(opened: Open, root: Path) -> None:
    server = await opened()
    first = await hold(server, addition())
    await deny(server, first)
    second = await held_and_granted(server, addition())
    assert (await resume(server, second))["apply_patch"]["status"] == "applied"
    third = await hold(server, addition())
    assert len({first, second, third}) == 3


async def test_a_preview_and_a_finished_key_are_answered_without_a_hold(opened: Open, root: Path) -> None:
    server = await opened()
    checked = await ask(server, addition().model_copy(update={"check_only": True}))
    assert checked["status"] == "checked"
    held = await held_and_granted(server, addition(key="k"))
    done = (await resume(server, held))["apply_patch"]
    again = await ask(server, addition(key="k"))
    assert again == {**done, "replayed": True}
    undo = RevertOperation(operation_id=done["operation_id"], check_only=True)
    assert (await ask(server, undo))["status"] == "checked"


@pytest.mark.parametrize(("arguments", "code", "field"), [
    ({"workspace_id": "demo", "patch": "x"}, "INVALID_PATCH", None),
    ({"workspace_id": "demo", "patch": 1}, "INVALID_PATCH", "arguments.patch"),
    ({"workspace_id": "demo"}, "INVALID_PATCH", "arguments.patch"),
    ({"workspace_id": "demo", "patch": "\ud800"}, "INVALID_ARGUMENT", "arguments"),
    ({"patch": "x"}, "INVALID_ARGUMENT", "arguments.workspace_id"),
    ({"workspace_id": "nowhere", "patch": "x"}, "WORKSPACE_NOT_FOUND", None),
    ({"workspace_id": "demo", "patch": "x", "check_only": True}, "INVALID_ARGUMENT", "arguments.check_only"),
    ({"workspace_id": "demo", "patch": "x", "expected_versions": {"a": "b"}}, "INVALID_ARGUMENT",
     "arguments.expected_versions.a"),
    ({"workspace_id": "demo", "patch": "x", "operation_key": "k" * 5000}, "INVALID_ARGUMENT", "operation_key"),
])
async def test_what_is_no_patch_is_never_held(opened: Open, arguments: Any, code: str, field: str | None) -> None:
    server = await opened()
    told = await ask(server, CreateHold(tool="apply_patch", arguments=arguments))
    assert told["code"] == code
    assert field is None or told["detail"]["field"] == field
    assert not await server.log.open_items(kind="approval")


@pytest.mark.parametrize(("arguments", "code"), [
    ({"workspace_id": "demo", "command": []}, "INVALID_COMMAND"),
    ({"workspace_id": "demo", "command": "ls"}, "INVALID_COMMAND"),
    ({"workspace_id": "demo", "command": ["a\0b"]}, "INVALID_COMMAND"),
    ({"workspace_id": "demo"}, "INVALID_COMMAND"),
    ({"workspace_id": "demo", "command": ["ls"], "timeout_ms": 0}, "INVALID_ARGUMENT"),
    ({"workspace_id": "nowhere", "command": ["ls"]}, "WORKSPACE_NOT_FOUND"),
])
async def test_what_is_no_command_is_never_held(opened: Open, arguments: Any, code: str) -> None:
    server = await opened()
    assert (await ask(server, CreateHold(tool="exec_command", arguments=arguments)))["code"] == code
    assert not await server.log.open_items(kind="approval")


async def test_arguments_are_read_as_their_tool_reads_them(opened: Open) -> None:
    server = await opened()
    plain = {"workspace_id": "demo", "command": ["true"], "timeout_ms": 5}
    odd = {**plain, "timeout_ms": 5.0, "operation_key": None, "approved": True, "network": True}
    first = await ask(server, CreateHold(tool="exec_command", arguments=plain))
    assert await ask(server, CreateHold(tool="exec_command", arguments=odd)) == first


# Who decides


async def test_of_twenty_who_decide_at_once_one_does(opened: Open, root: Path) -> None:
    servers = [await opened(), await opened()]
    held = await hold(servers[0], script("printf x >> count.txt"))
    answers: list[dict[str, Any]] = []

    async def one(server: Server) -> None:
        answers.append(await grant(server, held))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, servers[number % 2])
    codes = sorted(told.get("code", told.get("state")) for told in answers)
    assert codes == ["APPROVAL_CONFLICT"] * 19 + ["granted"]
    resumed: list[dict[str, Any]] = []

    async def run(server: Server) -> None:
        resumed.append(await resume(server, held))

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(run, servers[number % 2])
    ran = [told["exec_command"]["process_id"] for told in resumed if "exec_command" in told]
    assert len(set(ran)) == 1
    assert {told["code"] for told in resumed if "code" in told} <= {"APPROVAL_CONFLICT"}
    await _ended(servers, ran[0])
    assert (root / "count.txt").read_text() == "x"


async def test_under_operator_a_client_may_deny_and_never_grant(opened: Open, root: Path) -> None:
    server = await opened(approvals="operator")
    held = await hold(server, addition())
    assert (await grant(server, held))["code"] == "UNAUTHORIZED"
    assert (await grant(server, held, "elicitation"))["code"] == "UNAUTHORIZED"
    assert (await resume(server, held))["code"] == "APPROVAL_CONFLICT"
    assert (await grant(server, held, "cli", "fine"))["state"] == "granted"
    told = await look(server, held)
    assert (told["decided_by"], told["reason"]) == ("cli", "fine")
    assert (await resume(server, held))["apply_patch"]["status"] == "applied"
    other = await hold(server, addition("b.txt"))
    assert (await deny(server, other, "no"))["state"] == "denied"
    refused = await resume(server, other)
    assert refused["code"] == "APPROVAL_CONFLICT"
    assert "denied: no" in refused["message"]
    assert not (root / "b.txt").exists()


@pytest.mark.parametrize("reason", ["x" * 5000, "\ud800"])
async def test_a_reason_has_its_limits(opened: Open, reason: str) -> None:
    server = await opened()
    held = await hold(server, addition())
    assert (await grant(server, held, reason=reason))["code"] == "INVALID_ARGUMENT"
    assert (await look(server, held))["state"] == "pending"


# Today's policy


@pytest.mark.parametrize(("stricter", "code"), [
    ({"profile": "read-only"}, "UNAUTHORIZED"),
    ({"environment": "linux-container"}, "UNAUTHORIZED"),
    ({"approvals": "operator"}, "UNAUTHORIZED"),
    ({"protected_paths": ("new.txt",)}, "PATH_PROTECTED"),
])
async def test_a_stricter_configuration_ends_the_hold_with_its_error(
    opened: Open, tmp_path: Path, root: Path, stricter: dict[str, Any], code: str
) -> None:
    held = await held_and_granted(await opened(), addition())
    server = await opened(**stricter)
    first, again = await resume(server, held), await resume(server, held)
    assert first["code"] == code
    assert again == first
    assert not (root / "new.txt").exists()
    state, arguments = read_hold(tmp_path, held)
    assert isinstance(state, Consumed)
    assert arguments is None


async def test_a_directory_that_is_not_configured_here_ends_the_hold(opened: Open, tmp_path: Path, root: Path) -> None:
    held = await held_and_granted(await opened(), addition())
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = await opened(roots={"demo": other})
    assert (await resume(elsewhere, held))["code"] == "WORKSPACE_NOT_FOUND"
    assert not list(other.iterdir())
    assert not list(root.iterdir())


async def test_a_hold_belongs_to_its_directory_by_whatever_name(opened: Open, tmp_path: Path, root: Path) -> None:
    held = await held_and_granted(await opened(), addition())
    other = tmp_path / "other"
    other.mkdir()
    renamed = await opened(roots={"demo": other, "mine": root})
    assert (await look(renamed, held))["files"] == ["new.txt"]
    assert (await resume(renamed, held))["apply_patch"]["status"] == "applied"
    assert (root / "new.txt").exists()
    assert not list(other.iterdir())


async def test_a_hold_stays_one_when_approvals_are_turned_off(opened: Open, root: Path) -> None:
    held = await hold(await opened(), addition())
    lax = await opened(approvals="off")
    assert (await resume(lax, held))["code"] == "APPROVAL_CONFLICT"
    assert not (root / "new.txt").exists()
    await grant(lax, held)
    assert (await resume(lax, held))["state"] == "consumed"


# Running, once


@pytest.mark.parametrize("servers", [1, 2])
async def test_of_many_resumes_at_once_one_runs(opened: Open, root: Path, servers: int) -> None:
    asked = [await opened() for _ in range(servers)]
    (root / "n.txt").write_text("0\n")
    patch = "*** Begin Patch\n*** Update File: n.txt\n@@\n-0\n+0\n+1\n*** End Patch\n"
    held = await held_and_granted(asked[0], ApplyPatch(workspace_id="demo", patch=patch))
    answers: list[dict[str, Any]] = []

    async def run(server: Server) -> None:
        answers.append(await resume(server, held))

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(run, asked[number % servers])
    assert (root / "n.txt").read_text() == "0\n1\n"
    ran = [told["apply_patch"] for told in answers if "apply_patch" in told]
    assert {each["operation_id"] for each in ran} == {ran[0]["operation_id"]}
    assert [each["replayed"] for each in ran].count(False) == 1
    assert {told["code"] for told in answers if "code" in told} <= {"APPROVAL_CONFLICT"}


async def test_a_third_resume_never_takes_the_place_of_the_first(opened: Open) -> None:
    """The one that came second is refused, and takes nothing with it that keeps the others out."""
    server = await opened()
    held = await held_and_granted(server, script("true"))
    gate, begun = anyio.Event(), anyio.Event()
    real = server.world.runner.start

    async def wait(*arguments: Any, **keywords: Any) -> Any:
        begun.set()
        await gate.wait()
        return await real(*arguments, **keywords)

    server._runner.__dict__["start"] = wait
    answers: list[dict[str, Any]] = []

    async def run() -> None:
        answers.append(await resume(server, held))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await begun.wait()
        for _ in range(3):
            told = await resume(server, held)
            assert (told["code"], told["approval_id"]) == ("APPROVAL_CONFLICT", held)
        gate.set()
    assert answers[0]["state"] == "consumed"


async def test_a_stored_answer_is_given_again_after_a_restart(opened: Open, root: Path) -> None:
    server = await opened()
    (root / "a.txt").write_text("a\n")
    patch, command = addition(key="k"), script("exit 3")
    undone = await resume(server, await held_and_granted(server, addition("gone.txt")))
    undo = RevertOperation(operation_id=undone["apply_patch"]["operation_id"])
    missing = ApplyPatch(workspace_id="demo", patch="*** Begin Patch\n*** Delete File: no.txt\n*** End Patch\n")
    nothing = script("true").model_copy(update={"command": ["/no/such/program"]})
    told = {}
    for request in (patch, command, undo, missing, nothing):
        held = await held_and_granted(server, request)
        told[held] = await resume(server, held)
        process_id = told[held].get("exec_command", {}).get("process_id")
        if process_id:
            await _ended([server], process_id)
    other = await opened()
    for held, first in told.items():
        again = await resume(other, held)
        for tool in ("apply_patch", "exec_command", "operation_revert"):
            if tool in first:
                assert again == {**first, tool: {**first[tool], "replayed": True}}
                break
        else:
            assert again == first
    assert [answer.get("code") for answer in told.values()] == [None, None, None, "FILE_NOT_FOUND",
                                                                "PROCESS_SPAWN_FAILED"]
    assert not (root / "gone.txt").exists()


async def test_a_busy_workspace_keeps_the_hold_to_be_resumed_again(opened: Open, tmp_path: Path, root: Path) -> None:
    server = await opened()
    sleeper = await resume(server, await held_and_granted(server, script("cat; printf done > done.txt")))
    process_id = sleeper["exec_command"]["process_id"]
    held = await held_and_granted(server, addition())
    other = await opened()
    for each in (server, other):
        assert (await resume(each, held))["code"] == "WORKSPACE_BUSY"
        state, arguments = read_hold(tmp_path, held)
        assert isinstance(state, Parked)
        assert arguments is not None
        assert (await look(each, held))["state"] == "queued"
    await _end([server], process_id)
    assert (await resume(other, held))["apply_patch"]["status"] == "applied"


async def test_no_room_for_more_commands_keeps_the_hold(opened: Open, tmp_path: Path, root: Path) -> None:
    server = await opened(processes_max=1, live_process="shared")
    first = await resume(server, await held_and_granted(server, script("cat")))
    held = await held_and_granted(server, script("true"))
    assert (await resume(server, held))["code"] == "WORKSPACE_BUSY"
    assert isinstance(read_hold(tmp_path, held)[0], Parked)
    await _end([server], first["exec_command"]["process_id"])
    assert (await resume(server, held))["state"] == "consumed"


async def test_a_store_that_fails_before_the_effect_leaves_it_to_be_resumed(
    opened: Open, tmp_path: Path, root: Path
) -> None:
    server = await opened()
    held = await held_and_granted(server, addition())

    def fail_mint(point: FaultPoint) -> None:
        if point is FaultPoint.PATCH_PLANNED:
            server.hook = fail_append

    def fail_append(point: FaultPoint) -> None:
        if point is FaultPoint.APPEND_IN_TRANSACTION:
            server.hook = no_faults
            raise OSError(28, "No space left on device")

    server.hook = fail_mint
    assert (await resume(server, held))["code"] == "STORE_UNAVAILABLE"
    assert isinstance(read_hold(tmp_path, held)[0], Queued)
    assert not (root / "new.txt").exists()
    await server.die()
    assert (await resume(await opened(), held))["apply_patch"]["status"] == "applied"


async def test_a_result_that_cannot_be_stored_is_ambiguous_and_told_once_it_is_known(
    opened: Open, tmp_path: Path, root: Path
) -> None:
    server = await opened()
    held = await held_and_granted(server, addition())

    def fail_end(point: FaultPoint) -> None:
        if point is FaultPoint.PATCH_WRITTEN:
            server.hook = fail_append

    def fail_append(point: FaultPoint) -> None:
        if point is FaultPoint.APPEND_IN_TRANSACTION:
            server.hook = no_faults
            raise OSError(28, "No space left on device")

    server.hook = fail_end
    told = await resume(server, held)
    assert told["code"] == "APPROVAL_AMBIGUOUS"
    assert told["operation_id"].startswith("op-")
    other = await opened()
    assert (await look(other, held))["state"] == "resuming"
    assert (await resume(other, held))["code"] == "APPROVAL_CONFLICT"
    await server.die()
    again = await resume(other, held)
    assert (again["apply_patch"]["status"], again["apply_patch"]["operation_id"]) == ("applied", told["operation_id"])


async def test_what_a_dead_server_had_queued_is_parked_by_the_next(opened: Open, tmp_path: Path, root: Path) -> None:
    server = await opened()
    held = await held_and_granted(server, addition())

    def stop(point: FaultPoint) -> None:
        if point is FaultPoint.PATCH_LEASED:
            raise OSError(5, "Input/output error")

    server.hook = stop
    with pytest.raises(OSError, match="Input/output"):
        await server.handle(ResumeOperation(approval_id=held))
    assert isinstance(read_hold(tmp_path, held)[0], Queued)
    living = await opened()
    assert (await resume(living, held))["code"] == "APPROVAL_CONFLICT"
    await server.die()
    second = await opened()
    assert isinstance(read_hold(tmp_path, held)[0], Parked)
    assert (await resume(second, held))["apply_patch"]["status"] == "applied"


# Time


async def test_a_hold_expires_at_its_time_and_never_runs(tmp_path: Path, opened: Open, root: Path) -> None:
    clock = HandClock()
    server = await opened(clock=clock, approval_ttl_seconds=60)
    pending, granted = await hold(server, addition()), await held_and_granted(server, addition("b.txt"))
    clock.step(59.999)
    assert (await look(server, pending))["state"] == "pending"
    clock.step(0.001)
    assert (await grant(server, pending))["code"] == "APPROVAL_CONFLICT"
    assert "expired" in (await resume(server, granted))["message"]
    for held in (pending, granted):
        told = await look(server, held)
        assert told["state"] == "expired"
        assert read_hold(tmp_path, held)[1] is None
    assert not list(root.iterdir())
    assert await hold(server, addition()) not in (pending, granted)


@pytest.mark.parametrize("touch", [
    look,
    grant,
    deny,
    resume,
    lambda server, held: hold(server, addition()),
    lambda server, held: create(server, addition()),
    lambda server, held: server.settle(),
])
async def test_whatever_touches_a_hold_first_finds_it_expired(
    tmp_path: Path, opened: Open, touch: Callable[[Server, str], Awaitable[Any]]
) -> None:
    clock = HandClock()
    server = await opened(clock=clock, approval_ttl_seconds=60)
    held = await hold(server, addition())
    clock.step(3600)
    await touch(server, held)
    assert (await look(server, held))["state"] == "expired"
    assert read_hold(tmp_path, held)[1] is None


async def test_a_wall_clock_that_is_set_back_only_gives_more_time(opened: Open) -> None:
    clock = HandClock()
    server = await opened(clock=clock, approval_ttl_seconds=60)
    held = await hold(server, addition())
    clock.step(-3600)
    assert (await look(server, held))["state"] == "pending"
    clock.step(3659)
    assert (await grant(server, held))["state"] == "granted"
    clock.step(1)
    assert (await resume(server, held))["code"] == "APPROVAL_CONFLICT"
    clock.step(-3600)
    assert (await look(server, held))["state"] == "expired"


async def test_a_hold_without_a_time_limit_waits_for_ever(opened: Open) -> None:
    clock = HandClock()
    server = await opened(clock=clock)
    held = await hold(server, addition())
    clock.step(10 * 365 * 86400)
    assert (await grant(server, held))["state"] == "granted"


# What is stored


async def test_arguments_go_with_the_end_of_their_hold_and_no_sooner(opened: Open, tmp_path: Path) -> None:
    server = await opened()
    secret = script("echo s3cr3t-token", key=None)
    held = await hold(server, secret)
    assert b"s3cr3t-token" in (read_hold(tmp_path, held)[1] or b"")
    await grant(server, held)
    assert read_hold(tmp_path, held)[1] is not None
    twin = await create(server, script("echo s3cr3t-token", key="twin"))
    assert read_hold(tmp_path, twin["approval_id"])[1] != read_hold(tmp_path, held)[1]
    await deny(server, twin["approval_id"])
    assert read_hold(tmp_path, twin["approval_id"])[1] is None
    assert read_hold(tmp_path, held)[1] is not None
    told = await look(server, twin["approval_id"])
    assert "s3cr3t" not in str(told)
    assert told["title"] == "Run sh with 2 arguments"
    assert isinstance(read_hold(tmp_path, held)[0], Granted)


async def test_a_denied_secret_stands_in_no_event_and_no_body(opened: Open, tmp_path: Path) -> None:
    server = await opened()
    held = await hold(server, script("echo s3cr3t-token"))
    await deny(server, held)
    await server.stop()
    for file in (tmp_path / "data").glob("codespace.db"):
        assert b"s3cr3t-token" not in file.read_bytes()


# What is shown


async def test_a_hold_shows_what_it_would_do_now_and_what_has_moved_on(opened: Open, root: Path) -> None:
    server = await opened()
    (root / "p.txt").write_text("a\nb\n")
    patch = "*** Begin Patch\n*** Update File: p.txt\n@@\n-a\n+A\n*** End Patch\n"
    held = await hold(server, ApplyPatch(workspace_id="demo", patch=patch))
    told = await look(server, held)
    assert "-a\n+A" in told["diff"]
    assert (told["files"], told["moved_on"]) == (["p.txt"], [])
    (root / "p.txt").write_text("a\nb\nc\n")
    told = await look(server, held)
    assert told["moved_on"] == ["p.txt"]
    assert " c" in told["diff"]
    (root / "p.txt").write_text("z\n")
    told = await look(server, held)
    assert told["preview_error"]["code"] == "INVALID_PATCH"
    assert "diff" not in told


async def test_an_undo_and_a_command_are_shown_too(opened: Open, root: Path) -> None:
    server = await opened()
    done = (await resume(server, await held_and_granted(server, addition())))["apply_patch"]
    held = await hold(server, RevertOperation(operation_id=done["operation_id"]))
    assert "-new" in (await look(server, held))["diff"]
    (root / "new.txt").write_text("changed\n")
    told = await look(server, held)
    assert (told["moved_on"], told["preview_error"]["code"]) == (["new.txt"], "REVERT_CONFLICT")
    command = await hold(server, script("exit 0"))
    assert (await look(server, command))["command"] == ["sh", "-c", "exit 0"]


async def test_a_workspace_tells_how_many_holds_wait_for_a_decision(opened: Open) -> None:
    server = await opened()

    async def count() -> int:
        return int((await ask(server, DescribeWorkspace(workspace_id="demo")))["pending_approvals"])

    assert await count() == 0
    first = await hold(server, addition())
    await hold(server, addition("b.txt"))
    assert await count() == 2
    await grant(server, first)
    assert await count() == 1


@pytest.mark.parametrize("call", [look, grant, deny, resume])
@pytest.mark.parametrize("name", ["appr-00000000-0000-4000-8000-000000000000", "op-1", "store", ""])
async def test_an_unknown_hold_is_not_found(opened: Open, call: Any, name: str) -> None:
    assert (await call(await opened(), name))["code"] == "APPROVAL_NOT_FOUND"


async def _end(servers: list[Server], process_id: str) -> None:
    """Let a command that reads its input come to its end."""
    assert await ask(servers[0], WriteInput(process_id=process_id, data="", eof=True)) == {"ok": True}
    await _ended(servers, process_id)


async def _ended(servers: list[Server], process_id: str) -> None:
    """Wait until no server has it any more: its exit is on record."""
    with anyio.fail_after(30):
        while any(server.world.live.find(ProcessId(process_id)) for server in servers):
            await anyio.sleep(0.01)
