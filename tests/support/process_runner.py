"""A runner with real processes: commands to give it, and ways to look at what is left of them."""

import ctypes
import itertools
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.locks.flock import HeldFlock, LockDirectory
from adapters.runner.own_spawner import open_spawner_runner
from adapters.runner.spawner_runner import SpawnerRunner
from adapters.runner.uds_runner import open_uds_runner, serve_runner
from codespace_es.ports.runner import LiveProcess, ProcessEnd, RunnerCommand
from codespace_es.vocabulary.identifiers import ProcessId

_numbers = itertools.count()
_PTRACE_SEIZE, _PTRACE_INTERRUPT, _PTRACE_DETACH = 0x4206, 0x4207, 17
_WALL = 0x40000000

OpenRunner = Callable[..., AbstractAsyncContextManager[SpawnerRunner]]


def command(root: Path, *argv: str, environment: Mapping[str, str] | None = None, **fields: Any) -> RunnerCommand:
    """Return a command as the server would make it."""
    chosen: dict[str, Any] = {
        "tty": False, "stdin": "null", "rows": 24, "columns": 80, "is_network_enabled": True, "sandbox": "off",
        "hidden_paths": (), "read_only_paths": (), "output_retention_bytes": 256 * 1024, "head_bytes": 32 * 1024,
        "process_id": ProcessId(f"proc-{os.getpid()}-{next(_numbers)}"), **fields,
    }
    settings = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm", **(environment or {})}
    return RunnerCommand(argv=argv, root=str(root), environment=settings, **chosen)


class Locks:
    """Locks in a directory of the test, each taken once."""

    def __init__(self, path: Path) -> None:
        self._directory = LockDirectory(str(path))

    def take(self, name: str) -> HeldFlock:
        held = self._directory.try_lock(name)
        assert held is not None, f"{name} is held by somebody"
        return held

    def is_free(self, name: str) -> bool:
        held = self._directory.try_lock(name)
        if held is not None:
            held.release()
        return held is not None

    async def until_free(self, name: str) -> None:
        while not self.is_free(name):
            await anyio.sleep(0.005)


@asynccontextmanager
async def own_runner(path: Path, *, processes_max: int = 64) -> AsyncIterator[SpawnerRunner]:
    """Have a runner with a spawner of its own."""
    instance = Locks(path / "locks").take("instance")
    try:
        async with open_spawner_runner(instance_lock=instance, processes_max=processes_max) as runner:
            yield runner
    finally:
        instance.release()


@asynccontextmanager
async def uds_runner(path: Path, *, processes_max: int = 64) -> AsyncIterator[SpawnerRunner]:
    """Have a runner behind a socket that this process serves too."""
    place = path / "r"
    place.mkdir(mode=0o700, exist_ok=True)
    socket = place / "s"
    instance = Locks(path / "locks").take("instance")
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_runner, str(socket))
            while not socket.exists():
                await anyio.sleep(0.001)
            async with open_uds_runner(str(socket), instance_lock=instance, processes_max=processes_max) as runner:
                yield runner
            tasks.cancel_scope.cancel()
    finally:
        instance.release()


class Workshop:
    """A runner, a root to run in, and locks: what nearly every test needs."""

    def __init__(self, runner: SpawnerRunner, root: Path, locks: Locks) -> None:
        self.runner = runner
        self.root = root
        self.locks = locks

    async def run(self, *argv: str, lease: HeldFlock | None = None, **fields: Any) -> LiveProcess:
        """Start a command and let it go."""
        held = lease or self.locks.take(f"lease-{next(_numbers)}")
        child = await self.runner.start(command(self.root, *argv, **fields), lease=held)
        held.release()
        return await child.go()

    async def shell(self, script: str, **fields: Any) -> LiveProcess:
        return await self.run("bash", "-c", script, **fields)

    async def ended(self, *argv: str, **fields: Any) -> ProcessEnd:
        return await (await self.run(*argv, **fields)).wait()


class SharedWorkshop(Workshop):
    """One whose runner others use after it: it remembers what was let go."""

    def __init__(self, runner: SpawnerRunner, root: Path, locks: Locks) -> None:
        super().__init__(runner, root, locks)
        self._live: list[LiveProcess] = []

    async def run(self, *argv: str, lease: HeldFlock | None = None, **fields: Any) -> LiveProcess:
        self._live.append(await super().run(*argv, lease=lease, **fields))
        return self._live[-1]

    async def end_all(self) -> None:
        """End whatever was let go here and is still there."""
        for process in self._live:
            await process.end(signal=signal.SIGKILL, grace_ms=0)
            await process.wait()


async def until_output(process: LiveProcess, wanted: bytes) -> bytes:
    """Return the output as soon as `wanted` is in it."""
    content = b""
    cursor = 0
    while wanted not in content:
        chunk = await process.read(cursor, wait_ms=5000, bytes_max=1 << 20)
        assert chunk.content or not chunk.is_end, f"the output ended without {wanted!r}: {content!r}"
        content += chunk.content
        cursor = chunk.start + len(chunk.content)
    return content


async def whole_output(process: LiveProcess) -> bytes:
    content = b""
    while True:
        chunk = await process.read(len(content), wait_ms=5000, bytes_max=1 << 20)
        assert chunk.start == len(content), "something was lost"
        content += chunk.content
        if chunk.is_end:
            return content


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def processes_with(mark: str) -> list[int]:
    """Return the living processes whose environment or command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                content = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in content and is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found


async def until_there(mark: str, count: int) -> None:
    """Return once so many live: one that is just becoming its program has neither environment nor command line."""
    while len(processes_with(mark)) < count:
        await anyio.sleep(0.005)


async def until_gone(mark: str) -> None:
    while processes_with(mark):
        await anyio.sleep(0.005)


def children_of(pid: int) -> list[tuple[int, str]]:
    """Return the children of a process with their states, zombies too."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append((int(entry.name), fields[0]))
    return found


def spawner_of(pid: int) -> int:
    """Return the process id of the spawner of the server `pid`."""
    found = [child for child, state in children_of(pid) if state not in "ZX"
             and b"spawner/main.py" in Path(f"/proc/{child}/cmdline").read_bytes()]
    assert len(found) == 1, found
    return found[0]


@contextmanager
def traced(pid: int) -> Iterator[None]:
    """Have a process stopped as a debugger does it: only SIGKILL makes it go on, until this is left."""
    _ptrace(_PTRACE_SEIZE, pid)
    _ptrace(_PTRACE_INTERRUPT, pid)
    os.waitpid(pid, _WALL)
    try:
        yield
    finally:
        if is_alive(pid):
            _ptrace(_PTRACE_DETACH, pid)
        else:
            os.waitpid(pid, _WALL)


def _ptrace(request: int, pid: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.ptrace(request, pid, None, None) != 0:
        pytest.skip(f"nobody may be traced here: {os.strerror(ctypes.get_errno())}")
