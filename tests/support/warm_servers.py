"""Servers, and runs of the command line, forked from a parent that has imported the MCP library already.

They are processes of their own, started at once. `CODESPACE_COLD_SERVERS=1` starts each of them from nothing instead,
as tests that are about starting always do.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import Process

from support.pipes import InputPipe, OutputPipe

IS_COLD = bool(os.environ.get("CODESPACE_COLD_SERVERS"))
PRODUCT = str(Path(sys.executable).with_name("codespace-es"))

ROOT = Path(__file__).parents[2]
PYTHON_VARIABLES = {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]),
    "PYTHONWARNINGS": "error::ResourceWarning",
}
"""What every child's interpreter is told, so that one warm parent serves for all."""


def own_environment() -> dict[str, str]:
    """Return this process' environment without settings of the product, and with what children's interpreters get."""
    others = ("CODESPACE_", "PYTHON", "LC_", "LANG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return kept | PYTHON_VARIABLES


def from_nothing(command: list[str]) -> list[str]:
    """Return `command` in a form that is never forked from a warm parent: for tests that speak for the real start."""
    return ["/usr/bin/env", *command]


class WarmProcess(Process):
    """A child of the warm parent, seen as if it were ours."""

    def __init__(
        self, pid: int, pidfd: int, report: socket.socket, stdin: InputPipe | None, stdout: OutputPipe | None
    ) -> None:
        self._pid = pid
        self._pidfd = pidfd
        self._report = report
        self._stdin = stdin
        self._stdout = stdout
        self._returncode: int | None = None
        self._turn = anyio.Lock()

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def returncode(self) -> int | None:
        if self._returncode is None:
            try:
                packet = self._report.recv(100, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            self._returncode = json.loads(packet)
            os.close(self._pidfd)
            self._report.close()
        return self._returncode

    @property
    def stdin(self) -> InputPipe | None:
        return self._stdin

    @property
    def stdout(self) -> OutputPipe | None:
        return self._stdout

    @property
    def stderr(self) -> None:
        return None

    async def wait(self) -> int:
        async with self._turn:
            while (code := self.returncode) is None:
                await anyio.wait_readable(self._report)
        return code

    def send_signal(self, signal: signal.Signals) -> None:
        if self.returncode is None:
            _signal(self._pidfd, signal)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True):
            for stream in (self._stdin, self._stdout):
                if stream is not None:
                    await stream.aclose()
            await self.wait()


def _signal(pidfd: int, number: int) -> None:
    """Signal a process that may be gone by now, which is no error."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return


_RUN_PARENT = (
    f"import runpy, sys; sys.path.append({str(Path(__file__).parents[1])!r}); "
    "runpy.run_module('support.warm_parent', run_name='__main__', alter_sys=True)"
)
"""Finds the parent's module also where the child's own PYTHONPATH doesn't lead to it."""


class _Parent:
    """A warm parent, for children whose interpreter is started with the same variables."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUN_PARENT, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], **variables},
                cwd="/", start_new_session=True,
            )

    def end(self) -> None:
        self._requests.close()
        self._process.wait()

    def fork(self, request: dict[str, Any], stdin: int, stdout: int, stderr: int) -> tuple[int, int, socket.socket]:
        """Return the pid, a pidfd and the report of a new child."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._requests, [json.dumps(request).encode()], [stdin, stdout, stderr, theirs.fileno()])
        packet, fds, _, _ = socket.recv_fds(ours, 100, 1)
        if not packet:
            ours.close()
            raise RuntimeError(f"The warm parent has ended with {self._process.wait()}.")
        return json.loads(packet), fds[0], ours


_PARENTS: dict[tuple[tuple[str, str], ...], _Parent] = {}
_PARENTS_LOCK = Lock()


@atexit.register
def _end_parents() -> None:
    for parent in _PARENTS.values():
        parent.end()


def _parent_for(environment: Mapping[str, str]) -> _Parent:
    """Return the parent whose interpreter was started as one with this environment would be."""
    seen = {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LC_")) or name == "LANG"}
    with _PARENTS_LOCK:
        key = tuple(sorted(seen.items()))
        if key not in _PARENTS:
            _PARENTS[key] = _Parent(seen)
        return _PARENTS[key]


def can_be_warm(command: list[str]) -> bool:
    """Return whether `command` is a program that only needs Python with its imports done."""
    is_python = command[0] == sys.executable and (command[1] in ("-m", "-c") or command[1].endswith(".py"))
    return (command[0] == PRODUCT or is_python) and not IS_COLD


async def open_server(
    command: list[str], *, env: Mapping[str, str], cwd: Path | str | None, stderr: Any, stdout: int | None = None,
    start_new_session: bool = False, has_input: bool = True, stdin: int | None = None,
) -> Process:
    """Start a server whose stdin is `stdin`, a pipe, or nothing; its stdout is `stdout`, or a pipe too."""
    if not can_be_warm(command):
        return await anyio.open_process(
            command, env=env, cwd=cwd, stderr=stderr, stdout=subprocess.PIPE if stdout is None else stdout,
            stdin=subprocess.PIPE if has_input and stdin is None else stdin, start_new_session=start_new_session,
        )
    request = {"command": command, "env": dict(env), "cwd": str(cwd or os.getcwd()),
               "start_new_session": start_new_session}
    if stdin is not None:
        reading, writing = os.dup(stdin), -1
    else:
        reading, writing = os.pipe() if has_input else (os.open(os.devnull, os.O_RDONLY), -1)
    output, theirs = os.pipe() if stdout is None else (-1, os.dup(stdout))
    try:
        pid, pidfd, report = _parent_for(env).fork(request, reading, theirs, stderr.fileno())
    finally:
        os.close(reading)
        os.close(theirs)
    return WarmProcess(pid, pidfd, report, None if writing == -1 else InputPipe(writing),
                       OutputPipe(output) if stdout is None else None)


class Forked:
    """A child of the warm parent: what `subprocess.Popen` says of a process that was started from nothing."""

    def __init__(self, pid: int, pidfd: int, report: socket.socket) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._report = report
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            _signal(self._pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code. Raises TimeoutError."""
        if self.returncode is None:
            self._report.settimeout(timeout)
            self.returncode = int(json.loads(self._report.recv(100)))
            os.close(self._pidfd)
            self._report.close()
        return self.returncode


def start_on(
    streams: tuple[int, int, int], command: list[str], *, env: Mapping[str, str]
) -> Forked | subprocess.Popen[bytes]:
    """Start a program on descriptors for its three streams."""
    if not can_be_warm(command):
        stdin, stdout, stderr = streams
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=env)
    request = {"command": command, "env": dict(env), "cwd": os.getcwd(), "start_new_session": False}
    return Forked(*_parent_for(env).fork(request, *streams))


def run_to_end(
    command: list[str], *, env: Mapping[str, str], cwd: Path | str | None = None, stdin: str = "",
    seconds_max: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a program with pipes for its three streams, as `subprocess.run` does, and return what it came to."""
    if not can_be_warm(command):
        return subprocess.run(
            command, env=env, cwd=cwd, input=stdin, capture_output=True, text=True, check=False, timeout=seconds_max
        )
    pipes = [os.pipe() for _ in range(3)]
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    request = {"command": command, "env": dict(env), "cwd": str(cwd or os.getcwd()), "start_new_session": False}
    try:
        forked = Forked(*_parent_for(env).fork(request, *theirs))
    finally:
        for fd in theirs:
            os.close(fd)
    with ThreadPoolExecutor(3) as threads:
        threads.submit(_write_all, pipes[0][1], stdin.encode())
        output, errors = (threads.submit(_read_all, reading) for reading, _ in pipes[1:])
        try:
            returncode = forked.wait(seconds_max)
        except TimeoutError as error:
            forked.kill()
            forked.wait()
            raise subprocess.TimeoutExpired(command, seconds_max) from error
        return subprocess.CompletedProcess(command, returncode, output.result(), errors.result())


async def run_program(command: list[str], *, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, while other tasks go on."""
    return await to_thread.run_sync(partial(run_to_end, command, env=env))


def _write_all(fd: int, content: bytes) -> None:
    with os.fdopen(fd, "wb") as stream, suppress(BrokenPipeError):
        stream.write(content)
        stream.flush()


def _read_all(fd: int) -> str:
    with os.fdopen(fd, encoding="utf-8") as stream:
        return stream.read()
