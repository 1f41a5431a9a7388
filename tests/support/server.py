"""A whole server without a transport, in this process: real log, real files, real locks, and a death on cue.

A death is played by raising `Death` at a fault point: the stack unwinds, the locks fall as they do when a process ends,
and nothing more is appended. What a second server then finds is what it would find after `kill -9`.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio.abc import TaskGroup

from adapters.bootstrap import CHILD_DEFAULTS
from adapters.clock_and_ids import RandomIds, SystemClock
from adapters.files.workspace_files import DirectoryFilesByRoot
from adapters.locks.instance_lock import FlockInstanceLocks
from adapters.locks.lease import FlockWorkspaceLeases
from adapters.log.event_log import StoredEventLog
from adapters.log.places import LogPlace
from adapters.patch_writer.writer import ExchangePatchWriter
from adapters.runner.own_spawner import open_spawner_runner
from adapters.structural.searching import open_structural_search
from codespace_es.aggregates.instance import InstanceStarted
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.instance_life import InstanceLife
from codespace_es.command_handlers.starting import settle_at_start
from codespace_es.command_handlers.turns import FairTurns
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.open_index import open_change
from codespace_es.ports.clock_and_ids import Clock
from codespace_es.ports.custom_tools import NoCustomTools
from codespace_es.ports.fault_points import FaultHook, FaultPoint, no_faults
from codespace_es.ports.kept_folds import KeptFolds
from codespace_es.ports.live_processes import LiveProcesses
from codespace_es.ports.locks import Held
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.ports.own_pushes import OwnPushes
from codespace_es.ports.remarks import Remarks
from codespace_es.ports.tool_host import NoToolHost, ToolHost
from codespace_es.ports.under_way import UnderWay
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.event import Caller, Channel
from codespace_es.vocabulary.identifiers import InstanceId, RequestId, workspace_key
from codespace_es.vocabulary.limits import STRUCTURAL_FILES_CHANGED_MAX
from codespace_es.vocabulary.workspace import Workspace
from support.crash_faults import Death

MACHINE = "machine-of-the-tests"

Result = TypeVar("Result")


class DieFrom:
    """Raises `Death` at the k-th point and at every later one: the dead don't act, on whichever thread."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.points: list[FaultPoint] = []

    @property
    def has_struck(self) -> bool:
        """The moment came."""
        return len(self.points) >= self.k

    def __call__(self, point: FaultPoint) -> None:
        self.points.append(point)
        if self.has_struck:
            raise Death


class ServerDied(Exception):  # noqa: N818 - what a client sees of a death: no answer
    """The server ended in the middle of the call."""


