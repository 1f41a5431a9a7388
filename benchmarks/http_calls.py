"""What a call over HTTP costs in either era of the protocol, and whether many callers leave anything behind.

    .venv/bin/python benchmarks/http_calls.py [--calls 400] [--callers 10000]

Each of the many callers has a connection of its own, reads one file and goes away. Compare within one run only: times
in milliseconds, memory in MB. The refusal is the floor: a whole request that the guard answers.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
MODERN = {**HEADERS, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read"}


def read_message(*, is_modern: bool) -> bytes:
    arguments = {"workspace_id": "demo", "path": "file.txt"}
    params: dict[str, Any] = {"name": "read", "arguments": arguments, **({"_meta": META} if is_modern else {})}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def call(connection: HTTPConnection, body: bytes, headers: dict[str, str], status: int = 200) -> float:
    started = time.perf_counter()
    connection.request("POST", "/mcp", body, headers)
    response = connection.getresponse()
    answer = response.read()
    assert response.status == status, answer
    assert status != 200 or b'"isError":true' not in answer, answer
    return (time.perf_counter() - started) * 1000


def percentiles(times: list[float]) -> str:
    cuts = quantiles(times, n=100)
    return f"p50 {cuts[49]:7.2f}   p99 {cuts[98]:7.2f}"


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


def start(scratch: Path) -> tuple[subprocess.Popen[str], int]:
    (scratch / "ws").mkdir()
    (scratch / "ws" / "file.txt").write_text("x" * 4095 + "\n")
    command = [
        sys.executable, "-m", "adapters.cli", "serve", "--http", "127.0.0.1:0", "--data-dir", str(scratch / "data"),
        "--workspace", f"demo={scratch / 'ws'}",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "HOME": str(scratch)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r":(\d+)/mcp", line)
        if found:
            return process, int(found[1])
    raise SystemExit("the server didn't start")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--callers", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        process, port = start(Path(directory))
        try:
            measure(process.pid, port, options.calls, options.callers)
        finally:
            process.terminate()
            process.wait()


def measure(pid: int, port: int, calls: int, callers: int) -> None:
    kept = HTTPConnection("127.0.0.1", port)
    for name, body, headers, status in (
        ("refused by the guard", b"{}", {**HEADERS, "Origin": "null"}, 403),
        ("read 4 KiB, 2025-11-25", read_message(is_modern=False), HEADERS, 200),
        ("read 4 KiB, 2026-07-28", read_message(is_modern=True), MODERN, 200),
    ):
        print(f"{name:28}  {percentiles([call(kept, body, headers, status) for _ in range(calls)])}")
    body = read_message(is_modern=False)
    sample = min(500, callers // 3)
    times = []
    for number in range(callers):
        connection = HTTPConnection("127.0.0.1", port)
        times.append(call(connection, body, HEADERS))
        connection.close()
        if number + 1 == sample:
            print(f"the first {sample:6} callers      {percentiles(times)}   memory {resident_mb(pid):6.1f}")
    print(f"the last of {callers:6} callers    {percentiles(times[-sample:])}   memory {resident_mb(pid):6.1f}")


if __name__ == "__main__":
    main()
