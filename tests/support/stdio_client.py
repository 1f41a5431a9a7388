"""Clients of a server that is a child on pipes: the SDK's own, and a raw one that can say anything."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp.client.stdio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent

from support.pipes import OutputPipe
from support.warm_servers import PRODUCT, PYTHON_VARIABLES, open_server

SECONDS_MAX = 60
"""Not a measure of speed: when a wait is given up for lost, on a machine that does other things too."""
LINE_BYTES_MAX = 64 * 1024 * 1024

Era = Literal["2025-11-25", "2026-07-28"]
ERAS: tuple[Era, ...] = ("2025-11-25", "2026-07-28")

_INITIALIZE = {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"},
}


def product(scratch: Path, *workspaces: str) -> list[str]:
    """Return the command line that serves `workspaces` (`NAME=PATH[:PROFILE]`), with its log under `scratch`."""
    command = [PRODUCT, "serve", "--data-dir", str(scratch / "data")]
    for workspace in workspaces:
        command += ["--workspace", workspace]
    return command


def scripted_door() -> list[str]:
    """Return the command line of the server whose door is scripted."""
    return [sys.executable, "-m", "support.scripted_door"]


def environment(scratch: Path) -> dict[str, str]:
    """Return what a child needs, and nothing of this user's own configuration."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        **PYTHON_VARIABLES,
    }


async def _start_for_sdk(
    command: str, args: list[str], env: dict[str, str] | None = None, errlog: Any = sys.stderr,
    cwd: Path | str | None = None,
) -> Process:
    """Start a server as the SDK's client does, warm if it can be."""
    told = PYTHON_VARIABLES | (env or {})  # what the SDK lets through by default has none of Python's
    return await open_server([command, *args], env=told, cwd=cwd, stderr=errlog, start_new_session=True)


def have_the_sdk_start_warm_servers() -> None:
    """Give the SDK's client our way to start a process, for every test alike; all else stays the SDK's."""
    mcp.client.stdio._create_platform_compatible_process = _start_for_sdk


have_the_sdk_start_warm_servers()


@asynccontextmanager
async def connected(
    command: list[str], scratch: Path, era: Era = "2025-11-25", *, person: ElicitationFnT | None = None,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Yield the SDK's client, speaking one era, to a child of its own; `person` answers its forms."""
    told = {**environment(scratch), **(variables or {})}
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=told)
    mode = "legacy" if era == "2025-11-25" else "auto"
    with open(scratch / "server.log", "a", encoding="utf-8") as log:
        transport = stdio_client(parameters, errlog=log)
        async with Client(transport, mode=mode, elicitation_callback=person) as client:
            yield client


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the result of a call that succeeds, which is told twice: as an object and as text."""
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    assert not result.is_error, result.structured_content
    _told_twice(result)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the error body of a call that is refused."""
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    assert result.is_error, result.structured_content
    _told_twice(result)
    assert set(result.structured_content) >= {"code", "message", "retry", "remedy"}
    return result.structured_content


def _told_twice(result: CallToolResult) -> None:
    first = result.content[0]
    assert isinstance(first, TextContent)
    assert json.loads(first.text) == result.structured_content


class RawClient:
    """Speaks lines, good and bad, to a child."""

    def __init__(self, process: Process, output: OutputPipe, scratch: Path) -> None:
        assert process.stdin is not None
        self.process = process
        self._input = process.stdin
        self._pipe = output
        self.output = BufferedByteReceiveStream(output)
        self._last_id = 1000
        self._scratch = scratch
        self._log_start = 0

    async def send_bytes(self, content: bytes) -> None:
        await self._input.send(content)

    async def send(self, message: Any) -> None:
        await self.send_bytes(json.dumps(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any]:
        message = json.loads(await self.output.receive_until(b"\n", LINE_BYTES_MAX))
        assert isinstance(message, dict)
        return message

    async def initialize(self) -> dict[str, Any]:
        answer = await self.ask("initialize", _INITIALIZE)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer to a request, which has to be the next message."""
        self._last_id += 1
        await self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}})
        answer = await self.receive()
        assert answer["id"] == self._last_id, answer
        return answer

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured content of a tool call."""
        answer = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        return answer["result"]["structuredContent"]

    async def start_call(self, identifier: int | str, tool: str, meta: Any = None, **arguments: Any) -> None:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta is not None:
            params["_meta"] = meta
        await self.send({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params})

    async def end_input(self) -> None:
        await self._input.aclose()

    async def close_output(self) -> None:
        await self._pipe.aclose()

    def forget_log(self) -> None:
        """Make `log` begin here."""
        self._log_start = len(read_log(self._scratch))

    @property
    def log(self) -> str:
        """What the child has said on stderr."""
        return read_log(self._scratch)[self._log_start:]

    async def log_has(self, words: str) -> None:
        """Return once the child has said `words`."""
        while words not in self.log:
            await anyio.sleep(0.01)

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        return await self.process.wait()


@asynccontextmanager
async def raw_client(command: list[str], scratch: Path, *, initializes: bool = True) -> AsyncIterator[RawClient]:
    """Yield a raw client of a child of its own, whose log is `server.log` in `scratch`."""
    reading, writing = os.pipe()
    output = OutputPipe(reading)
    with open(scratch / "server.log", "ab") as log:
        try:
            process = await open_server(command, env=environment(scratch), cwd=scratch, stdout=writing, stderr=log)
        finally:
            os.close(writing)
        try:
            client = RawClient(process, output, scratch)
            if initializes:
                with anyio.fail_after(SECONDS_MAX):
                    await client.initialize()
            yield client
        finally:
            with anyio.CancelScope(shield=True):
                await _bury(process)
                await output.aclose()


async def _bury(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
    await process.aclose()


def read_log(scratch: Path) -> str:
    """Return what the child said on stderr."""
    return (scratch / "server.log").read_text(encoding="utf-8")
