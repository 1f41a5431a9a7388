"""Starting a process of tools, and ending it with all that it has started and that stayed in its session.

From the main thread only: a process may be tied to the thread that started it.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio

import adapters.tool_host.child
from adapters.spawner.tree import kill_beneath
from adapters.tool_host.end import HostEnd

_TELLING_SECONDS: Final = 1.0
"""How long a process that hangs may take to say on standard error where it is."""


class ToolProcess:
    """A process that was started, and our end of its socket."""

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
        self.connection = connection
        self.pid = process.pid
        self._process = process
        self._descriptor = os.pidfd_open(process.pid)
        self._is_gone = anyio.Event()

    async def wait(self) -> None:
        """Return when it has ended. For one waiter; others use `kill`."""
        await anyio.wait_readable(self._descriptor)
        self._end_session()
        self._process.wait()
        os.close(self._descriptor)
        self._is_gone.set()

    async def kill(self, *, tells_where: bool) -> None:
        """End it and return when it is gone; a process that hangs may tell first where. `wait` has to be waited for."""
        if tells_where and not self._is_gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGABRT)
            with anyio.move_on_after(_TELLING_SECONDS):
                await self._is_gone.wait()
        if not self._is_gone.is_set():
            self._end_session()
            await self._is_gone.wait()

    def describe_end(self) -> HostEnd:
        """Return how it ended by itself."""
        code = self._process.returncode
        if code == -signal.SIGKILL:
            return HostEnd("killed", "its process was killed (SIGKILL)")
        if code is not None and code < 0:
            return HostEnd("exited", f"its process died of {signal.Signals(-code).name}")
        return HostEnd("exited", f"it ended its process, with exit code {code}")

    def _end_session(self) -> None:
        """Kill what it has started, and what is left of its session, which nobody else's is while it isn't reaped."""
        kill_beneath(self.pid, is_racing=False)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)



def start_process() -> ToolProcess:
    """Execute a process of tools. It inherits its socket and standard error, nothing else. Raises OSError."""
    own, other = socket.socketpair()
    package = Path(adapters.tool_host.child.__file__).parent
    with other:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", str(package / "main.py"), str(other.fileno()), str(package.parents[2])],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=_log_descriptor(),
                start_new_session=True,
                env=_environment(),
                cwd="/",
            )
        except OSError:
            own.close()
            raise
    return ToolProcess(process, own)


def _log_descriptor() -> int:
    """Return where what a tool prints goes: to the server's log, if it has one; never to a client."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


def _environment() -> dict[str, str]:
    """Return the server's own environment without its tokens and settings; a tool may need the rest."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CODESPACE_")}
