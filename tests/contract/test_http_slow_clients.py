"""Clients that send slowly, read nothing, or go away in the middle: they cost the others nothing.

Raw sockets, since a proper client does none of this.
"""

import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from support.http_client import (
    JSON_RPC_HEADERS,
    OPERATOR_TOKEN,
    TOKEN,
    HttpServer,
    call_message,
    http_product,
    serving,
)
from support.stdio_client import SECONDS_MAX

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
async def server(tmp_path: Path, root: Path) -> AsyncIterator[HttpServer]:
    with anyio.fail_after(2 * SECONDS_MAX):
        async with serving(
            http_product(tmp_path, f"demo={root}"), tmp_path, token=TOKEN, operator_token=OPERATOR_TOKEN
        ) as opened:
            yield opened


@asynccontextmanager
async def raw(server: HttpServer, *, received_bytes: int | None = None) -> AsyncIterator[SocketStream]:
    """Yield a connection; `received_bytes` bounds what the system takes in for a client that reads nothing."""
    made = socket.socket()
    if received_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received_bytes)
    made.connect(("127.0.0.1", server.port))
    made.setblocking(False)
    async with await SocketStream.from_socket(made) as stream:
        yield stream


def request(server: HttpServer, body: bytes, **headers: str) -> bytes:
    sent = {
        "Host": f"127.0.0.1:{server.port}", **JSON_RPC_HEADERS, **server.headers, "Content-Length": str(len(body)),
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


def call(tool: str, **arguments: Any) -> bytes:
    return json.dumps(call_message(tool, **arguments)).encode()


async def answer_of(stream: SocketStream) -> bytes:
    """Return an answer up to the end of its chunks."""
    told = b""
    while not told.endswith(b"0\r\n\r\n") and b'"result"' not in told.partition(b"\r\n\r\n")[2]:
        told += await stream.receive()
    return told


async def test_who_sends_byte_by_byte_is_answered_and_keeps_nobody_waiting(server: HttpServer, root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    whole = request(server, call("read", workspace_id="demo", path="a.txt"))
    async with AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(raw(server)) for _ in range(50)]
        for at in range(len(whole) - 1):  # every connection is in the middle of its request, all the time
            await slow[at % 50].send(whole[:1] if at < 50 else b"")
            if at % 100 == 0:
                assert (await server.ask("read", workspace_id="demo", path="a.txt"))["content"] == "one\n"
        for number, stream in enumerate(slow[:5]):
            for at in range(1, len(whole)):
                await stream.send(whole[at:at + 1])
            told = await answer_of(stream)
            assert told.startswith(b"HTTP/1.1 200"), (number, told)
            assert b"one" in told


async def test_who_reads_nothing_of_large_answers_keeps_nobody_waiting_and_not_the_end(
    server: HttpServer, root: Path
) -> None:
    (root / "large.txt").write_text("x" * 999_999 + "\n")
    whole = request(server, call("read", workspace_id="demo", path="large.txt", limit=MIB))
    async with AsyncExitStack() as stack:
        for _ in range(20):
            stream = await stack.enter_async_context(raw(server, received_bytes=4096))
            await stream.send(whole)
        for number in range(20):
            patch = f"*** Begin Patch\n*** Add File: {number}.txt\n+x\n*** End Patch\n"
            assert (await server.ask("apply_patch", workspace_id="demo", patch=patch))["status"] == "applied"
        server.kill(signal.SIGTERM)
        assert await server.process.wait() == 0


async def test_who_goes_away_in_the_middle_of_sending_has_asked_for_nothing(server: HttpServer, root: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: gone.txt\n+x\n*** End Patch\n"
    whole = request(server, call("apply_patch", workspace_id="demo", patch=patch, operation_key="gone"))
    for at in (1, len(whole) // 2, len(whole) - 1):
        async with raw(server) as stream:
            await stream.send(whole[:at])
    assert (await server.ask("operation_status", operation_key="gone"))["code"] == "OPERATION_NOT_FOUND"
    assert not (root / "gone.txt").exists()


async def test_who_goes_away_before_the_answer_finds_the_process_again(server: HttpServer) -> None:
    command = {"workspace_id": "demo", "command": ["sh", "-c", "echo here; sleep 600"], "operation_key": "kept"}
    async with raw(server) as stream:
        await stream.send(request(server, call("exec_command", **command)))
    process = (await server.ask("exec_command", **command))["process_id"]
    read = await server.ask("read_process", process_id=process, wait_ms=20_000)
    assert read["chunk"] == "here\n"
    async with server.operator() as operator:
        assert [each["process_id"] for each in (await operator.get("/operator/processes")).json()] == [process]
