"""What whoever waits is answered when the server is told to end, over both transports: the truth, before they close."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from anyio.abc import TaskGroup

from adapters.clock_and_ids import RandomIds
from adapters.locks.flock import lock_directory_of_user
from adapters.locks.lease import FlockWorkspaceLeases
from adapters.log.reader import LogReader
from adapters.machine import machine_id
from codespace_es.command_handlers.calling_tools import CallCustomTool, CustomToolAnswer
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.locks import Held
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId, workspace_key
from support.cli_project import Project
from support.custom_tools import with_body, write_tools
from support.http_client import HttpServer, call_message, serving, structured
from support.stdio_client import SECONDS_MAX, RawClient, ask, connected, product, raw_client, read_log

pytestmark = pytest.mark.anyio

WAIT_MS = 30_000
WORKSPACES = ("read", "run", "queue", "held")
SLOW = with_body("slow", """
import pathlib
import anyio
pathlib.Path(params["mark"]).touch()
await anyio.sleep_forever()
""")
STAYING = with_body("stage", """
return await api.push_pending_action("label", apply)
""").replace("def create_tool(api):\n", """
import anyio
import pathlib
def create_tool(api):
    async def apply(reason):
        pathlib.Path(reason).touch()
        while True:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)
""", 1)


class Client:
    """One client of either transport: asks, and has calls that wait."""

    def __init__(self, server: RawClient | HttpServer, tasks: TaskGroup) -> None:
        self.server = server
        self.answers: dict[str, dict[str, Any]] = {}
        self._tasks = tasks

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        if isinstance(self.server, HttpServer):
            return await self.server.ask(tool, **arguments)
        return await self.server.call(tool, **arguments)

    async def begin(self, name: str, tool: str, **arguments: Any) -> None:
        """Have a call begin that waits; its answer is kept under `name`."""
        if isinstance(self.server, HttpServer):
            self._tasks.start_soon(self._post, name, tool, arguments)
        else:
            await self.server.start_call(name, tool, **arguments)

    async def _post(self, name: str, tool: str, arguments: dict[str, Any]) -> None:
        assert isinstance(self.server, HttpServer)
        async with self.server.plain() as client:
            response = await client.post(self.server.url, json=call_message(tool, **arguments))
        self.answers[name] = structured(response)

    async def end(self, how: signal.Signals | Literal["eof"] | None) -> int | None:
        """Tell the server to end, unless it does anyway; take every answer that comes, and return its exit code."""
        if how == "eof":
            assert isinstance(self.server, RawClient)
            await self.server.end_input()
        elif how is not None:
            self.server.kill(how)
        if isinstance(self.server, RawClient):
            async for answer in lines(self.server):
                assert answer["id"] not in self.answers
                self.answers[answer["id"]] = answer["result"]["structuredContent"]
        return await self.server.process.wait()


async def lines(server: RawClient) -> AsyncIterator[dict[str, Any]]:
    """Yield every message until the output is closed; each is whole."""
    while True:
        try:
            yield await server.receive()
        except anyio.IncompleteRead:
            assert not server.output.buffer
            return


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return the command line of a server with a slow tool; in `held`, whoever runs something has to ask."""
    write_tools(tmp_path / "data" / "tools", slow=SLOW)
    told = ""
    for name in WORKSPACES:
        (tmp_path / name).mkdir()
        told += f'[workspaces.{name}]\nroot = "{tmp_path / name}"\nprofile = "workspace-write"\n'
    told += 'approvals = "confirm"\nelicitation_timeout_seconds = 600\n'
    (tmp_path / "codespace.toml").write_text(told, encoding="utf-8")
    return [*product(tmp_path), "--config", str(tmp_path / "codespace.toml")]


@asynccontextmanager
async def client_of(command: list[str], scratch: Path, how: str) -> AsyncIterator[Client]:
    async with anyio.create_task_group() as tasks:
        if how == "http":
            async with serving([*command, "--http", "127.0.0.1:0"], scratch) as server:
                yield Client(server, tasks)
        else:
            async with raw_client(command, scratch) as raw:
                yield Client(raw, tasks)


async def lease_of(directory: Path) -> Held:
    """Return the lease of a workspace, as if another server wrote there."""
    async def nothing(*_given: Any) -> None: ...

    locks = lock_directory_of_user()
    key = workspace_key(machine_id(Path(locks), RandomIds()), str(directory.resolve()))
    return await FlockWorkspaceLeases(locks).acquire(key, refuse=nothing, on_wait=nothing)


