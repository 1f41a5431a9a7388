"""The tools over Streamable HTTP: a real server, the SDK's own client, and connections that are cut."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from adapters.clock_and_ids import RandomIds
from adapters.locks.flock import lock_directory_of_user
from adapters.locks.lease import FlockWorkspaceLeases
from adapters.machine import machine_id
from adapters.mcp_server.tool_catalogue import TOOLS
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.identifiers import workspace_key
from support.http_client import (
    MODERN_META,
    TOKEN,
    HttpServer,
    call_message,
    http_product,
    messages,
    modern_headers,
    serving,
    structured,
)
from support.stdio_client import ERAS, SECONDS_MAX, Era, ask, connected, product, refused
from support.warm_servers import from_nothing

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ws")


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, root: Path) -> AsyncIterator[HttpServer]:
    scratch = tmp_path_factory.mktemp("server")
    command = http_product(scratch, f"demo={root}:workspace-write")
    with anyio.fail_after(SECONDS_MAX):
        async with serving(from_nothing(command), scratch, token=TOKEN) as child:
            with anyio.CancelScope(shield=True):
                yield child


@pytest.fixture(params=ERAS)
async def client(request: pytest.FixtureRequest, server: HttpServer) -> AsyncIterator[Client]:
    era: Era = request.param
    async with server.client(era) as connection:
        assert connection.protocol_version == era
        yield connection


def era_of(client: Client) -> Era:
    era: Any = client.protocol_version
    chosen: Era = era
    return chosen


def add(path: str, text: str = "text") -> str:
    return f"*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\n"


async def test_a_client_of_either_era_is_told_the_same_server(client: Client) -> None:
    """Checks 18, 56, 58."""
    with anyio.fail_after(SECONDS_MAX):
        assert client.server_info is not None
        assert client.server_info.name == "codespace"
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        told = await ask(client, "workspace_info")
        assert "codespace://workspaces" in [str(each.uri) for each in (await client.list_resources()).resources]
    assert told["transports"] == ["stdio", "streamable-http"]
    assert told["tools_exposed"] == list(TOOLS)
    assert (told["workspace_id"], told["internal_model_calls"]) == (None, False)
    assert "execution" not in told


async def test_stdio_and_http_list_the_same_tools_with_the_same_schemas(
    tmp_path: Path, server: HttpServer, root: Path
) -> None:
    """Check 72."""

    async def listed(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        return [tool.model_dump() for tool in tools], await ask(client, "workspace_info")

    with anyio.fail_after(SECONDS_MAX):
        async with (
            connected(product(tmp_path, f"demo={root}"), tmp_path) as over_stdio,
            server.client("2025-11-25") as legacy,
            server.client("2026-07-28") as modern,
        ):
            assert await listed(legacy) == await listed(modern) == await listed(over_stdio)


async def test_a_whole_flow(client: Client, root: Path) -> None:
    name = f"{era_of(client)}.txt"
    with anyio.fail_after(SECONDS_MAX):
        applied = await ask(client, "apply_patch", workspace_id="demo", patch=add(name), operation_key=f"flow-{name}")
        assert applied["status"] == "applied"
        read = await ask(client, "read", workspace_id="demo", path=name)
        assert read["content"] == "text\n"
        assert (await ask(client, "operation_status", operation_key=f"flow-{name}"))["status"] == "applied"
        outside = await refused(client, "read", workspace_id="demo", path="../x")
    assert outside["code"] == "PATH_ESCAPE"
    assert (root / name).read_text() == "text\n"


async def test_a_call_needs_no_handshake_and_no_session(server: HttpServer) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with server.plain(**{"Mcp-Session-Id": "of-a-server-before-the-restart"}) as client:
            response = await client.post(server.url, json=call_message("workspace_info"))
    assert structured(response)["server"] == "codespace"
    assert "mcp-session-id" not in response.headers


async def test_progress_arrives_in_either_era_while_a_call_waits_and_who_hangs_up_meanwhile_is_forgotten(
    server: HttpServer, root: Path
) -> None:
    locks = lock_directory_of_user()
    key = workspace_key(machine_id(Path(locks), RandomIds()), str(root.resolve()))
    told: dict[Era, list[str | None]] = {era: [] for era in ERAS}
    answers: list[dict[str, Any]] = []
    is_told = {era: anyio.Event() for era in ERAS}

    async def patch(era: Era) -> None:
        async def on_progress(_progress: float, _total: float | None, message: str | None) -> None:
            told[era].append(message)
            is_told[era].set()

        async with server.client(era) as client:
            arguments = {"workspace_id": "demo", "patch": add(f"progress-{era}.txt")}
            result = await client.call_tool("apply_patch", arguments, progress_callback=on_progress)
            assert result.structured_content is not None
            answers.append(result.structured_content)

    with anyio.fail_after(SECONDS_MAX):
        lease = await FlockWorkspaceLeases(locks).acquire(key, refuse=_refuse_nothing, on_wait=_say_nothing)
        async with anyio.create_task_group() as tasks:
            async with AsyncExitStack() as lost:
                for era in ERAS:
                    request = {"workspace_id": "demo", "patch": add(f"lost-{era}.txt"), "operation_key": f"lost-{era}"}
                    await lost.enter_async_context(_posted(server, era, "apply_patch", **request))
                    tasks.start_soon(patch, era)
                for era in ERAS:
                    await is_told[era].wait()
            for _ in range(2):
                await server.ask("workspace_info")  # the server has seen what came before it: the lost connections
            lease.release()
        for era in ERAS:
            assert (await server.ask("operation_status", operation_key=f"lost-{era}"))["code"] == "OPERATION_NOT_FOUND"
    assert [answer["status"] for answer in answers] == ["applied", "applied"]
    assert {words[0] for words in told.values()} == {"waiting for the workspace"}
    assert not list(root.glob("lost-*"))


async def _refuse_nothing() -> None:
    return None


async def _say_nothing(_seconds: float) -> None:
    return None


@pytest.mark.parametrize("era", ERAS)
async def test_a_dropped_connection_never_stops_a_patch_that_has_begun(
    server: HttpServer, root: Path, era: Era
) -> None:
    """The caller hangs up as soon as the operation is minted; who asks by the key is told that it was applied."""
    names = [f"dropped/{era}/{number}.txt" for number in range(150)]
    patch = "*** Begin Patch\n" + "".join(f"*** Add File: {name}\n+text\n" for name in names) + "*** End Patch\n"
    arguments = {"workspace_id": "demo", "patch": patch, "operation_key": f"dropped-{era}"}
    with anyio.fail_after(SECONDS_MAX):
        async with _posted(server, era, "apply_patch", **arguments):
            await _until_known(server, f"dropped-{era}")
        status = await _until_ended(server, f"dropped-{era}")
    assert status["status"] == "applied"
    assert "reason" not in status["events"][-1]
    assert sorted(os.listdir(root / "dropped" / era)) == sorted(Path(name).name for name in names)


class _Posted:
    """A request that was sent on a connection of its own, which is cut when the context is left."""

    def __init__(self, server: HttpServer, era: Era, tool: str, arguments: dict[str, Any]) -> None:
        is_modern = era == "2026-07-28"
        body = json.dumps(call_message(tool, MODERN_META if is_modern else None, **arguments)).encode()
        sent = {
            "Host": f"127.0.0.1:{server.port}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", "Content-Length": str(len(body)),
            **server.headers, **(modern_headers(tool) if is_modern else {}),
        }
        lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        self._request = "\r\n".join(lines).encode() + body
        self._port = server.port

    async def __aenter__(self) -> None:
        self._stream = await anyio.connect_tcp("127.0.0.1", self._port)
        await self._stream.send(self._request)

    async def __aexit__(self, *_error: object) -> None:
        await self._stream.aclose()


def _posted(server: HttpServer, era: Era, tool: str, **arguments: Any) -> _Posted:
    return _Posted(server, era, tool, arguments)


async def _until_known(server: HttpServer, operation_key: str) -> None:
    while "status" not in await server.ask("operation_status", operation_key=operation_key):
        await anyio.sleep(0.001)


async def _until_ended(server: HttpServer, operation_key: str) -> dict[str, Any]:
    while True:
        told = await server.ask("operation_status", operation_key=operation_key)
        if told["events"][-1]["name"] == "finished":
            return told
        await anyio.sleep(0.005)


@pytest.mark.parametrize("era", ERAS)
async def test_a_process_outlives_the_client_that_started_it_and_belongs_to_whoever_has_the_handle(
    server: HttpServer, era: Era
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with server.client(era) as client:
            started = await ask(client, "exec_command", workspace_id="demo", command=["cat"])
        process_id = started["process_id"]
        async with _posted(server, era, "read_process", process_id=process_id, wait_ms=30_000):
            pass  # somebody waits for output, and hangs up
        async with server.client(ERAS[1 - ERAS.index(era)]) as other:
            await ask(other, "write_stdin", process_id=process_id, data="hello\n")
            read = await ask(other, "read_process", process_id=process_id, wait_ms=30_000)
            assert read["chunk"] == "hello\n"
            busy = await refused(other, "apply_patch", workspace_id="demo", patch=add("x"))
            assert busy["code"] == "WORKSPACE_BUSY"
            await ask(other, "terminate_process", process_id=process_id)
            while (await ask(other, "process_status", process_id=process_id))["live"]:
                await anyio.sleep(0.01)


async def test_200_callers_at_once_are_all_answered_and_every_patch_is_applied_once(
    server: HttpServer, root: Path
) -> None:
    """Each on a connection of its own; as many patch as the workspace's queue takes, the others read."""
    patches, reads = limits.WAITERS_MAX, 200 - limits.WAITERS_MAX
    (root / "read.txt").write_text("read me\n")
    answers: list[dict[str, Any]] = []

    async def call(tool: str, **arguments: Any) -> None:
        answers.append(await server.ask(tool, workspace_id="demo", **arguments))

    with anyio.fail_after(2 * SECONDS_MAX):
        async with anyio.create_task_group() as tasks:
            for number in range(patches):
                request = {"patch": add(f"many/{number}.txt"), "operation_key": f"many-{number}"}
                tasks.start_soon(partial(call, "apply_patch", **request))
            for _number in range(reads):
                tasks.start_soon(partial(call, "read", path="read.txt"))
    assert sum(answer.get("status") == "applied" for answer in answers) == patches
    assert sum(answer.get("content") == "read me\n" for answer in answers) == reads
    assert len(os.listdir(root / "many")) == patches


