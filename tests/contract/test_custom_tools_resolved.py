"""What custom tools stage, resolved by a real client: as one operation, and never past what the operator wants."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.custom_tools import with_body, write_tools
from support.stdio_client import SECONDS_MAX, ask, connected, product, raw_client, refused

pytestmark = pytest.mark.anyio

STAGE = with_body("stage", """
return await api.push_pending_action(
    params["label"], closure if params.get("lives_here") else "staged", payload=None if params.get("lives_here") else
    params["payload"], source_tool_name="stager", details=params.get("details"),
    reject=rejecting if params.get("lives_here") else None,
)
""").replace("def create_tool(api):\n", '''
import os
import pathlib
import anyio
from codespace_es.tools import ToolResult

def adding(path, text):
    return f"*** Begin Patch\\n*** Add File: {path}\\n+{text}\\n*** End Patch\\n"

def create_tool(api):
    async def act(steps):
        said = []
        for step, value in steps:
            if step == "add":
                outcome = await api.apply_patch(adding(value, "by apply"))
                said.append(outcome.status)
            elif step == "expect":
                await api.apply_patch(adding("expecting", "x"), expected_versions={value: "absent"})
            elif step == "exec":
                said.append((await api.exec(value)).output)
            elif step == "push":
                said.append(await api.push_pending_action(value, "staged", payload=[["add", "inner"]]))
            elif step == "fail_if":
                if os.path.exists(value):
                    raise RuntimeError(f"there is {value}")
            elif step == "wait":
                pathlib.Path(value + ".waits").write_text(str(os.getpid()))
                while not os.path.exists(value):
                    await anyio.sleep(0.01)
            elif step == "error":
                return ToolResult("told so", is_error=True)
            else:
                raise ValueError(step)
        return " ".join(said)
    async def staged(reason, context):
        return await act(context.payload)
    async def rejected(reason, context):
        return await act(context.payload[-1][1]) if context.payload[-1][0] == "on_reject" else None
    async def closure(reason):
        if reason == "too early":
            raise RuntimeError("not yet")
        return "by closure " + reason
    def rejecting(reason):
        raise RuntimeError("can't let go")
    api.register_action("staged", staged, rejected)
''', 1)
LOOK = with_body("look", "return 'seen'", more='"annotations": {"readOnlyHint": True},')


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("server")
    write_tools(scratch / "data" / "tools", stage=STAGE, look=LOOK)
    for name in ("demo", "strict", "held"):
        (scratch / name).mkdir()
    (scratch / "c.toml").write_text(f"""