def adding(workspace: str) -> dict[str, Any]:
    patch = "*** Begin Patch\n*** Add File: added.txt\n+text\n*** End Patch\n"
    return {"workspace_id": workspace, "patch": patch, "operation_key": f"in-{workspace}"}


async def exists(path: Path) -> None:
    while not path.exists():
        await anyio.sleep(0.01)


def events_of(scratch: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return topic and content of all that is on the log."""
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as log:
        return [(each.topic, each.event.model_dump(mode="json")) for each in log.read_log()]


@pytest.mark.parametrize(("transport", "how"), [
    ("stdio", signal.SIGTERM), ("stdio", "eof"), ("http", signal.SIGINT),
])
async def test_everybody_who_waits_is_answered_before_the_transport_closes(
    tmp_path: Path, command: list[str], transport: str, how: signal.Signals | Literal["eof"]
) -> None:
    polite = "trap 'echo bye; exit 3' TERM; echo begun; touch runs; sleep 999 & wait"
    with anyio.fail_after(SECONDS_MAX):
        async with client_of(command, tmp_path, transport) as client:
            quiet = {"workspace_id": "read", "command": ["sh", "-c", "echo so far; sleep 999"]}
            silent = await client.ask("exec_command", **quiet)
            said = await client.ask("read_process", process_id=silent["process_id"], wait_ms=WAIT_MS)
            hold = await client.ask("apply_patch", **adding("held"))
            await client.ask("approval_resolve", approval_id=hold["approval_id"], decision="grant")
            others = [await lease_of(tmp_path / name) for name in ("queue", "held")]
            await client.begin(
                "read", "read_process", process_id=silent["process_id"], cursor=said["cursor"], wait_ms=WAIT_MS)
            await client.begin("run", "exec_command", workspace_id="run", command=["sh", "-c", polite], wait_ms=WAIT_MS)
            await client.begin("queue", "apply_patch", **adding("queue"))
            await client.begin("held", "operation_resume", approval_id=hold["approval_id"])
            await client.begin("slow", "slow", workspace_id="run", mark=str(tmp_path / "slow"))
            await exists(tmp_path / "run" / "runs")
            await exists(tmp_path / "slow")
            while (await client.ask("approval_status", approval_id=hold["approval_id"]))["state"] == "granted":
                await anyio.sleep(0.01)
            assert await client.end(how) == 0
        for lease in others:
            lease.release()
        answers = client.answers
        assert {name: answers[name].get("code") for name in answers} == {
            "read": None, "run": None, "queue": "SERVER_SHUTTING_DOWN", "held": "SERVER_SHUTTING_DOWN",
            "slow": "SERVER_SHUTTING_DOWN",
        }
        assert (answers["read"]["chunk"], answers["read"]["cursor"], answers["read"]["eof"]) == ("", 7, True)
        run = answers["run"]
        assert (run["state"], run["termination"], run["output"], run["eof"]) == (
            "exited", "terminated", "begun\nbye\n", True)
        assert answers["queue"]["retry"] == "after_change"
        async with connected(command, tmp_path) as later:
            resumed = await ask(later, "operation_resume", approval_id=hold["approval_id"])
            again = await ask(later, "apply_patch", **adding("queue"))
    assert (resumed["apply_patch"]["status"], again["status"], again["replayed"]) == ("applied", "applied", False)
    _look_at_the_log(events_of(tmp_path), [silent["process_id"], run["process_id"]])


def _look_at_the_log(events: list[tuple[str, dict[str, Any]]], processes: list[str]) -> None:
    """The commands' ends and the refusals are there, before the end of the server; what was refused isn't."""
    first_life = events[: [topic for topic, _ in events].index("instance.stopped.v1") + 1]
    told = [topic for topic, _ in first_life]
    ended = [event["cause"] for topic, event in first_life if topic == "process.end_requested.v1"]
    refused = {event["tool"]: event["code"] for topic, event in first_life if topic == "instance.call_refused.v1"}
    assert ended == ["shutdown"] * len(processes)
    assert told.count("process.exited.v1") == len(processes)
    assert {tool: refused[tool] for tool in ("apply_patch", "slow")} == {
        "apply_patch": "SERVER_SHUTTING_DOWN", "slow": "SERVER_SHUTTING_DOWN",
    }
    assert "operation.minted.v1" not in told


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_log_that_is_lost_ends_the_server_with_what_runs_there_and_each_call_is_answered(
    tmp_path: Path, command: list[str], transport: str
) -> None:
    """The log can't say so, stderr does in one line."""
    with anyio.fail_after(SECONDS_MAX):
        async with client_of(command, tmp_path, transport) as client:
            waiting = {"command": ["sh", "-c", "touch runs; sleep 999"], "wait_ms": WAIT_MS}
            silent = await client.ask("exec_command", workspace_id="read", command=["sleep", "999"])
            await client.begin("run", "exec_command", workspace_id="run", **waiting)
            await client.begin("read", "read_process", process_id=silent["process_id"], wait_ms=WAIT_MS)
            await exists(tmp_path / "run" / "runs")
            for file in (tmp_path / "data").glob("codespace.db*"):
                file.unlink()
            await client.begin("lost", "apply_patch", **adding("queue"))
            assert await client.end(None) == 2
    codes = {name: answer.get("code") for name, answer in client.answers.items()}
    assert codes == dict.fromkeys(("run", "read", "lost"), "STORE_UNAVAILABLE")
    told = read_log(tmp_path)
    assert "The event log can't be used" in told
    assert "Traceback" not in told


async def test_who_waits_for_a_person_is_told_that_it_is_held(tmp_path: Path, command: list[str]) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path, initializes=False) as client:
            await client.ask("initialize", {
                "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "raw", "version": "1"},
            })
            await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            await client.start_call("held", "apply_patch", **adding("held"))
            form = await client.receive()
            assert form["method"] == "elicitation/create"
            client.kill(signal.SIGTERM)
            told = [message async for message in lines(client)]
            assert await client.exit_code() == 0
        answer = next(each for each in told if each.get("id") == "held")["result"]["structuredContent"]
        assert answer["code"] == "APPROVAL_REQUIRED"
        assert {each.get("method") for each in told} == {None, "notifications/cancelled"}
        async with connected(command, tmp_path) as later:
            status = await ask(later, "approval_status", approval_id=answer["approval_id"])
    assert status["state"] == "pending"