async def test_a_large_patch_fits_into_one_request(server: HttpServer, root: Path) -> None:
    """More than the SDK's own limit of 4 MiB."""
    line = "+" + "x" * 999 + "\n"
    patch = f"*** Begin Patch\n*** Add File: large.txt\n{line * 6000}*** End Patch\n"
    with anyio.fail_after(SECONDS_MAX):
        assert (await server.ask("apply_patch", workspace_id="demo", patch=patch))["status"] == "applied"
    assert (root / "large.txt").stat().st_size == 6_000_000


async def test_a_body_over_the_limit_is_answered_413_with_the_limit_even_while_it_is_being_sent(
    server: HttpServer
) -> None:
    body = b"x" * (limits.MESSAGE_BYTES_MAX + 1)

    async def in_pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 65536):
            yield body[at:at + 65536]

    with anyio.fail_after(SECONDS_MAX):
        async with server.plain() as client:
            for content in (body, in_pieces()):
                response = await client.post(server.url, content=content)
                assert response.status_code == 413
                assert str(limits.MESSAGE_BYTES_MAX) in response.json()["message"]
        assert (await server.ask("workspace_info"))["server"] == "codespace"


async def test_who_is_refused_leaves_no_trace_and_the_token_is_told_nowhere(server: HttpServer, root: Path) -> None:
    """Checks 19, 82: nothing in the log, nothing on disk, nothing on stderr, whatever is wrong with the request."""
    message = call_message("apply_patch", workspace_id="demo", patch=add("trace.txt"), operation_key="trace")
    wrong: list[tuple[int, dict[str, str]]] = [
        (401, {"Authorization": ""}),
        (401, {"Authorization": f"Bearer {TOKEN}x"}),
        (421, {"Host": "evil.test"}),
        (421, {"Host": "127.0.0.1:80.evil.test"}),
        (403, {"Origin": "https://evil.test"}),
        (403, {"Origin": "null"}),
        (403, {"Origin": f"http://127.0.0.1:{server.port}@evil.test"}),
    ]
    with anyio.fail_after(SECONDS_MAX):
        head = await _head(server)
        for status, sent in wrong:
            for path in ("/mcp", "/", "/inbox", "/mcp/"):
                async with server.plain(**sent) as client:
                    response = await client.post(server.url.replace("/mcp", path), json=message)
                assert (response.status_code, TOKEN in response.text) == (status, False), sent
                assert TOKEN not in str(response.headers)
        assert await _head(server) == head
        assert (await server.ask("operation_status", operation_key="trace"))["code"] == "OPERATION_NOT_FOUND"
    assert not (root / "trace.txt").exists()
    assert TOKEN not in server.log
    log_files = [each for each in (server.scratch / "data").rglob("*") if each.is_file()]
    assert log_files
    assert not [each for each in log_files if TOKEN.encode() in each.read_bytes()]


async def _head(server: HttpServer) -> int:
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "codespace://timeline"}}
    async with server.plain() as client:
        response = await client.post(server.url, json=message)
    head = json.loads(messages(response)[-1]["result"]["contents"][0]["text"])["head"]
    assert isinstance(head, int)
    return head


async def test_a_refusal_by_the_tools_is_recorded_as_on_stdio(server: HttpServer) -> None:
    with anyio.fail_after(SECONDS_MAX):
        head = await _head(server)
        assert (await server.ask("read", workspace_id="nowhere", path="x"))["code"] == "WORKSPACE_NOT_FOUND"
        while await _head(server) == head:
            await anyio.sleep(0.01)


async def test_no_command_sees_the_token(server: HttpServer) -> None:
    with anyio.fail_after(SECONDS_MAX):
        started = await server.ask("exec_command", workspace_id="demo", command=["env"])
        told = ""
        while True:
            read = await server.ask(
                "read_process", process_id=started["process_id"], cursor=len(told.encode()), wait_ms=30_000
            )
            told += read.get("chunk", "")
            if read["eof"]:
                break
    assert "PATH=" in told
    assert TOKEN not in told
    assert "CODESPACE_HTTP_TOKEN" not in told