class _MortalEffects:
    """Runs effects at once; a death in one is the death of the server. What is only started gets a task."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self.tasks: TaskGroup | None = None
        self._running = 0

    async def run(self, story: Callable[[], Awaitable[Result]]) -> Result:
        try:
            return await story()
        except Death as death:
            self._server.is_dead = True
            raise ServerDied from death

    def start(self, story: Callable[[], Awaitable[None]]) -> None:
        assert self.tasks is not None
        self._running += 1
        self.tasks.start_soon(self._follow, story)

    async def _follow(self, story: Callable[[], Awaitable[None]]) -> None:
        try:
            await story()
        except (Death, StoreUnavailableError):
            self._server.is_dead = True
        finally:
            self._running -= 1

    async def wait_until_idle(self) -> None:
        while self._running:
            await anyio.sleep(0.005)


class _Late:
    """A part that is made when the server starts."""

    def __init__(self) -> None:
        self.real: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Server:
    """One instance over a data directory and workspaces: `async with`, or `start` and then `stop` or `die`."""

    def __init__(
        self, scratch: Path, roots: Mapping[str, Path], *, faults: FaultHook = no_faults, is_ephemeral: bool = False,
        protected_paths: tuple[str, ...] = (), settles_at_start: bool = True, processes_max: int = 8,
        clock: Clock | None = None, tool_host: ToolHost | None = None, is_shared: bool = False,
        place: LogPlace | None = None, **policy: Any,
    ) -> None:
        self.is_dead = False
        self.hook = faults
        self.protected_paths = protected_paths
        self._settles_at_start = settles_at_start
        self._processes_max = processes_max
        self._runner = _Late()
        self._structural = _Late()
        ids, clock = RandomIds(), clock or SystemClock()
        instance_id = InstanceId(f"inst-{ids.uuid()}")
        (scratch / "data").mkdir(mode=0o700, exist_ok=True)
        locks = scratch / "locks"
        locks.mkdir(mode=0o700, exist_ok=True)
        self.place = None if is_ephemeral else place or scratch / "data" / "codespace.db"
        self.log = StoredEventLog(
            self.place, catalogue=CATALOGUE, open_rule=open_change, instance_id=instance_id, clock=clock, ids=ids,
            faults=self._reach,
        )
        self.world = World(
            instance_id=instance_id,
            machine_id=MACHINE,
            new_file_mode=0o644,
            workspaces={name: _workspace(name, root, protected_paths, policy) for name, root in roots.items()},
            log=self.log,
            files=DirectoryFilesByRoot(),
            structural=self._structural,
            patch_writer=ExchangePatchWriter(self._reach),
            instance_locks=FlockInstanceLocks(str(locks)),
            leases=FlockWorkspaceLeases(str(locks)),
            child_environment={"PATH": os.environ["PATH"], **CHILD_DEFAULTS},
            private_paths=(str(scratch / "data"), str(locks)),
            input_key=bytes(32),
            runner=self._runner,
            tool_host=tool_host or NoToolHost(),
            custom_tools=NoCustomTools(),
            live=LiveProcesses(),
            under_way=UnderWay(),
            turns=FairTurns(),
            remarks=Remarks(),
            kept=KeptFolds(),
            own_pushes=OwnPushes(),
            is_shared=is_shared,
            effects=_MortalEffects(self),
            clock=clock,
            ids=ids,
            faults=self._reach,
        )
        self._effects = self.world.effects
        self.codespace = Codespace(self.world)
        self._caller = Caller("mcp", RequestId(f"req-{ids.uuid()}"), "tests/1")
        self._life = InstanceLife(self.world, self._caller)
        self._lock: Held | None = None
        self._closing = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    def _reach(self, point: FaultPoint) -> None:
        try:
            self.hook(point)
        except Death:
            self.world.live.is_closing = True  # on the writer's thread a death is a failed append: nobody tries again
            raise

    async def start(self) -> Self:
        """Take the lock, open the log, say so, settle."""
        self._lock = self.world.instance_locks.take_own(self.world.instance_id)
        ready = asyncio.Event()
        self._keeper = asyncio.get_running_loop().create_task(self._keep(ready))
        await asyncio.wait({self._keeper, asyncio.ensure_future(ready.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if self._keeper.done():
            self._life.close_record()
            self._life._receive.close()
            self._lock.release()
            await self._keeper
        directory = self.world.instance_locks.directory_id()
        await self._life.start(_STARTED.model_copy(update={"lock_directory": directory}))
        if self._settles_at_start:
            await self.settle()
        return self

    async def _keep(self, ready: asyncio.Event) -> None:
        """Hold log, runner and effects open, in one task from begin to end, whichever task starts and stops us."""
        assert self._lock is not None
        async with (
            self.log,
            open_spawner_runner(instance_lock=self._lock, processes_max=self._processes_max) as runner,
            open_structural_search(files_changed_max=STRUCTURAL_FILES_CHANGED_MAX) as structural,
        ):
            self._runner.real, self._structural.real = runner, structural
            async with anyio.create_task_group() as self._effects.tasks:
                ready.set()
                await self._closing.wait()
                self._effects.tasks.cancel_scope.cancel()

    async def settle(self) -> None:
        """Close what the dead have left."""
        try:
            await settle_at_start(self.world, self._caller)
        except Death as death:
            self.is_dead = True
            raise ServerDied from death

    async def handle(self, command: Command, channel: Channel = "mcp") -> Answer:
        """Return the answer to one who speaks by `channel`. Raises the refusal, or ServerDied."""
        assert not self.is_dead
        return await self.codespace.handle(command, replace(self._caller, channel=channel))

    async def stop(self) -> None:
        """End in good order."""
        await self.codespace.close(self._caller)
        await self._life.stop()
        await self.die()

    async def die(self) -> None:
        """Let the locks fall and append nothing more."""
        self.is_dead = True
        self.hook = no_faults
        self._life.close_record()
        self._life._receive.close()
        self._closing.set()
        if self._keeper is not None:
            await self._keeper
        if self._lock is not None:
            self._lock.release()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self.is_dead:
            await self.die()
        else:
            await self.stop()


def _workspace(name: str, root: Path, protected_paths: tuple[str, ...], policy: Mapping[str, Any]) -> Workspace:
    canonical = str(root.resolve())
    return Workspace(
        protected_paths=protected_paths,
        **{"workspace_id": name, "key": workspace_key(MACHINE, canonical), "root": canonical,
           "profile": "workspace-write", **policy},
    )


_STARTED = InstanceStarted(
    software="codespace-es/tests", machine_id=MACHINE, host="here", boot_id="boot", pid=1, pid_namespace=1,
    started_ticks=1, transport="stdio", configuration="sha256:" + "0" * 64,
)
