"""Pending actions of custom tools, in their real process: how they are pushed, called back, lost and let go."""

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.tool_host.custom_tools import HostedTools, Surroundings, open_custom_tools
from adapters.tool_host.hosts import Limits
from adapters.tool_host.sources import find_sources
from codespace_es.ports.custom_tools import CallSubject, OrphanedAction
from codespace_es.ports.tool_host import ActionCall, CallbackLostError, CallbackRaisedError, CallbackResult
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ActionId, RequestId
from support.custom_tools import subject, with_body, write_tools

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


ANSWER = CodespaceError(ErrorCode.VERSION_CONFLICT, "It moved on.", detail={"path": "a"})

FILE = with_body("push", """
import types
pushed = params["pushed"]
def lambda_of(name):
    async def apply(reason, context):
        if reason == "raise":
            raise ValueError("not yet")
        if reason == "conflict":
            await api.apply_patch("conflict")
        if reason == "hang":
            await __import__("anyio").sleep(1000)
        if reason == "pid":
            import os
            return str(os.getpid())
        if reason == "patch":
            await api.apply_patch("one")
            await api.apply_patch("two")
        if reason == "exec":
            await api.exec(["true"])
            raise ValueError("after a command")
        if reason == "push":
            return await api.push_pending_action("inner", lambda reason: "inner done")
        if reason == "error":
            from codespace_es.tools import ToolResult
            return ToolResult("stale", details=[1], is_error=True)
        return f"{name} {reason} {context.label} {context.extra} {context.action_id} {context.work_id}"
    return apply
def in_a_thread(reason, note="mine"):
    return f"{note} {reason}"
callbacks = {
    "closure": lambda_of("closure"), "thread": in_a_thread, "nothing": lambda reason: None, "number": lambda reason: 3,
    "registered": "kept", "unknown": "nowhere", "uncallable": 3, None: None,
}
for key in ("apply", "reject"):
    if key in pushed:
        pushed[key] = callbacks[pushed[key]]
if params.get("form") == "mapping":
    return await api.push_pending_action(pushed)
if params.get("form") == "object":
    return await api.push_pending_action(types.SimpleNamespace(**pushed))
return await api.push_pending_action(**pushed)
""").replace("def create_tool(api):\n", """
def create_tool(api):
    async def kept(reason, context):
        return f"kept {context.payload} {reason}"
    def rejected(reason, context):
        return f"rejected {context.payload}"
    api.register_action("kept", kept, rejected)
""", 1).replace('"parameters": {"type": "object"}, ', '"parameters": {"type": "object"}, "timeout": 3, ')


@dataclass
class Services:
    """Remembers what was asked, and answers with fresh ids."""

    subject: CallSubject
    asked: list[tuple[str, Mapping[str, Any]]]
    patches_staged: list[str] = field(default_factory=list)
    is_external: bool = False
    expected_versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def patches(self) -> tuple[str, ...]:
        return tuple(self.patches_staged)

    async def serve(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method, parameters))
        if method == "push_pending_action":
            return {"action_id": f"act-{len(self.asked)}"}
        if method == "exec":
            self.is_external = True
            return {
                "process_id": "proc-1", "termination": "exited", "exit_code": 0, "output": "", "is_output_cut": False,
            }
        assert method == "apply_patch"
        if parameters["patch"] == "conflict":
            raise ANSWER
        self.patches_staged.append(parameters["patch"])
        return {"status": "staged", "files": ["a"]}


@dataclass
class Stage:
    """The real tools with services that only remember."""

    tools: HostedTools
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    orphans: list[OrphanedAction] = field(default_factory=list)

    async def push(self, form: str = "arguments", **pushed: Any) -> ActionId:
        """Return the id of an action that was pushed. Raises what the tool is told."""
        call = subject("push", work_id="work-1")
        outcome = await self.tools.execute(call, {"pushed": pushed, "form": form}, Services(call, self.asked))
        return ActionId(outcome.content)

    async def apply(self, action_id: str, reason: str = "", **more: Any) -> CallbackResult:
        return await self.tools.apply(call_of(action_id, reason, **more))

    async def _keep(self, orphans: Any) -> None:
        self.orphans += orphans


def call_of(action_id: str, reason: str = "", *, handler: str | None = None, payload: Any = None) -> ActionCall:
    return ActionCall(
        ActionId(action_id), "demo", "work-1", "the label", "tester", handler, payload, reason, {"e": 1}, None,
        Caller("mcp", RequestId("req-1")),
    )


