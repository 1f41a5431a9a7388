"""Watching a command to its end: the time limit, then the exit with what is kept of its output, then the lease.

A task of its own for each command, which outlives whoever asked for it. The lease is free exactly when the exit is on
record; if this server dies, when the tree is gone, since the runner holds a duplicate. Source: decisions 20, 21.
"""

from dataclasses import dataclass

from anyio import move_on_after

from codespace_es.aggregates.process import (
    PROCESS,
    EndCause,
    ProcessEndRequested,
    ProcessExited,
    RecordExit,
    RequestEnd,
    Running,
)
from codespace_es.folding import append_decided, fold
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.locks import Held
from codespace_es.ports.log import NewBody
from codespace_es.ports.runner import LiveProcess, ProcessEnd, RunnerLostError
from codespace_es.ports.world import World
from codespace_es.projections.process_status import termination_of
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.event import Body, Caller
from codespace_es.vocabulary.identifiers import ProcessId, StreamId
from codespace_es.vocabulary.workspace import Workspace

SIGTERM = 15


@dataclass(frozen=True, slots=True)
class Watched:
    """A command that was let go, or may have been."""

    process_id: ProcessId
    workspace: Workspace
    timeout_ms: int
    """0: no limit."""
    lease: Held | None
    caller: Caller


async def watch(world: World, watched: Watched, handle: LiveProcess | None) -> None:
    """Wait for the end, within the time limit, and put it on record. `handle` None: the runner was lost at go."""
    try:
        end = None if handle is None else await _ended(world, watched, handle)
        world.faults(FaultPoint.EXEC_ENDED)
        await record_exit(world, watched.process_id, end, watched.caller)
        world.faults(FaultPoint.EXEC_EXIT_RECORDED)
    finally:
        world.live.forget(watched.process_id)
        if watched.lease is not None:
            watched.lease.release()


async def _ended(world: World, watched: Watched, handle: LiveProcess) -> ProcessEnd | None:
    """Return how it ended; None if that is lost with its runner."""
    try:
        with move_on_after(watched.timeout_ms / 1000 if watched.timeout_ms else None):
            return await handle.wait()
        timer = Caller("timer", watched.caller.request_id, watched.caller.client)
        await request_end(
            world, watched.process_id, handle, cause="timeout", signal=SIGTERM, grace_ms=limits.TIMEOUT_GRACE_MS,
            caller=timer,
        )
        return await handle.wait()
    except RunnerLostError:
        return None


async def request_end(
    world: World, process_id: ProcessId, handle: LiveProcess, *, cause: EndCause, signal: int, grace_ms: int,
    caller: Caller,
) -> None:
    """Put on record who wants its end, then ask for it. The first cause stands; a leader that has ended needs none."""
    if handle.leader_status is None:
        requested = ProcessEndRequested(cause=cause, signal=signal, grace_ms=grace_ms)
        await append_decided(world.log, PROCESS, process_id, RequestEnd(requested), caller)
    await handle.end(signal=signal, grace_ms=grace_ms)


async def record_exit(world: World, process_id: ProcessId, end: ProcessEnd | None, caller: Caller) -> None:
    """Append the exit, once; `end` None: nothing is known of it, and its output is lost."""
    state = (await fold(world.log, PROCESS, process_id)).state
    if not isinstance(state, Running):
        return
    exited = _unknown_exit() if end is None else _exit(end, state.end_requested)
    kept = (end.tail, end.head) if end else ()
    bodies = tuple(NewBody(StreamId(process_id), "output", content) for content in kept if content)
    await append_decided(world.log, PROCESS, process_id, RecordExit(exited), caller, bodies=bodies)


def _unknown_exit() -> ProcessExited:
    return ProcessExited(termination="unknown", output_bytes=0, retained_from=0, swept=0, is_output_cut=False)


def _exit(end: ProcessEnd, requested: ProcessEndRequested | None) -> ProcessExited:
    termination, exit_code, signal = termination_of(end.wait_status, requested)
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
