"""Watching a command to its end: the time limit, then the exit with what is kept of its output, then the lease.

A task of its own for each command, which outlives whoever asked for it. The lease is free exactly when the exit is on
record; if this server dies, when the tree is gone, since the runner holds a duplicate. If the runner is lost instead,
its trees are ended, and the exit is recorded only once they are. A log that can't be written for the moment (a full
disk, somebody's long lock) is waited for: the command is over, or goes on, all the same. Source: decisions 18, 20, 21.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from anyio import move_on_after, sleep

from codespace_es.aggregates.process import (
    PROCESS,
    EndCause,
    ProcessEndRequested,
    ProcessExited,
    ProcessSpawned,
    RecordExit,
    RequestEnd,
    Running,
)
from codespace_es.folding import append_decided, fold
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.live_processes import Living
from codespace_es.ports.locks import Held
from codespace_es.ports.log import Append, NewBody, StoreUnavailableError, VersionConflictError
from codespace_es.ports.runner import LiveProcess, Orphan, ProcessEnd, RunnerLostError
from codespace_es.ports.world import World
from codespace_es.projections.process_status import termination_of
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Body, Caller
from codespace_es.vocabulary.identifiers import ProcessId, StreamId
from codespace_es.vocabulary.workspace import Workspace

SIGTERM = 15
_REST_WAIT_MS = 1_000
_LOG_RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Watched:
    """A command that was let go, or may have been."""

    process_id: ProcessId
    workspace: Workspace
    spawned: ProcessSpawned
    lease: Held | None
    caller: Caller


async def watch(world: World, watched: Watched, living: Living | None) -> None:
    """Wait for the end, within the time limit, and put it on record. `living` None: the runner was lost at go."""
    lease = watched.lease
    began = world.clock.monotonic()
    try:
        try:
            if living is None:
                raise RunnerLostError("The runner was lost at go.", is_dispatched=True)
            end: ProcessEnd | None = await _ended(world, watched, living)
        except RunnerLostError:
            lease = await _outlive_tree(world, watched)
            duration_ms = round((world.clock.monotonic() - began) * 1000)
            end = None if living is None else await _what_was_seen(living.handle, duration_ms)
        world.faults(FaultPoint.EXEC_ENDED)
        await _until_written(world, lambda: _record_end(world, watched, living, end))
        world.faults(FaultPoint.EXEC_EXIT_RECORDED)
    finally:
        world.live.forget(watched.process_id)
        if lease is not None:
            lease.release()


async def _record_end(world: World, watched: Watched, living: Living | None, end: ProcessEnd | None) -> None:
    if living is None:
        await record_exit(world, watched.process_id, end, watched.caller)
    else:
        async with living.turn:
            await record_exit(world, watched.process_id, end, watched.caller)


async def _until_written(world: World, write: Callable[[], Awaitable[None]]) -> None:
    """Repeat `write` while the log can't be written for the moment.

    Raises:
        StoreUnavailableError: it never will be, or this server ends and can't wait.
    """
    while True:
        try:
            await write()
        except StoreUnavailableError as error:
            if error.is_final or world.live.is_closing:
                raise
            await sleep(_LOG_RETRY_SECONDS)
        else:
            return


async def _ended(world: World, watched: Watched, living: Living) -> ProcessEnd:
    """Return how it ended. Raises RunnerLostError."""
    timer = replace(watched.caller, channel="timer")
    if world.live.is_closing:
        await request_end(
            world, watched.process_id, living, cause="shutdown", signal=SIGTERM, grace_ms=limits.SHUTDOWN_GRACE_MS,
            caller=timer,
        )
    timeout_ms = watched.spawned.request.timeout_ms
    if not timeout_ms:
        return await living.handle.wait()
    with move_on_after(timeout_ms / 1000):
        return await living.handle.wait()
    await _until_written(world, lambda: request_end(
        world, watched.process_id, living, cause="timeout", signal=SIGTERM, grace_ms=limits.TIMEOUT_GRACE_MS,
        caller=timer,
    ))
    return await living.handle.wait()


async def _outlive_tree(world: World, watched: Watched) -> Held | None:
    """Return the lease anew, once the tree of a lost runner is gone; its duplicate of the lease fell with that."""
    await world.runner.end_orphan(orphan_of(watched.process_id, watched.spawned))
    if watched.lease is None:
        return None
    watched.lease.release()
    while True:
        try:
            return await world.leases.acquire(watched.workspace.key, refuse=_no_refusal, on_wait=_no_notice)
        except CodespaceError:  # the queue is full, of calls that are all refused while this command is on record
            await sleep(limits.LEASE_POLL_MS_MAX / 1000)


async def _no_refusal() -> None:
    return None


async def _no_notice(_seconds: float) -> None:
    return None


def orphan_of(process_id: ProcessId, spawned: ProcessSpawned) -> Orphan:
    """Return by what the system knows a command whose runner is gone."""
    return Orphan(process_id, spawned.pid, spawned.started_ticks, spawned.boot_id, spawned.pid_namespace)


async def _what_was_seen(handle: LiveProcess, duration_ms: int) -> ProcessEnd:
    """Return what is known of a command whose runner was lost: its output, and its status if that came before."""
    here = handle.peek()
    while not here.is_end:
        await handle.read(here.total, wait_ms=_REST_WAIT_MS, bytes_max=1)
        here = handle.peek()
    kept = here.total - here.retained_from
    tail = (await handle.read(here.retained_from, wait_ms=0, bytes_max=kept)).content if kept else b""
    return ProcessEnd(
        wait_status=handle.leader_status, duration_ms=duration_ms, swept=0, is_output_cut=False,
        output_bytes=here.total, retained_from=here.retained_from, tail=tail, head=b"",
    )


async def request_end(
    world: World, process_id: ProcessId, living: Living, *, cause: EndCause, signal: int, grace_ms: int,
    caller: Caller,
) -> None:
    """Put on record who wants its end, then ask for it. The first cause stands; a leader that has ended needs none.

    Raises:
        RunnerLostError: so it ends anyway.
    """
    async with living.turn:
        if living.handle.leader_status is None and living.end_cause is None and not living.recorded.is_set():
            requested = ProcessEndRequested(cause=cause, signal=signal, grace_ms=grace_ms)
            await append_decided(world.log, PROCESS, process_id, RequestEnd(requested), caller)
            living.end_cause = cause  # only what is on record: a request that could not be appended was none
    await living.handle.end(signal=signal, grace_ms=grace_ms)


async def record_exit(world: World, process_id: ProcessId, end: ProcessEnd | None, caller: Caller) -> None:
    """Append the exit, once; `end` None: nothing is known of it, and its output is lost."""
    kept = (end.tail, end.head) if end else ()
    bodies = tuple(NewBody(StreamId(process_id), "output", content) for content in kept if content)
    while True:
        folded = await fold(world.log, PROCESS, process_id)
        if not isinstance(folded.state, Running):
            return
        exited = unknown_exit() if end is None else _exit(end, folded.state.end_requested)
        try:
            await world.log.append(Append(folded.decide(RecordExit(exited)), bodies), caller)
        except VersionConflictError:
            continue
        return


def unknown_exit() -> ProcessExited:
    """Return the end of a command whose server is dead: nothing is known of it, and its output is lost."""
    return ProcessExited(termination="unknown", output_bytes=0, retained_from=0, swept=0, is_output_cut=False)


def _exit(end: ProcessEnd, requested: ProcessEndRequested | None) -> ProcessExited:
    termination, exit_code, signal = termination_of(end.wait_status, requested.cause if requested else None)
    return ProcessExited(
        termination=termination,
        exit_code=exit_code,
        signal=signal,
        output_bytes=end.output_bytes,
        retained_from=end.retained_from,
        output_tail=_body(end.tail),
        output_head=_body(end.head),
        duration_ms=end.duration_ms,
        swept=end.swept,
        is_output_cut=end.is_output_cut,
    )


def _body(content: bytes) -> Body | None:
    return NewBody(StreamId("-"), "output", content).body if content else None