@asynccontextmanager
async def opened(scratch: Path, **files: str) -> AsyncIterator[Stage]:
    write_tools(scratch / "tools", **{"a": FILE, **files})
    surroundings = Surroundings(
        find_sources=lambda: find_sources(scratch, ()), roots=(), reserved=frozenset(),
        limits_of_time=Limits(load=60, grace=0.5),
    )
    with anyio.fail_after(120):
        async with open_custom_tools(surroundings) as tools:
            stage = Stage(tools)
            tools.begin(lambda call: Services(call, stage.asked), stage._keep)
            assert not (await tools.catalogue()).faults
            yield stage


@pytest.fixture(scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with opened(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


_FAILED = "push failed: ValueError: push_pending_action"
_LABEL = "push failed: ValueError: push_pending_action needs a label: a short sentence that says what would be done."
_APPLY = "push failed: ValueError: push_pending_action needs apply: an async callable that takes the reason."


@pytest.mark.parametrize(("pushed", "message"), [
    ({}, _LABEL),
    ({"label": " ", "apply": "closure"}, _LABEL),
    ({"label": "l"}, _APPLY),
    ({"label": "l", "apply": None}, _APPLY),
    ({"label": "l", "apply": "uncallable"}, _APPLY),
    ({"label": "l", "apply": "closure", "reject": "uncallable"},
     f"{_FAILED} takes as reject an async callable that takes the reason, or nothing."),
    ({"label": "l", "apply": "unknown"},
     "push failed: ValueError: no action is registered as 'nowhere' by this file; registered: kept."),
    ({"label": "l", "apply": "registered", "reject": "thread"},
     "push failed: ValueError: reject is registered together with apply: push the name alone."),
    ({"label": "l", "apply": "closure", "payload": 1},
     "push failed: ValueError: payload goes with the name of a registered action; a closure keeps what it needs."),
    ({"label": "l", "apply": "closure", "source_tool_name": " "},
     f"{_FAILED} needs source_tool_name to be a text that isn't empty."),
])
@pytest.mark.parametrize("form", ["arguments", "mapping", "object"])
async def test_what_is_pushed_is_checked_before_anything_is_asked(
    stage: Stage, form: str, pushed: dict[str, Any], message: str
) -> None:
    asked = len(stage.asked)
    with pytest.raises(CodespaceError) as refusal:
        await stage.push(form, **pushed)
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.TOOL_FAILED, message)
    assert len(stage.asked) == asked


@pytest.mark.parametrize("form", ["arguments", "mapping", "object"])
async def test_both_forms_push_the_same(stage: Stage, form: str) -> None:
    name = "source_tool_name" if form == "arguments" else "sourceToolName"
    await stage.push(form, label="l", apply="registered", details={"d": 1}, payload=[2], **{name: "mine"})
    assert stage.asked[-1] == ("push_pending_action", {
        "label": "l", "action": "kept", "details": {"d": 1}, "source_tool_name": "mine", "payload": [2],
    })
    await stage.push(form, label="l", apply="closure")
    assert stage.asked[-1] == ("push_pending_action", {
        "label": "l", "action": None, "details": None, "source_tool_name": "custom_tool", "payload": None,
    })


async def test_a_closure_is_called_with_reason_and_context(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="closure", reject="thread")
    result = await stage.apply(action_id, "why")
    assert result == CallbackResult(f"closure why the label {{'e': 1}} {action_id} work-1")
    assert await stage.tools.reject(call_of(action_id, "why")) == CallbackResult("mine why")


async def test_a_default_of_the_authors_own_stays(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="thread")
    assert (await stage.apply(action_id, "why")).text == "mine why"


async def test_a_callback_may_say_nothing(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="nothing", reject="nothing")
    assert await stage.apply(action_id) == CallbackResult("")
    action_id = await stage.push(label="l", apply="nothing", reject="nothing")
    assert await stage.tools.reject(call_of(action_id)) is None
    action_id = await stage.push(label="l", apply="nothing")
    assert await stage.tools.reject(call_of(action_id)) is None


async def test_an_apply_that_raises_can_be_applied_again(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="closure")
    for reason, message in (("raise", "ValueError: not yet"), ("conflict", "It moved on.")):
        with pytest.raises(CallbackRaisedError) as raised:
            await stage.apply(action_id, reason)
        assert not isinstance(raised.value, CallbackLostError)
        assert (raised.value.message, raised.value.is_external) == (message, False)
    assert (await stage.apply(action_id, "now")).text.startswith("closure now")


async def test_what_an_apply_stages_and_runs_is_told(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="closure")
    with pytest.raises(CallbackRaisedError) as raised:
        await stage.apply(action_id, "exec")
    assert raised.value.is_external
    assert (await stage.apply(action_id, "patch")).patches == ("one", "two")
    action_id = await stage.push(label="l", apply="closure")
    assert await stage.apply(action_id, "error") == CallbackResult("stale", [1], is_error=True)


async def test_an_apply_can_push(stage: Stage) -> None:
    outer = await stage.push(label="l", apply="closure")
    inner = (await stage.apply(outer, "push")).text
    assert (await stage.apply(inner)).text == "inner done"


async def test_an_apply_that_takes_too_long_is_stopped_and_stays(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="closure")
    with pytest.raises(CallbackRaisedError, match="apply took longer than 3 s"):
        await stage.apply(action_id, "hang")
    assert (await stage.apply(action_id, "now")).text.startswith("closure now")


async def test_a_registered_action_is_found_by_its_name(stage: Stage) -> None:
    assert (await stage.apply("act-other", "why", handler="kept", payload=[1])).text == "kept [1] why"
    rejected = await stage.tools.reject(call_of("act-other", handler="kept", payload=2))
    assert rejected == CallbackResult("rejected 2")
    with pytest.raises(CallbackLostError, match="There is no action 'nowhere': no custom tool registers it here"):
        await stage.apply("act-other", handler="nowhere")


async def test_what_a_callback_returns_is_checked(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="number")
    with pytest.raises(CallbackRaisedError, match="apply returned int; return a string or a ToolResult"):
        await stage.apply(action_id)


async def test_a_closure_that_was_let_go_is_gone(stage: Stage) -> None:
    action_id = await stage.push(label="l", apply="closure")
    stage.tools.forget(action_id)
    stage.tools.forget(ActionId("act-unknown"))
    with pytest.raises(CallbackLostError, match="No process of this server has its callback"):
        await stage.apply(action_id)


async def test_closures_are_lost_with_their_process_and_registered_actions_are_not(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        first, second = await stage.push(label="l", apply="closure"), await stage.push(label="l", apply="closure")
        over = await stage.push(label="l", apply="closure")
        pid = int((await stage.apply(over, "pid")).text)
        stage.tools.forget(over)
        lost: list[CallbackRaisedError] = []

        async def apply() -> None:
            with pytest.raises(CallbackLostError) as raised:
                await stage.apply(first, "hang")
            lost.append(raised.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(apply)
            await anyio.wait_all_tasks_blocked()
            os.kill(pid, signal.SIGKILL)
        assert [error.message for error in lost] == ["its process was killed (SIGKILL)"]
        while not stage.orphans:
            await anyio.sleep(0.01)
        assert [(each.action_id, each.workspace_id, each.work_id) for each in stage.orphans] == [
            (first, "demo", "work-1"), (second, "demo", "work-1"),
        ]
        with pytest.raises(CallbackLostError):
            await stage.apply(second)
        # Somebody's SIGKILL proves nothing against the file: it is loaded again, and finds what it had registered.
        assert (await stage.apply("act-other", handler="kept", payload=1)).text == "kept 1 "
        assert not (await stage.tools.catalogue()).faults


async def test_a_file_whose_process_is_killed_again_and_again_is_skipped(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        for _ in range(3):
            pid = int((await stage.apply(await stage.push(label="l", apply="closure"), "pid")).text)
            os.kill(pid, signal.SIGKILL)
            while Path(f"/proc/{pid}").exists():
                await anyio.sleep(0.01)
        while not (await stage.tools.catalogue()).faults:
            await anyio.sleep(0.01)
        with pytest.raises(CallbackLostError, match="There is no action 'kept': its process was killed"):
            await stage.apply("act-other", handler="kept")


async def test_what_was_on_its_way_to_a_process_that_ends_stops_nothing(tmp_path: Path) -> None:
    blocking = with_body("block", "import time\ntime.sleep(1000)", more='"timeout": 0.2')
    async with opened(tmp_path, block=blocking) as stage:
        lost: list[ErrorCode] = []

        async def call(text: str) -> None:
            try:
                await stage.tools.execute(subject("block"), {"text": text}, Services(subject("block"), []))
            except CodespaceError as error:
                lost.append(error.code)

        for _ in range(2):  # the second process may have the first one's number of its socket
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(call, "x" * 4_000_000)
        assert set(lost) <= {ErrorCode.TIMEOUT, ErrorCode.TOOL_FAILED}
        assert len(lost) == 6
        assert (await stage.apply("act-other", handler="kept", payload="x" * 4_000_000)).text.startswith("kept x")


async def test_two_files_cannot_register_one_name(tmp_path: Path) -> None:
    other = FILE.replace("'push'", "'other'")
    async with open_custom_tools(Surroundings(
        find_sources=lambda: find_sources(tmp_path, ()), roots=(), reserved=frozenset(), limits_of_time=Limits(load=60)
    )) as tools:
        write_tools(tmp_path / "tools", a=FILE, b=other)
        await tools.load()
        faults = (await tools.catalogue()).faults
    assert [(fault.source, fault.message) for fault in faults] == [
        ("tools/b.py", "ValueError: an action is registered as 'kept' already, by tools/a.py."),
    ]
