"""A call that waits for code of a tool tells its caller so, whatever becomes of the telling."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from codespace_es.command_handlers import waiting as story
from codespace_es.command_handlers.calling_tools import CallCustomTool, CustomToolAnswer, call_custom_tool
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.waiting import wait_aloud
from codespace_es.ports.custom_tools import NoCustomTools, ToolOutcome
from codespace_es.ports.tool_host import ActionCall, CallbackResult
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.pending import CALLER, FakeToolHost, push_handler
from support.server import Server
from support.stdio_client import SECONDS_MAX

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "PROGRESS_INTERVAL_SECONDS", 0.001)


@pytest.fixture
def host() -> FakeToolHost:
    return FakeToolHost()


@pytest.fixture
async def server(tmp_path: Path, host: FakeToolHost) -> AsyncIterator[Server]:
    (tmp_path / "ws").mkdir()
    with anyio.fail_after(SECONDS_MAX):
        async with Server(tmp_path, {"demo": tmp_path / "ws"}, tool_host=host) as opened:
            yield opened


class Listener:
    """Counts what it is told; `enough` is set at the third word."""

    def __init__(self) -> None:
        self.words: list[tuple[float, str]] = []
        self.enough = anyio.Event()
        self.caller = replace(CALLER, report_wait=self.listen)

    async def listen(self, seconds: float, awaited: str) -> None:
        self.words.append((seconds, awaited))
        if len(self.words) == 3:
            self.enough.set()


class SlowTools(NoCustomTools):
    """One tool that runs until its caller has been told three times."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    async def execute(self, *_given: Any) -> ToolOutcome:
        await self._listener.enough.wait()
        return ToolOutcome("done")


async def test_a_tool_that_runs_long_is_told_of(server: Server) -> None:
    listener = Listener()
    world = replace(server.world, custom_tools=SlowTools(listener))
    command = CallCustomTool(tool="slow", workspace_id="demo")
    assert (await call_custom_tool(world, command, listener.caller)) == CustomToolAnswer(content="done")
    assert {awaited for _, awaited in listener.words} == {"slow"}
    told = [seconds for seconds, _ in listener.words]
    assert told == sorted(told)


async def test_a_callback_that_runs_long_is_told_of(server: Server, host: FakeToolHost) -> None:
    listener = Listener()

    async def apply(_call: ActionCall) -> CallbackResult:
        await listener.enough.wait()
        return CallbackResult("done")

    host.handlers["slow"] = apply
    pushed = await push_handler(server, "slow")
    done = await server.codespace.handle(ResolveAction(action="apply", id=pushed.action_id), listener.caller)
    assert isinstance(done, ResolveResult)
    assert (done.outcome, {awaited for _, awaited in listener.words}) == ("applied", {"custom"})


async def test_a_listener_that_fails_or_sleeps_changes_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(story, "_LISTENER_SECONDS_MAX", 0.001)
    asked = anyio.Event()

    async def fail(_seconds: float, _awaited: str) -> None:
        asked.set()
        raise anyio.ClosedResourceError

    async def sleep(_seconds: float, _awaited: str) -> None:
        asked.set()
        await anyio.sleep_forever()

    async def work() -> str:
        await asked.wait()
        for _ in range(10):
            await anyio.sleep(0.001)
        return "done"

    for listen in (fail, sleep):
        asked = anyio.Event()
        assert await wait_aloud(server.world, replace(CALLER, report_wait=listen), "it", work) == "done"


async def test_what_it_raises_escapes_as_itself_and_a_cancellation_reaches_it(server: Server) -> None:
    async def refuse() -> None:
        raise CodespaceError(ErrorCode.TOOL_FAILED, "no")

    with pytest.raises(CodespaceError, match="no"):
        await wait_aloud(server.world, CALLER, "it", refuse)

    ended: list[str] = []

    async def run_for_ever() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    with anyio.move_on_after(0.01) as scope:
        await wait_aloud(server.world, CALLER, "it", run_for_ever)
    assert (scope.cancelled_caught, ended) == (True, ["ended"])
