"""The composition root: the only room that knows every adapter, and the order in which a server comes to life.

1. The private directories, then the log: opened, nothing written.
2. Effects, so that whatever begins is over before the log is closed.
3. This instance's lock, then `instance.started` (`living`).
4. What dead servers left is settled beside the serving, not before it: an answer that depends on it settles it itself.

Leaving goes the same way back: no new settling, effects end, `instance.stopped`, lock, log.
"""

import logging
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import TaskGroup

from adapters.bootstrap.instance import Transport, this_instance
from adapters.bootstrap.log import log_of
from adapters.bootstrap.tools import open_tools, orphan
from adapters.clock_and_ids import RandomIds, SystemClock
from adapters.files.workspace_files import DirectoryFilesByRoot
from adapters.locks.flock import lock_directory_of_user
from adapters.locks.instance_lock import FlockInstanceLocks, OwnInstanceLock
from adapters.locks.lease import FlockWorkspaceLeases
from adapters.log.event_log import StoredEventLog
from adapters.machine import allow_many_descriptors, new_file_mode
from adapters.patch_writer.writer import ExchangePatchWriter
from adapters.runner.own_spawner import open_spawner_runner
from adapters.runner.spawner_runner import SpawnerRunner
from adapters.runner.uds_runner import open_uds_runner
from adapters.settings.directories import make_private_directory
from adapters.settings.input_key import input_key
from adapters.settings.load import Settings
from adapters.settings.problem import StartupError
from adapters.structural.searching import open_structural_search
from adapters.tool_host.custom_tools import HostedTools
from codespace_es import policy
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.effect import open_effects
from codespace_es.command_handlers.instance_life import InstanceLife, living, quiet_caller
from codespace_es.command_handlers.serving_tools import CallServices
from codespace_es.command_handlers.starting import settle_at_start
from codespace_es.command_handlers.turns import FairTurns
from codespace_es.ports.clock_and_ids import Clock
from codespace_es.ports.custom_tools import NoCustomTools
from codespace_es.ports.effects import EffectRunner
from codespace_es.ports.fault_points import FaultHook, no_faults
from codespace_es.ports.kept_folds import KeptFolds
from codespace_es.ports.live_processes import LiveProcesses
from codespace_es.ports.locks import Held
from codespace_es.ports.log import (
    InstanceClosedError,
    LogMissingError,
    StoreUnavailableError,
    UnknownTopicError,
)
from codespace_es.ports.own_pushes import OwnPushes
from codespace_es.ports.remarks import Remarks
from codespace_es.ports.runner import Runner
from codespace_es.ports.structural_search import StructuralSearch
from codespace_es.ports.tool_host import NoToolHost
from codespace_es.ports.under_way import UnderWay
from codespace_es.ports.world import World
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller, Channel
from codespace_es.vocabulary.identifiers import InstanceId, RequestId

