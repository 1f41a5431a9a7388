"""A place with something to protect around it, and commands confined at a chosen level, as root or as an ordinary user.

Everything lies in `/var/tmp`: `/tmp` is a confined command's own, so nothing in it would show whether a wall holds. An
ordinary user gets copies of the spawner's sources, for root's may be out of its reach.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ptyprocess

import adapters.spawner
import adapters.wire
from adapters.runner.spawner_runner import SpawnerRunner, open_runner
from adapters.wire import Message
from codespace_es.ports.runner import LiveProcess, ProcessEnd, RunnerCommand, SandboxReport
from support.process_runner import Locks, command
from support.system_python import PYTHON

ORDINARY_USER = 61234
SYSTEM_PYTHON = "/usr/bin/python3"
INTACT = "intact"


@dataclass(frozen=True)
class Setting:
    """At which level, as whom, with a terminal or without."""

    level: int
    is_root: bool
    tty: bool = False
    abi: int = 0
    """Landlock's highest; 0: what the kernel has."""

    def __str__(self) -> str:
        user = "root" if self.is_root else "user"
        abi = f"-abi{self.abi}" if self.abi else ""
        return f"{self.level}-{user}-{'terminal' if self.tty else 'pipes'}{abi}"


def users() -> list[bool]:
    """Return whether to try as root: both ways if we are, else only as we are."""
    return [True, False] if os.geteuid() == 0 else [False]


def needs_another_user(setting: Setting) -> bool:
    return os.geteuid() == 0 and not setting.is_root


class LimitedSpawner:
    """Starts spawners that take no level above the setting's. Implements `SpawnerSource`."""

    def __init__(self, setting: Setting, code: Path) -> None:
        self._setting = setting
        self._code = code
        self._process: subprocess.Popen[bytes] | None = None

    async def connect(self) -> socket.socket:
        own, spawners = socket.socketpair()
        with spawners:
            self._process = subprocess.Popen(
                [*self._command(), str(spawners.fileno()), "0", str(self._code)],
                pass_fds=[spawners.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/",
                env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}, start_new_session=True, **self._identity(),
            )
        return own

    async def probe(self) -> Message | None:
        return None

    async def settle(self) -> None:
        if self._process is not None:
            self._process.wait()

    def wake(self) -> None:
        """Nobody stops it here."""

    def _command(self) -> list[str]:
        program = str(self._code / "escape_spawner.py")
        limits = [str(self._setting.level), str(self._setting.abi)]
        return [python_of(self._setting), "-I", "-S", program, *limits]

    def _identity(self) -> dict[str, Any]:
        if not needs_another_user(self._setting):
            return {}
        return {"user": ORDINARY_USER, "group": ORDINARY_USER, "extra_groups": []}


def python_of(setting: Setting) -> str:
    return SYSTEM_PYTHON if needs_another_user(setting) else PYTHON


@contextmanager
def place(setting: Setting) -> Iterator[Path]:
    """Have `root`, `outside` and `hidden` in a directory of the setting's user."""
    directory = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="codespace-es-test-"))
    try:
        directory.chmod(0o755)
        for name in ("root/.git/hooks", "outside", "hidden"):
            (directory / name).mkdir(parents=True)
        (directory / "hidden" / "secret").write_text("secret")
        give_to(setting, directory)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def give_to(setting: Setting, directory: Path) -> None:
    """Make the setting's user the owner of `directory` and all in it."""
    if needs_another_user(setting):
        for path in (directory, *directory.rglob("*")):
            os.chown(path, ORDINARY_USER, ORDINARY_USER)


def code_of(setting: Setting) -> Path:
    """Return a directory with the spawner's sources and the attempts, of the setting's user."""
    return _copied_code(needs_another_user(setting))


@cache
def _copied_code(is_of_another_user: bool) -> Path:
    target = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="codespace-es-test-code-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    package = Path(adapters.spawner.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, target / "adapters" / "spawner", ignore=ignored)
    shutil.copytree(Path(ptyprocess.__file__).parent, target / "ptyprocess", ignore=ignored)
    shutil.copy(Path(adapters.wire.__file__), target / "adapters" / "wire.py")
    (target / "adapters" / "__init__.py").write_text("")
    for name in ("escape_spawner.py", "escape_attempts.py"):
        shutil.copy(Path(__file__).parent / name, target / name)
    target.chmod(0o755)
    give_to(Setting(1, not is_of_another_user), target)
    return target


@asynccontextmanager
async def confined(setting: Setting, where: Path) -> AsyncIterator["Confined"]:
    """Have a runner whose commands are confined as the setting says."""
    locks = Locks(where / "locks")
    instance = locks.take("instance")
    try:
        source = LimitedSpawner(setting, code_of(setting))
        async with open_runner(source, instance_lock=instance, processes_max=8) as runner:
            yield Confined(runner, setting, where, locks)
    finally:
        instance.release()


