"""A runner behind a Unix socket: a server that hands each connection to a spawner of its own, and the client's side.

The operator says which socket: `CODESPACE_RUNNER_SOCKET` with `CODESPACE_RUNNER=uds`, `codespace-es runner --socket`.
Both ends have to see the same files under the same names. Only the user who runs it is served.
"""

import contextlib
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from adapters.runner.own_spawner import start_spawner
from adapters.runner.spawner_runner import SpawnerRunner, open_runner
from adapters.wire import Message
from codespace_es.ports.locks import Held
from codespace_es.ports.runner import RunnerLostError

_CREDENTIALS: Final = struct.Struct("3i")
_BACKLOG: Final = 16
_SCARCE_SECONDS: Final = 0.1
"""Where the system has no room for a connection, the next look is so much later."""


class RemoteSpawner:
    """Connects to the server at `path`. Implements `SpawnerSource`."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def connect(self) -> socket.socket:
        """Return a connection, which has a spawner of its own at the other end. Raises OSError, RunnerLostError."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._path)  # to a Unix socket: at once, or refused
        except OSError as error:
            connection.close()
            raise RunnerLostError(f"There is no runner at {self._path}: {error}.", is_dispatched=False) from error
        if _peer_user(connection) != os.geteuid():
            connection.close()
            raise RunnerLostError(f"The runner at {self._path} is another user's.", is_dispatched=False)
        return connection

    async def probe(self) -> Message | None:
        """Return None: only the other side knows."""
        return None

    async def settle(self) -> None:
        """Return at once: the other side ends its spawner by itself, and the locks say when."""

    def wake(self) -> None:
        """Do nothing: whom to signal is known there alone."""


@asynccontextmanager
async def open_uds_runner(
    path: str, *, instance_lock: Held, processes_max: int
) -> AsyncIterator[SpawnerRunner]:
    """Have a runner behind the socket at `path`. Leaving it ends every tree."""
    async with open_runner(RemoteSpawner(path), instance_lock=instance_lock, processes_max=processes_max) as runner:
        yield runner


async def serve_runner(path: str) -> None:
    """Serve runners on a socket at `path`, in a directory of this user alone, until it is cancelled.

    Each connection gets a spawner, which ends with it. Ending the server ends them all.

    Raises:
        OSError: the socket can't be made there; FileExistsError when somebody serves there already.
    """
    listener = _listen(path)
    spawners: list[subprocess.Popen[bytes]] = []
    try:
        with anyio.open_signal_receiver(signal.SIGCHLD) as endings:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_reap, endings, spawners)
                await _accept(listener, spawners)
    finally:
        listener.close()
        os.unlink(path)
        for spawner in spawners:
            spawner.terminate()
        for spawner in spawners:
            spawner.wait()


async def _accept(listener: socket.socket, spawners: "list[subprocess.Popen[bytes]]") -> None:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    while True:
        await anyio.wait_readable(listener)
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            continue
        except OSError as error:
            _complain(f"a connection can't be taken: {error}")
            await anyio.sleep(_SCARCE_SECONDS)
            continue
        with connection:
            if _peer_user(connection) == os.geteuid():
                try:
                    spawners.append(start_spawner(connection, open_files_max=soft))
                except OSError as error:  # who has connected finds it closed; those who are served don't notice
                    _complain(f"a spawner can't be started: {error}")


def _complain(problem: str) -> None:
    sys.stderr.write(f"codespace-es runner: {problem}\n")
    sys.stderr.flush()


async def _reap(endings: "AsyncIterator[signal.Signals]", spawners: "list[subprocess.Popen[bytes]]") -> None:
    async for _ in endings:
        spawners[:] = [spawner for spawner in spawners if spawner.poll() is None]


def _listen(path: str) -> socket.socket:
    directory = os.stat(os.path.dirname(os.path.abspath(path)))
    if directory.st_uid != os.geteuid() or stat.S_IMODE(directory.st_mode) & 0o022:
        raise PermissionError(f"The directory of {path} may be written by others: make one with mode 0700.")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own_name = f"{path}.{os.getpid()}"
    try:
        _remove_if_dead(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(own_name)  # of one with this number that was killed
        listener.bind(own_name)
        try:
            os.chmod(own_name, 0o600)
            listener.listen(_BACKLOG)
            os.link(own_name, path)  # whoever sees it there finds somebody who listens
        finally:
            os.unlink(own_name)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _remove_if_dead(path: str) -> None:
    """Remove the socket of a server that is no more. Raises FileExistsError for anything else."""
    try:
        is_socket = stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if is_socket:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            try:
                knock.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
                return
    raise FileExistsError(f"{path} is in use: by another runner, or something that isn't one's socket.")


def _peer_user(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(credentials)[1]
    return user
