"""Starts a spawner of this server's own: a process that is executed, never a fork of the server.

From the main thread only: a process may be tied to the thread that started it. Source: reliability.md D8; decision 17.
"""

import importlib.util
import json
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

import adapters.spawner
from adapters.runner.spawner_runner import SpawnerRunner, open_runner
from adapters.wire import Message
from codespace_es.ports.locks import Held
from codespace_es.ports.runner import RunnerLostError

_ENDING_SECONDS_MAX: Final = 10.0
_ENDING_LOOK_SECONDS: Final = 0.002
_PROBE_SECONDS_MAX: Final = 20.0


class OwnSpawner:
    """Starts a spawner and knows when it has ended. Implements `SpawnerSource`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._open_files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def connect(self) -> socket.socket:
        """Execute a spawner and return the socket to it. Raises OSError, RunnerLostError when it can't be executed."""
        own, spawners = socket.socketpair()
        with spawners:
            try:
                self._process = start_spawner(spawners, open_files_max=self._open_files_max)
            except OSError as error:
                own.close()
                raise RunnerLostError(f"The spawner can't be started: {error}.", is_dispatched=False) from error
        return own

    async def probe(self) -> Message | None:
        """Return what a spawner started now would confine commands by. Raises RunnerLostError."""
        try:
            with anyio.fail_after(_PROBE_SECONDS_MAX):
                ended = await anyio.run_process(
                    [*spawner_command("--probe", 0)], input=b"{}", stderr=None, env=_ENVIRONMENT, cwd="/"
                )
        except (OSError, TimeoutError, subprocess.CalledProcessError) as error:
            raise RunnerLostError(f"What commands are confined by can't be found out: {error}.",
                                  is_dispatched=False) from error
        report: Message = json.loads(ended.stdout)
        return report

    async def settle(self) -> None:
        """Return when the spawner is gone; one that doesn't end is killed, and its reapers end its trees."""
        process = self._process
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        with anyio.move_on_after(_ENDING_SECONDS_MAX):
            while process.poll() is None:  # noqa: ASYNC110 - there may be no descriptor left by which to wait
                await anyio.sleep(_ENDING_LOOK_SECONDS)
        process.kill()
        process.wait()
        self._process = None  # not before: whoever is cancelled here leaves it to the next

    def wake(self) -> None:
        """Have it go on if somebody has stopped it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)


_ENVIRONMENT: Final = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}


def start_spawner(connection: socket.socket, *, open_files_max: int) -> "subprocess.Popen[bytes]":
    """Execute a spawner that serves `connection`. It inherits that and standard error, nothing else. Raises OSError."""
    return subprocess.Popen(  # noqa: S603 - our own program
        spawner_command(str(connection.fileno()), open_files_max),
        pass_fds=[connection.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env=_ENVIRONMENT,
        cwd="/",
    )


def spawner_command(connection: str, open_files_max: int) -> list[str]:
    """Return the command line of a spawner, isolated from everything that may lie around here."""
    package = Path(adapters.spawner.__file__).parent
    found = importlib.util.find_spec("ptyprocess")
    assert found is not None, "ptyprocess is a dependency"
    assert found.origin is not None, "ptyprocess is a package in a directory"
    directories = dict.fromkeys([str(package.parents[1]), str(Path(found.origin).parents[1])])
    soft = 0 if open_files_max == resource.RLIM_INFINITY else open_files_max
    return [sys.executable, "-I", "-S", str(package / "main.py"), connection, str(soft), *directories]


@asynccontextmanager
async def open_spawner_runner(*, instance_lock: Held, processes_max: int) -> AsyncIterator[SpawnerRunner]:
    """Have a runner with a spawner of this server's own. Leaving it ends every tree."""
    async with open_runner(OwnSpawner(), instance_lock=instance_lock, processes_max=processes_max) as runner:
        yield runner