[defaults]
profile = "workspace-write"
[workspaces.demo]
root = "{scratch / 'demo'}"
[workspaces.strict]
root = "{scratch / 'strict'}"
pending_bias = "require"
[workspaces.held]
root = "{scratch / 'held'}"
approvals = "confirm"
""")
    return scratch


def served(scratch: Path) -> list[str]:
    return [*product(scratch), "--config", str(scratch / "c.toml")]


@pytest.fixture(scope="module")
async def client(scratch: Path) -> AsyncIterator[Client]:
    with anyio.fail_after(5 * SECONDS_MAX):
        async with connected(served(scratch), scratch) as connection:
            yield connection


async def stage(client: Client, workspace: str, *steps: tuple[str, Any], **more: Any) -> str:
    """Return the id of an action that was pushed."""
    arguments = {"label": "the label", "payload": [list(step) for step in steps], **more}
    told = await ask(client, "stage", workspace_id=workspace, **arguments)
    assert told["content"].startswith("Nothing is changed yet.")
    action_id = told["action_id"]
    assert isinstance(action_id, str)
    return action_id


async def apply(client: Client, action_id: str) -> dict[str, Any]:
    return await ask(client, "resolve", action="apply", id=action_id, reason="why")


def files(scratch: Path, workspace: str) -> list[str]:
    return sorted(path.name for path in (scratch / workspace).iterdir())


async def test_what_an_apply_stages_is_one_operation_that_names_its_tool(client: Client, scratch: Path) -> None:
    action_id = await stage(client, "demo", ("add", "one"), ("add", "two"), details={"d": 1})
    assert files(scratch, "demo") == []
    told = await apply(client, action_id)
    assert (told["outcome"], told["text"]) == ("applied", "Applied: the label\nstaged staged")
    assert (told["source_tool_name"], told["details"]) == ("stager", {"d": 1})
    assert files(scratch, "demo") == ["one", "two"]
    status = await ask(client, "operation_status", operation_id=told["operation_id"])
    assert (status["status"], status["source"], status["files"]) == ("applied", "stager", ["one", "two"])
    assert (await apply(client, action_id))["replayed"] is True
    await ask(client, "operation_revert", operation_id=told["operation_id"])
    assert files(scratch, "demo") == []


async def test_an_apply_that_raises_writes_nothing_and_waits_again(client: Client, scratch: Path) -> None:
    obstacle = scratch / "obstacle"
    obstacle.touch()
    action_id = await stage(client, "demo", ("add", "made"), ("fail_if", str(obstacle)))
    told = await refused(client, "resolve", action="apply", id=action_id)
    assert told["message"] == f"Apply failed: RuntimeError: there is {obstacle}"
    assert (told["detail"]["outcome"], told["detail"]["next"]["id"]) == ("returned", action_id)
    assert files(scratch, "demo") == []
    obstacle.unlink()
    operation_id = (await apply(client, action_id))["operation_id"]
    assert files(scratch, "demo") == ["made"]
    await ask(client, "operation_revert", operation_id=operation_id)


@pytest.mark.parametrize(("steps", "message", "outcome"), [
    ([("error", None)], "Apply failed: told so", "failed"),
    ([("add", "made"), ("error", None)], "Apply failed: told so", "failed"),
    ([("exec", ["true"]), ("nonsense", None)], "Apply failed: ValueError: nonsense", "failed"),
    ([("exec", []), ("nonsense", None)], "Apply failed: command is empty", "returned"),
    ([("add", "../out")], "Apply failed: ", "returned"),
    ([("add", "twice"), ("add", "twice")], "Apply failed: ", "returned"),
    ([("expect", "there")], "Apply failed: there is not at the expected version: it exists.", "returned"),
])
async def test_how_an_apply_ends(
    client: Client, scratch: Path, steps: list[tuple[str, Any]], message: str, outcome: str
) -> None:
    (scratch / "demo" / "there").touch()
    action_id = await stage(client, "demo", *steps)
    told = await refused(client, "resolve", action="apply", id=action_id)
    assert told["message"].startswith(message)
    assert told["detail"]["outcome"] == outcome
    assert files(scratch, "demo") == ["there"]
    (scratch / "demo" / "there").unlink()
    if outcome == "returned":
        await ask(client, "resolve", action="discard", id=action_id)


async def test_an_action_that_an_apply_pushes_is_the_next(client: Client, scratch: Path) -> None:
    outer = await stage(client, "demo", ("push", "the inner one"))
    told = await apply(client, outer)
    assert told["next"]["label"] == "the inner one"
    inner = await apply(client, told["next"]["id"])
    assert files(scratch, "demo") == ["inner"]
    await ask(client, "operation_revert", operation_id=inner["operation_id"])


async def test_a_closure_whose_apply_has_raised_can_be_applied_again(client: Client) -> None:
    action_id = await stage(client, "demo", lives_here=True)
    for _ in range(2):
        told = await refused(client, "resolve", action="apply", id=action_id, reason="too early")
        assert (told["message"], told["detail"]["outcome"]) == ("Apply failed: RuntimeError: not yet", "returned")
    assert (await apply(client, action_id))["text"] == "Applied: the label\nby closure why"


async def test_a_closure_is_applied_and_discarded(client: Client) -> None:
    first, second = await stage(client, "demo", lives_here=True), await stage(client, "demo", lives_here=True)
    mismatch = await refused(client, "resolve", action="apply", id=first)
    assert mismatch["code"] == "PENDING_ACTION_MISMATCH"
    assert (await apply(client, second))["text"] == "Applied: the label\nby closure why"
    told = await ask(client, "resolve", action="discard", id=first, reason="no")
    assert told["outcome"] == "discarded"
    assert told["error"]["message"] == "Reject failed: RuntimeError: can't let go"


async def test_a_discard_has_a_text(client: Client) -> None:
    action_id = await stage(client, "demo", ("add", "x"))
    told = await ask(client, "resolve", action="discard", id=action_id, reason="not now")
    assert told["text"] == "Discarded: the label. Reason: not now"


async def test_the_stack_is_that_of_the_work(client: Client) -> None:
    work = (await ask(client, "work_open", workspace_id="demo"))["work_id"]
    mine = await stage(client, "demo", ("add", "x"), work_id=work)
    other = await stage(client, "demo", ("add", "x"))
    assert (await ask(client, "work_finish", work_id=work))["reason"] == "pending_actions"
    await ask(client, "resolve", action="discard", id=mine, work_id=work)
    await ask(client, "resolve", action="discard", id=other)
    assert (await ask(client, "work_finish", work_id=work))["closed"] is True


async def test_the_gate_stops_tools_but_not_what_resolves(client: Client, scratch: Path) -> None:
    first = await stage(client, "strict", ("add", "x"), ("exec", ["touch", "ran"]))
    gated = await refused(client, "stage", workspace_id="strict", label="l", payload=[])
    assert gated["code"] == "PENDING_ACTION_UNRESOLVED"
    assert (await ask(client, "look", workspace_id="strict"))["content"] == "seen"
    await apply(client, first)
    assert files(scratch, "strict") == ["ran", "x"]
    cleaning = [["add", "cleaned"], ["exec", ["touch", "too"]]]
    second = await stage(client, "strict", ("on_reject", cleaning))
    told = await ask(client, "resolve", action="discard", id=second)
    assert (told["outcome"], told.get("error")) == ("discarded", None)
    assert files(scratch, "strict") == ["cleaned", "ran", "too", "x"]


async def test_a_grant_of_the_resolve_covers_its_apply_and_nothing_else(client: Client, scratch: Path) -> None:
    action_id = await stage(client, "held", ("add", "made"), ("exec", ["touch", "ran"]))
    held = await refused(client, "resolve", action="apply", id=action_id)
    assert held["code"] == "APPROVAL_REQUIRED"
    assert files(scratch, "held") == []
    await ask(client, "approval_resolve", approval_id=held["approval_id"], decision="grant")
    told = await ask(client, "operation_resume", approval_id=held["approval_id"])
    assert told["resolve"]["outcome"] == "applied"
    assert files(scratch, "held") == ["made", "ran"]
    # A discard is never held, but what its callback does is.
    action_id = await stage(client, "held", ("on_reject", [["add", "sneaked"]]))
    told = await ask(client, "resolve", action="discard", id=action_id)
    assert told["outcome"] == "discarded"
    assert "is held" in told["error"]["message"]
    assert files(scratch, "held") == ["made", "ran"]


async def _pid_of_waiting(gate: Path) -> int:
    waits = Path(f"{gate}.waits")
    with anyio.fail_after(SECONDS_MAX):
        while not waits.exists() or not waits.read_text():
            await anyio.sleep(0.01)
    return int(waits.read_text())


async def test_a_process_killed_in_an_apply_loses_nothing_that_is_registered(client: Client, scratch: Path) -> None:
    gate = scratch / "gate"
    doomed = await stage(client, "demo", lives_here=True)
    action_id = await stage(client, "demo", ("add", "made"), ("wait", str(gate)))
    async with anyio.create_task_group() as tasks:
        told: list[dict[str, Any]] = []

        async def resolve() -> None:
            told.append(await refused(client, "resolve", action="apply", id=action_id))

        tasks.start_soon(resolve)
        os.kill(await _pid_of_waiting(gate), signal.SIGKILL)
    assert told[0]["message"] == "Apply failed: its process was killed (SIGKILL)"
    assert told[0]["detail"]["outcome"] == "returned"
    assert files(scratch, "demo") == []
    gate.touch()
    done = await apply(client, action_id)
    assert files(scratch, "demo") == ["made"]
    over = await refused(client, "resolve", action="apply", id=doomed)
    assert over["detail"]["outcome"] == "orphaned"
    await ask(client, "operation_revert", operation_id=done["operation_id"])


async def test_a_restart_loses_closures_and_keeps_what_is_registered(tmp_path: Path) -> None:
    write_tools(tmp_path / "data" / "tools", stage=STAGE)
    (tmp_path / "ws").mkdir()
    command = product(tmp_path, f"demo={tmp_path / 'ws'}")
    with anyio.fail_after(3 * SECONDS_MAX):
        async with connected(command, tmp_path) as client:
            lasting = await stage(client, "demo", ("add", "made"))
            doomed = await stage(client, "demo", lives_here=True)
        async with connected(command, tmp_path) as client:
            told = await ask(client, "workspace_info", workspace_id="demo")
            assert told["pending_actions"]["head"]["id"] == lasting
            over = await refused(client, "resolve", action="apply", id=doomed)
            assert over["detail"]["outcome"] == "orphaned"
            assert (await apply(client, lasting))["outcome"] == "applied"
    assert files(tmp_path, "ws") == ["made"]


async def test_a_server_killed_in_an_apply_has_applied_nothing(tmp_path: Path) -> None:
    write_tools(tmp_path / "data" / "tools", stage=STAGE)
    (tmp_path / "ws").mkdir()
    gate = tmp_path / "gate"
    command = product(tmp_path, f"demo={tmp_path / 'ws'}")
    with anyio.fail_after(3 * SECONDS_MAX):
        async with raw_client(command, tmp_path) as raw:
            payload = [["add", "made"], ["wait", str(gate)]]
            told = await raw.call("stage", workspace_id="demo", label="l", payload=payload)
            await raw.start_call(7, "resolve", action="apply", id=told["action_id"])
            pid = await _pid_of_waiting(gate)
            raw.kill(signal.SIGKILL)
            await raw.exit_code()
            while Path(f"/proc/{pid}").exists():  # the process of the tools ends with its server
                await anyio.sleep(0.01)
        gate.touch()
        assert files(tmp_path, "ws") == []
        async with connected(command, tmp_path) as client:
            assert (await apply(client, told["action_id"]))["outcome"] == "applied"
    assert files(tmp_path, "ws") == ["made"]