async def test_who_gets_a_workspace_only_while_the_server_ends_begins_nothing(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    caller = Caller("mcp", RequestId("req-1"))
    lease = await lease_of(project.root)
    refusals: list[CodespaceError] = []
    async with project.opened() as opened:

        async def add() -> None:
            with pytest.raises(CodespaceError) as refusal:
                await opened.codespace.handle(ApplyPatch(**adding("demo")), caller)
            refusals.append(refusal.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(add)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(opened.codespace.close, caller)
            await anyio.wait_all_tasks_blocked()
            lease.release()
    assert [each.code for each in refusals] == [ErrorCode.SERVER_SHUTTING_DOWN]
    assert not (project.root / "added.txt").exists()


async def test_a_callback_that_goes_on_and_on_is_ended_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TOOL_STOP_GRACE_SECONDS", 0.01)
    project = Project.make(tmp_path)
    write_tools(project.data / "tools", stage=STAYING)
    caller = Caller("mcp", RequestId("req-1"))
    refusals: list[CodespaceError] = []
    async with project.opened() as opened:
        pushed = await opened.codespace.handle(CallCustomTool(tool="stage", workspace_id="demo"), caller)
        assert isinstance(pushed, CustomToolAnswer)

        async def resolve() -> None:
            command = ResolveAction(action="apply", id=pushed.action_id, reason=str(tmp_path / "applying"))
            with pytest.raises(CodespaceError) as refusal:
                await opened.codespace.handle(command, caller)
            refusals.append(refusal.value)

        with anyio.fail_after(SECONDS_MAX):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(resolve)
                await exists(tmp_path / "applying")
                await opened.codespace.close(caller)
        with pytest.raises(CodespaceError) as late:
            await opened.codespace.handle(CallCustomTool(tool="stage", workspace_id="demo"), caller)
    assert [(each.code, each.detail["outcome"]) for each in refusals] == [(ErrorCode.APPLY_FAILED, "orphaned")]
    assert late.value.code is ErrorCode.SERVER_SHUTTING_DOWN
    popped = [event["outcome"] for topic, event in events_of(tmp_path) if topic == "pending.action_popped.v1"]
    assert popped == ["orphaned"]
