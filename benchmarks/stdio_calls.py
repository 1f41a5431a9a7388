"""What a call over stdio costs: an empty tool on the SDK's transport and on ours, then our tools, with one raw client.

    .venv/bin/python benchmarks/stdio_calls.py [--calls 500] [--starts 3]

The floors are children of this very file with `--serve-floor`: the same SDK, one tool that does nothing. Compare within
one run only. Times in milliseconds; a patch includes its durable commits, whose price is measured in the same run.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Client:
    """Speaks to a child, one request at a time."""

    def __init__(self, command: list[str], scratch: Path) -> None:
        started = time.perf_counter()
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        environment = {**os.environ, "PYTHONPATH": path, "HOME": str(scratch)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.last_id = 0
        self.ask("initialize", INITIALIZE)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.start_ms = (time.perf_counter() - started) * 1000

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.last_id += 1
        self.write({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.last_id, answer
        return answer

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        return result

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024

    def processor_ms(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1000

    def end(self) -> float:
        assert self.process.stdin is not None
        started = time.perf_counter()
        self.process.stdin.close()
        self.process.wait(10)
        return (time.perf_counter() - started) * 1000


def timed(client: Client, tool: str, calls: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Return p50 and p99 of `calls` after a tenth of them as a warm-up, and the server's processor time a call."""
    times = []
    used_ms = client.processor_ms()
    for number, arguments in enumerate(calls):
        started = time.perf_counter()
        client.call(tool, arguments)
        if number >= len(calls) // 10:
            times.append((time.perf_counter() - started) * 1000)
    cuts = quantiles(times, n=100)
    return cuts[49], cuts[98], (client.processor_ms() - used_ms) / len(calls)


def commit_ms(scratch: Path) -> float:
    """Return the median of a durable SQLite commit of one small row on this disk."""
    connection = sqlite3.connect(scratch / "commit.db", isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    connection.execute("create table t(x)")
    times = []
    for _ in range(100):
        started = time.perf_counter()
        connection.execute("insert into t values (randomblob(500))")
        times.append((time.perf_counter() - started) * 1000)
    connection.close()
    return quantiles(times, n=100)[49]


def patch(number: int) -> str:
    old, new = f"line {number}", f"line {number + 1}"
    return f"*** Begin Patch\n*** Update File: edit.txt\n@@\n-{old}\n+{new}\n*** End Patch\n"


def measure(calls: int, starts: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        workspace = scratch / "ws"
        workspace.mkdir()
        (workspace / "read.txt").write_text(("x" * 63 + "\n") * 64)
        (workspace / "edit.txt").write_text("".join(f"other {n}\n" for n in range(100)) + "line 0\n" + "end\n" * 99)
        ours = [
            str(Path(sys.executable).with_name("codespace-es")), "serve",
            "--workspace", f"demo={workspace}:workspace-write", "--data-dir", str(scratch / "data"),
        ]
        floors = {kind: [sys.executable, str(HERE), "--serve-floor", kind] for kind in ("stock", "pipe")}
        for label, command in (*floors.items(), ("product", ours)):
            times = []
            for _ in range(starts):
                client = Client(command, scratch)
                times.append(client.start_ms)
                ended = client.end()
            print(f"start {label:34} min {min(times):8.0f}   max {max(times):8.0f}   last end {ended:6.0f}")
        for kind, command in floors.items():
            client = Client(command, scratch)
            report(f"no-op tool, {kind} transport", timed(client, "noop", [{}] * calls))
            print(f"resident memory of it, MB {client.resident_mb():23.1f}")
            client.end()
        client = Client(ours, scratch)
        report("workspace_info", timed(client, "workspace_info", [{}] * calls))
        report("read 4 KiB", timed(client, "read", [{"workspace_id": "demo", "path": "read.txt"}] * calls))
        patches = [{"workspace_id": "demo", "patch": patch(number)} for number in range(calls // 2)]
        before_mb = client.resident_mb()
        report("apply_patch, one line of 200", timed(client, "apply_patch", patches))
        print(f"one durable commit here {commit_ms(scratch):25.2f}")
        print(f"resident memory, MB {before_mb:29.1f} -> {client.resident_mb():.1f}")
        client.end()


def report(label: str, found: tuple[float, float, float]) -> None:
    p50, p99, processor = found
    print(f"{label:40} p50 {p50:8.3f}   p99 {p99:8.3f}   processor {processor:8.3f}")


def serve_floor(kind: str) -> None:
    """Serve one empty tool over the SDK's own stdio transport (`stock`) or ours (`pipe`)."""
    import anyio
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="noop", input_schema={"type": "object"})])

    async def call_tool(_context: Any, _params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="done")])

    async def main() -> None:
        server: Server[Any] = Server("floor", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        server.middleware.clear()
        options = server.create_initialization_options()
        if kind == "stock":
            async with stdio_server() as (reading, writing):
                await server.run(reading, writing, options)
        else:
            from adapters.mcp_server.stdio_pipe import open_stdio

            async with open_stdio() as wire:
                await server.run(wire.input, wire.output, options)

    anyio.run(main)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--serve-floor", choices=["stock", "pipe"])
    chosen = parser.parse_args()
    if chosen.serve_floor:
        serve_floor(chosen.serve_floor)
    else:
        measure(chosen.calls, chosen.starts)
