"""A raw MCP client over pipes: as little between a benchmark and a server as can be, any number of requests at once."""

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

ANSWER_SECONDS_MAX = 60


class FailedError(Exception):
    """The server ended, or answered nothing in time."""


class Measured:
    """A server that was started, and what it takes."""

    process: subprocess.Popen[bytes]

    def memory_mib(self) -> float:
        """Return what the whole process tree takes, shared pages counted once."""
        total = 0
        for process in self.tree():
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
        return total / 2**20

    def anonymous_mib(self) -> float:
        """Return what the tree has allocated: without files, of which more is its own the fewer others use them."""
        return anonymous_mib(self.process.pid)

    def descriptors(self) -> int:
        """Return how many files, pipes and sockets the whole process tree has open."""
        total = 0
        for process in self.tree():
            with contextlib.suppress(psutil.Error):
                total += process.num_fds()
        return total

    def processor_ms(self) -> float:
        """Return the processor time that the server's own process has taken."""
        times = psutil.Process(self.process.pid).cpu_times()
        return (times.user + times.system) * 1000

    def tree(self) -> Iterator[psutil.Process]:
        yield from tree_of(self.process.pid)


class Client(Measured):
    """Speaks to one server over pipes, any number of requests at once."""

    def __init__(self, command: list[str], root: Path, environment: dict[str, str] | None = None) -> None:
        """Start `command` in the directory `root`, whose parent is its home, and shake hands."""
        started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=variables_of(root, environment), cwd=root,
        )
        self._pending = b""
        self._last_id = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "bench", "version": "1"}})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.start_ms = (time.perf_counter() - started) * 1000

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        wanted = self.send(method, params)
        while True:
            message = self.receive()
            if message["id"] == wanted:
                return message

    def send(self, method: str, params: dict[str, Any]) -> int:
        self._last_id += 1
        self._write({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def receive(self) -> dict[str, Any]:
        """Return the next answer; requests of the server's own are refused, notifications passed over."""
        assert self.process.stdout is not None
        while True:
            line, separator, rest = self._pending.partition(b"\n")
            if not separator:
                if not select.select([self.process.stdout], [], [], ANSWER_SECONDS_MAX)[0]:
                    raise FailedError("no answer")
                content = os.read(self.process.stdout.fileno(), 1 << 20)
                if not content:
                    raise FailedError("it ended")
                self._pending += content
                continue
            self._pending = rest
            with contextlib.suppress(ValueError):  # some print what is no message
                message = json.loads(line)
                if "method" not in message and "id" in message:
                    return message
                if "id" in message:
                    self._write({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        return told(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def tree_of(pid: int) -> Iterator[psutil.Process]:
    yield (own := psutil.Process(pid))
    yield from own.children(recursive=True)


def anonymous_mib(pid: int) -> float:
    """Return what a process and all its children have allocated."""
    total = 0
    for process in tree_of(pid):
        with contextlib.suppress(psutil.Error, OSError):
            told = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            total += int(told.split("Pss_Anon:")[1].split()[0])
    return total / 2**10


def variables_of(root: Path, more: dict[str, str] | None) -> dict[str, str]:
    """Return the environment of a server that works in `root`."""
    own = {"PATH": os.environ["PATH"], "HOME": str(root.parent), "LANG": "C.UTF-8"}
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return {**own, **(more or {}), **kept}


def told(message: dict[str, Any]) -> tuple[bool, str]:
    """Return whether a call succeeded, and all text of its answer."""
    result = message.get("result", {})
    return "error" not in message and not result.get("isError"), "\n".join(
        str(item.get("text", "")) for item in result.get("content", []))