CHILD_DEFAULTS = {"LANG": "C.UTF-8", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""What keeps programs from waiting for somebody at a terminal. Source: contract A5."""

_CLOCK = SystemClock()

_SETTLING_SECONDS_MAX = 60.0
"""How long the settling at start waits for busy workspaces; whoever has their leases settles them."""


@dataclass(frozen=True, slots=True)
class OpenCodespace:
    """A codespace that is alive, for as long as its context manager is entered."""

    codespace: Codespace
    life: InstanceLife
    world: World
    log: StoredEventLog
    """The log as an adapter, to be looked at beside the serving."""


@asynccontextmanager
async def open_codespace(
    settings: Settings, *, transport: Transport, faults: FaultHook = no_faults, clock: Clock = _CLOCK
) -> AsyncIterator[OpenCodespace]:
    """Bring a codespace to life and keep it until the context is left. Faults and clock are a test's to give.

    The body is cancelled when the log can't be written any more: nothing can be acknowledged then.

    Raises:
        StartupError: a directory, a lock or the log can't be used.
        StoreUnavailableError: the log failed while the codespace was alive.
    """
    if settings.log_path is not None:
        make_private_directory(settings.log_path.parent)
    failures: list[str] = []
    is_alive = False
    try:
        with _single_error(), anyio.CancelScope() as scope:

            def end(reason: str) -> None:
                failures.append(reason)
                scope.cancel()

            instance_id = InstanceId(f"inst-{RandomIds().uuid()}")
            async with (
                log_of(settings, instance_id, faults, clock, end) as log,
                _own_lock(instance_id) as lock,
                _runner(settings, lock) as runner,
                open_structural_search(files_changed_max=settings.structural_files_max) as structural,
                open_tools(settings, transport) as tools,
                open_effects() as effects,
                _alive(
                    settings, transport,
                    _Made(instance_id, lock, log, runner, structural, effects, faults, clock, tools),
                ) as opened,
            ):
                is_alive = True
                yield opened
    except LogMissingError as error:
        raise StartupError(f"The server can't start: {error}; make one, once: codespace-es store init") from error
    except (CodespaceError, StoreUnavailableError, OSError) as error:
        if is_alive:
            raise
        raise StartupError(f"The server can't start: {_sentence(error)}") from error
    if failures:
        raise StoreUnavailableError(failures[0])


@asynccontextmanager
async def _own_lock(instance_id: InstanceId) -> AsyncIterator[OwnInstanceLock]:
    """Hold this instance's lock: as long as it is held, here or by the runner, this instance lives."""
    lock = FlockInstanceLocks(lock_directory_of_user()).take_own(instance_id)
    try:
        yield lock
    finally:
        lock.release()


def _runner(settings: Settings, lock: Held) -> AbstractAsyncContextManager[SpawnerRunner]:
    """Return a runner of this server's own, or one that was started elsewhere."""
    if settings.runner_socket is None:
        return open_spawner_runner(instance_lock=lock, processes_max=settings.max_processes)
    return open_uds_runner(settings.runner_socket, instance_lock=lock, processes_max=settings.max_processes)


@dataclass(frozen=True, slots=True)
class _Made:
    """What the way to life has made so far."""

    instance_id: InstanceId
    lock: OwnInstanceLock
    log: StoredEventLog
    runner: Runner
    structural: StructuralSearch
    effects: EffectRunner
    faults: FaultHook
    clock: Clock
    tools: HostedTools | None
    """None: whoever lives by this serves nobody."""


def _world(settings: Settings, transport: Transport, made: _Made) -> World:
    locks = lock_directory_of_user()
    return World(
        instance_id=made.instance_id,
        machine_id=settings.machine_id,
        new_file_mode=new_file_mode(),
        child_environment={"PATH": settings.command_path, **CHILD_DEFAULTS},
        private_paths=settings.private_paths,
        input_key=secrets.token_bytes(32) if settings.log_path is None else input_key(settings.data_directory),
        workspaces=settings.workspaces,
        log=made.log,
        files=DirectoryFilesByRoot(),
        structural=made.structural,
        patch_writer=ExchangePatchWriter(made.faults),
        instance_locks=FlockInstanceLocks(locks),
        leases=FlockWorkspaceLeases(locks, is_seen=made.lock.is_in_place),
        runner=made.runner,
        tool_host=made.tools or NoToolHost(),
        custom_tools=made.tools or NoCustomTools(),
        live=LiveProcesses(),
        under_way=UnderWay(),
        turns=FairTurns(),
        remarks=Remarks(),
        kept=KeptFolds(),
        own_pushes=OwnPushes(),
        is_shared=transport == "http",
        effects=made.effects,
        clock=made.clock,
        ids=RandomIds(),
        faults=made.faults,
    )


@asynccontextmanager
async def _alive(settings: Settings, transport: Transport, made: _Made) -> AsyncIterator[OpenCodespace]:
    """Record the instance's life; settle what the dead left beside it."""
    allow_many_descriptors()  # by now the runner has noted the limit that commands get
    world = _world(settings, transport, made)
    if transport != "cli":  # the operator's own hand, which serves nobody
        await _require_operator_alone(world)
    async with living(world, this_instance(settings, transport), _first_caller(world, transport)) as life:
        tasks: TaskGroup
        refusal: CodespaceError | None = None
        async with anyio.create_task_group() as tasks:
            if transport != "cli":  # a command line settles what it depends on, and nothing else
                tasks.start_soon(_settle, world)
            codespace = Codespace(world)
            if made.tools is not None:
                made.tools.begin(partial(CallServices, world), partial(orphan, world))
            try:
                yield OpenCodespace(codespace, life, world, made.log)
            except CodespaceError as error:
                refusal = error  # what the body was refused is no fault of the instance, which ends in good order
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await codespace.close(quiet_caller(world))
    if refusal is not None:
        raise refusal


async def _require_operator_alone(world: World) -> None:
    """Refuse operator approvals where a command of any workspace could grant by its right to the data directory.

    Raises:
        StartupError: naming the workspaces and the ways out. Source: decision 24.
    """
    strict = [each for each in world.workspaces.values() if each.approvals == "operator" and not each.operator_unsafe]
    running = [each for each in world.workspaces.values() if policy.allows(each, "exec")]
    if not strict or not running:
        return
    level = (await world.runner.sandbox()).level
    for workspace in running:
        if level < 3 or workspace.sandbox == "off":
            found = "its sandbox is off" if workspace.sandbox == "off" else f"here it is level {level}"
            raise StartupError(
                f"Workspace {strict[0].workspace_id!r}: approvals = 'operator' needs commands that can't reach the "
                f"data directory (bubblewrap, level 3), but for workspace {workspace.workspace_id!r} {found}. Install "
                "bubblewrap, or set operator_unsafe = true and know that a command can grant."
            )


def _first_caller(world: World, transport: Transport) -> Caller:
    channel: Channel = "mcp" if transport == "stdio" else transport
    return Caller(channel, RequestId(f"req-{world.ids.uuid()}"))


async def _settle(world: World) -> None:
    """Settle what dead servers left, as far as can be now; every answer that depends on the rest tries again."""
    try:
        with anyio.move_on_after(_SETTLING_SECONDS_MAX):
            await settle_at_start(world, quiet_caller(world))
    except (CodespaceError, StoreUnavailableError, UnknownTopicError, InstanceClosedError) as error:
        logging.getLogger(__name__).warning("What an earlier server left open can't be settled now: %s", error)


@contextmanager
def _single_error() -> Iterator[None]:
    """Let the one error that task groups have wrapped escape as itself. A lost log fails many tasks alike, as one."""
    try:
        yield
    except BaseExceptionGroup as group:
        errors = _errors_in(group)
        if len(errors) == 1 or all(isinstance(each, StoreUnavailableError) for each in errors):
            raise errors[0] from None
        raise


def _errors_in(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    nested = [_errors_in(each) if isinstance(each, BaseExceptionGroup) else [each] for each in group.exceptions]
    return [error for errors in nested for error in errors]


def _sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."