class Confined:
    """Runs commands in the place's root."""

    def __init__(self, runner: SpawnerRunner, setting: Setting, where: Path, locks: Locks) -> None:
        self.runner = runner
        self.setting = setting
        self.where = where
        self.root = where / "root"
        self._locks = locks
        self._live: list[LiveProcess] = []

    def at(self, where: Path) -> "Confined":
        """Return the same runner for another place."""
        return Confined(self.runner, self.setting, where, Locks(where / "locks"))

    async def end_all(self) -> None:
        """End whatever was started here and is still there."""
        for process in self._live:
            await process.end(signal=signal.SIGKILL, grace_ms=0)
            await process.wait()

    def command(self, *argv: str, **fields: Any) -> RunnerCommand:
        chosen: dict[str, Any] = {
            "sandbox": "auto", "tty": self.setting.tty, "is_network_enabled": False, "read_only_paths": (".git",),
            "hidden_paths": (str(self.where / "hidden"),), "columns": 200, **fields,
        }
        return command(self.root, *argv, **chosen)

    async def start(self, *argv: str, **fields: Any) -> tuple[LiveProcess, SandboxReport]:
        """Start a command and let it go; return it with what it is confined by."""
        lease = self._locks.take("lease")
        try:
            child = await self.runner.start(self.command(*argv, **fields), lease=lease)
        finally:
            lease.release()
        self._live.append(await child.go())
        return self._live[-1], child.sandbox

    async def ended(self, *argv: str, **fields: Any) -> tuple[ProcessEnd, SandboxReport]:
        process, report = await self.start(*argv, **fields)
        return await process.wait(), report


@dataclass(frozen=True)
class Outcome:
    """What came of all attempts of a setting."""

    report: SandboxReport
    results: dict[str, str]
    is_usable: bool
    environment: dict[str, str]
    damaged: frozenset[str]
    """Attempts whose victim isn't as it was."""


@contextmanager
def _around(setting: Setting, where: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Have what the attempts are after: files, a stranger and sockets, all of the same user."""
    identity = {"user": ORDINARY_USER, "group": ORDINARY_USER} if needs_another_user(setting) else {}
    for name in names:
        (where / "outside" / name).write_text(INTACT)
        (where / "outside" / name).chmod(0o644)
    with contextlib.ExitStack() as stack:
        stranger = stack.enter_context(subprocess.Popen(["sleep", "600"], **identity))
        stack.callback(stranger.kill)
        shared = Path(f"/dev/shm/codespace-es-test-{os.getpid()}")
        stack.callback(shared.unlink, missing_ok=True)
        shared.write_text(INTACT)
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        sockets.chmod(0o755)
        abstract = f"codespace-es-test-{os.getpid()}"
        in_tmp, elsewhere = str(sockets / "s"), str(where / "outside.socket")
        for address in (in_tmp, elsewhere, "\0" + abstract):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen(16)
            if not address.startswith("\0"):
                os.chmod(address, 0o666)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        give_to(setting, where / "outside")
        if needs_another_user(setting):
            os.chown(shared, ORDINARY_USER, ORDINARY_USER)
        yield {
            "attempts": names, "outside": str(where / "outside"), "hidden": str(where / "hidden"),
            "stranger": stranger.pid, "shared_memory": str(shared), "socket_in_tmp": in_tmp, "abstract": abstract,
            "socket_elsewhere": elsewhere, "tcp": tcp.getsockname()[1],
        }


async def try_to_escape(setting: Setting, names: list[str]) -> Outcome:
    """Run the attempts `names` in one confined command."""
    with place(setting) as where, _around(setting, where, names) as scene:
        async with confined(setting, where) as here:
            program = str(code_of(setting) / "escape_attempts.py")
            end, report = await here.ended(python_of(setting), program, json.dumps(scene))
        said = end.tail.decode(errors="replace")
        assert end.wait_status == 0, said
        answer = json.loads(said)
        outside = where / "outside"
        damaged = {name for name in names if _is_damaged(outside / name)}
        damaged |= {path.stem for path in outside.iterdir() if path.suffix == ".new"}
        return Outcome(report, answer["results"], answer["is_usable"], answer["environment"], frozenset(damaged))


def _is_damaged(victim: Path) -> bool:
    try:
        status = victim.stat()
        has_mode = status.st_mode & 0o777 == 0o644
        return not has_mode or status.st_mtime == 1 or victim.read_text() != INTACT or bool(os.listxattr(victim))
    except OSError:
        return True


@cache
def outcome(setting: Setting, names: tuple[str, ...]) -> Outcome:
    """Return what came of it; tried once for all tests that ask."""
    import anyio

    async def within_time() -> Outcome:
        with anyio.fail_after(60):
            return await try_to_escape(setting, list(names))

    return anyio.run(within_time)
