"""The parent of warm servers: imports what `serve` needs once, then forks a child for each server that a test starts.

Importing the MCP library takes longer than all else a server does at its start. A child of this process has the imports
behind it, and for the rest is what a new process would be: its arguments, environment, directory and descriptors are
those it was asked with, and it runs the same entry point from the beginning. At its end it waits for its threads, runs
what is registered for the end and collects its own garbage, but it leaves the parent's objects, since to destroy them
is to copy them first.

A request is one packet on the inherited socket: JSON, and the descriptors for stdin, stdout, stderr and the child's
report. The report says `pid`, with a pidfd, and once the child is gone and reaped its wait status. When the socket
closes, the children that are left are killed.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from typing import Any

PRELOADED = (
    "adapters.cli.serve", "adapters.bootstrap", "adapters.mcp_server.serve", "adapters.mcp_server.server",
    "adapters.http.listening", "adapters.http.serving", "anyio._backends._asyncio",
    "uvicorn.protocols.http.h11_impl", "uvicorn.lifespan.off", "mcp.server.streamable_http",
    "adapters.cli.main", "adapters.cli.log", "adapters.cli.show", "adapters.cli.doctor", "adapters.cli.inbox",
    "adapters.cli.approvals", "adapters.cli.export", "adapters.cli.hosts", "asyncpg",
)
REQUEST_BYTES_MAX = 128 * 1024


@dataclass(frozen=True, slots=True)
class Child:
    """A server that runs, and where its end is reported."""

    pid: int
    report: socket.socket


def serve(requests: socket.socket) -> list[str] | None:
    """Fork as asked until the socket closes, then return None; in a child, return its command line."""
    children: dict[int, Child] = {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd != requests.fileno():
                poll.unregister(fd)
                _report_end(fd, children.pop(fd))
                continue
            packet, fds, _flags, _address = socket.recv_fds(requests, REQUEST_BYTES_MAX, 4)
            if not packet:
                for child in children.values():
                    os.kill(child.pid, signal.SIGKILL)
                return None
            request = json.loads(packet)
            pid = os.fork()
            if pid == 0:
                for child in children.values():
                    child.report.detach()
                requests.detach()
                return _become(request, fds)
            for standard in fds[:3]:
                os.close(standard)
            pidfd = os.pidfd_open(pid)
            children[pidfd] = Child(pid, socket.socket(fileno=fds[3]))
            poll.register(pidfd, select.POLLIN)
            socket.send_fds(children[pidfd].report, [json.dumps(pid).encode()], [pidfd])


def _report_end(pidfd: int, child: Child) -> None:
    _, status = os.waitpid(child.pid, 0)
    os.close(pidfd)
    with child.report:
        try:
            child.report.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())
        except OSError:
            return  # the test that started it has gone


def _become(request: dict[str, Any], fds: list[int]) -> list[str]:
    """Give this child what it was asked with, close what is its parent's, and return its command line."""
    if request["start_new_session"]:
        os.setsid()
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin.errors)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout.errors)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.stderr.errors)  # type: ignore[misc]
    return request["command"]


def _stream(fd: int, mode: str, errors: str | None) -> TextIOWrapper:
    """Return a new stream on a standard descriptor: the one of the parent remembers what kind of file it was for."""
    stream = os.fdopen(fd, mode, 1 if fd == 2 else -1, encoding=sys.stdin.encoding, errors=errors, closefd=False)
    assert isinstance(stream, TextIOWrapper)
    return stream


def run(command: list[str]) -> None:
    """Run a Python program: `-m MODULE …`, `-c CODE …` or `FILE.py …` of an interpreter, or a script of its own."""
    if command[1:2] == ["-c"]:
        sys.argv = ["-c", *command[3:]]
        exec(compile(command[2], "<string>", "exec"), {"__name__": "__main__"})
    elif command[1:2] == ["-m"]:
        sys.argv = command[2:]
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command[1:] if command[0] == sys.executable else command
        runpy.run_path(sys.argv[0], run_name="__main__")


def main() -> None:
    """Serve the socket whose descriptor is the only argument."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    for module in PRELOADED:
        import_module(module)
    _make_schemas()
    gc.collect()
    gc.freeze()
    command = serve(requests)
    if command is None:
        requests.close()
    else:
        _end(run_to_exit(command))


def _make_schemas() -> None:
    from adapters.mcp_server.server import describe
    from adapters.mcp_server.tool_catalogue import TOOLS

    for tool in TOOLS.values():
        describe(tool)


def run_to_exit(command: list[str]) -> int:
    """Run a program to its end and return its exit code; what it doesn't catch is for the interpreter."""
    try:
        run(command)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        raise
    return 0


def _end(code: int) -> None:
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does first
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            if not stream.closed:
                stream.flush()
        except OSError:
            code = 120  # as the interpreter says it
    os._exit(code)


if __name__ == "__main__":
    main()
