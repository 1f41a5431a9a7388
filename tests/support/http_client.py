"""Real servers over HTTP, and what talks to them: the SDK's client in both eras, plain requests, and raw bytes."""

import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.abc import Process
from mcp import Client
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from support.stdio_client import Era, environment, product, read_log
from support.warm_servers import open_server

TOKEN = "a-token-that-nobody-may-see"
OPERATOR_TOKEN = "an-operators-token-that-nobody-may-see"

_LISTENING = re.compile(r"listening on (http://\S+)")

JSON_RPC_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A child that serves over HTTP."""

    process: Process
    url: str
    scratch: Path
    token: str | None
    operator_token: str | None = None

    @property
    def port(self) -> int:
        port = httpx2.URL(self.url).port
        assert port is not None
        return port

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    @property
    def root(self) -> str:
        """Where every path begins."""
        return self.url.removesuffix("/mcp")

    def operator(self) -> httpx2.AsyncClient:
        """Return a client that shows the operator's token."""
        headers = {"Authorization": f"Bearer {self.operator_token}"}
        return httpx2.AsyncClient(timeout=None, verify=False, headers=headers, base_url=self.root)

    @property
    def log(self) -> str:
        """What the child has said on stderr."""
        return read_log(self.scratch)

    async def log_has(self, words: str) -> None:
        while words not in self.log:
            await anyio.sleep(0.01)

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    @asynccontextmanager
    async def client(self, era: Era = "2025-11-25", *, person: ElicitationFnT | None = None) -> AsyncIterator[Client]:
        """Yield the SDK's client, on connections of its own; `person` answers its forms."""
        mode = "legacy" if era == "2025-11-25" else "auto"
        async with (
            self.plain() as connections,
            Client(
                streamable_http_client(self.url, http_client=connections), mode=mode, elicitation_callback=person
            ) as client,
        ):
            yield client

    def plain(self, **headers: str) -> httpx2.AsyncClient:
        """Return a client for plain requests; a header that is given empty isn't sent."""
        sent = {**JSON_RPC_HEADERS, **self.headers, **headers}
        kept = {name: value for name, value in sent.items() if value}
        return httpx2.AsyncClient(timeout=None, verify=False, headers=kept)

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured content of one call, made without any handshake."""
        async with self.plain() as client:
            return structured(await client.post(self.url, json=call_message(tool, **arguments)))


def call_message(tool: str, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if meta is not None:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern_headers(tool: str) -> dict[str, str]:
    return {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}


def messages(response: httpx2.Response) -> list[dict[str, Any]]:
    """Return the JSON-RPC messages of an answer, whether it is one object or a stream."""
    if "text/event-stream" not in response.headers["content-type"]:
        return [response.json()]
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def structured(response: httpx2.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    content = messages(response)[-1]["result"]["structuredContent"]
    assert isinstance(content, dict)
    return content


def http_product(scratch: Path, *workspaces: str, address: str = "127.0.0.1:0") -> list[str]:
    """Return the command line that serves `workspaces` over HTTP on any free port."""
    return [*product(scratch, *workspaces), "--http", address]


@asynccontextmanager
async def serving(
    command: list[str], scratch: Path, *, token: str | None = None, operator_token: str | None = None
) -> AsyncIterator[HttpServer]:
    """Yield a server once it listens; on leaving it is killed, if it hasn't ended."""
    variables = environment(scratch)
    if token is not None:
        variables["CODESPACE_HTTP_TOKEN"] = token
    if operator_token is not None:
        variables["CODESPACE_OPERATOR_TOKEN"] = operator_token
    before = len(read_log(scratch)) if (scratch / "server.log").exists() else 0
    with open(scratch / "server.log", "ab") as log:
        process = await open_server(
            command, env=variables, cwd=scratch, stdout=log.fileno(), stderr=log, has_input=False
        )
    try:
        url = await _url(process, scratch, before)
        yield HttpServer(process, url, scratch, token, operator_token)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _url(process: Process, scratch: Path, before: int) -> str:
    while process.returncode is None:
        found = _LISTENING.search(read_log(scratch)[before:])
        if found:
            return found[1]
        await anyio.sleep(0.01)
    raise AssertionError(read_log(scratch)[before:])
