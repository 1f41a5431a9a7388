"""Settling: closing what a dead instance left open, by the hashes on disk alone. Nothing is ever applied here.

Run when a workspace's lease is taken, before anything else is done with it; at start for every workspace of this
server (`starting`); and when an answer depends on an open item. Always with the workspace's lease in hand, and with the
dead instance's lock, which is the proof of its death. An open operation of our own while we hold the lease is one whose
effect escaped: it is settled alike. Source: event catalogue section 5; decisions 0, 2, 14.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby

from anyio import sleep, to_thread

from codespace_es.admission import take_dead, take_lease
from codespace_es.aggregates.instance import INSTANCE, InstanceRecovered, RecoverInstance
from codespace_es.aggregates.operation import OPERATION, Minted
from codespace_es.aggregates.process import PROCESS, Running
from codespace_es.aggregates.workspace import WORKSPACE, Bound
from codespace_es.command_handlers.ending import as_recovery, close_operation, unsettled
from codespace_es.command_handlers.watching import orphan_of, record_exit
from codespace_es.folding import fold
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.locks import Held
from codespace_es.ports.log import Append, OpenItem
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import InstanceId, OperationId, ProcessId
from codespace_es.vocabulary.workspace import Workspace

_OTHER_RECOVERER_SECONDS = 2.0
"""How long somebody else may hold a dead one's lock while settling another workspace of it."""

_SETTLED_KINDS = ("operation", "process")


async def settle_workspace(world: World, workspace: Workspace, caller: Caller) -> None:
    """Close what dead instances left open in `workspace`, whose lease the caller holds.

    Raises:
        CodespaceError: WORKSPACE_BUSY if an operation on these files can't be closed now, so that nothing new may be
            built on what it left: its owner lives, or the disk refuses the undo.
    """
    items = await world.log.open_items(kind=_SETTLED_KINDS, workspace_key=workspace.key)
    if not items or not await _is_recorded_directory(world, workspace):
        return
    for instance_id, group in groupby(sorted(items, key=_by_instance), key=_by_instance):
        owned = list(group)
        operations = [OperationId(item.stream_id) for item in owned if item.kind == "operation"]
        if instance_id == world.instance_id:
            await _close_all(world, operations, workspace, caller)
            continue
        proof_of_death = await _take_dead(world, instance_id, is_patient=bool(operations))
        if proof_of_death is None:
            if operations:
                raise unsettled(operations[0], workspace, f"its server {instance_id} lives")
            continue
        try:
            world.faults(FaultPoint.SETTLE_LOCKED)
            operations_closed, resolves_closed = await _close_all(world, operations, workspace, caller)
            closed = InstanceRecovered(
                operations_closed=operations_closed,
                processes_closed=await _close_processes(world, owned, caller),
                resolves_closed=resolves_closed,
            )
            await recover_instance(world, instance_id, closed, caller)
        finally:
            proof_of_death.release()


async def settle_when_free(world: World, workspace: Workspace, caller: Caller) -> None:
    """Settle `workspace` under its lease; leave it to whoever holds that while it is busy."""
    try:
        lease = await take_lease(world, workspace, caller)
    except CodespaceError:
        return  # busy or crowded: whoever has the lease settles, or has settled

    async def settle() -> None:
        try:
            with suppress(CodespaceError):  # what can't be closed stays open, and every later mutation says so
                await settle_workspace(world, workspace, caller)
        finally:
            lease.release()

    await world.effects.run(settle)


def _by_instance(item: OpenItem) -> InstanceId:
    return item.instance_id


async def _take_dead(world: World, instance_id: InstanceId, *, is_patient: bool) -> Held | None:
    """Return the lock of a dead instance; None if it lives.

    Another recoverer may hold it for a moment: wait a bit where the answer matters.
    """
    started = world.clock.monotonic()
    while True:
        held = await take_dead(world, instance_id)
        if held is not None or not is_patient or world.clock.monotonic() - started > _OTHER_RECOVERER_SECONDS:
            return held
        await sleep(limits.LEASE_POLL_MS_MAX / 1000)


async def _is_recorded_directory(world: World, workspace: Workspace) -> bool:
    """Return whether the root is the very directory that was on record when its items were minted."""
    bound = (await fold(world.log, WORKSPACE, workspace.key)).state
    try:
        identity = await to_thread.run_sync(world.files.open(workspace.root).identity)
    except CodespaceError:
        return False
    return (
        isinstance(bound, Bound)
        and bound.binding.root == workspace.root
        and (bound.binding.device, bound.binding.inode) == (identity.device, identity.inode)
    )


async def _close_all(
    world: World, operations: Sequence[OperationId], workspace: Workspace, caller: Caller
) -> tuple[int, int]:
    """Close each open operation; return how many, and how many resolves of pending actions ended with them.

    Raises:
        CodespaceError: WORKSPACE_BUSY for the first that stays open.
    """
    closed = resolves = 0
    for operation_id in operations:
        state = (await fold(world.log, OPERATION, operation_id)).state
        if isinstance(state, Minted):
            await close_operation(world, operation_id, state.minted, workspace, caller)
            closed += 1
            resolves += state.minted.action_id is not None
    return closed, resolves


async def _close_processes(world: World, owned: Sequence[OpenItem], caller: Caller) -> int:
    """Record the end of commands whose server is dead: how they ended can't be known. Return how many.

    The runner held the instance's lock, and what it ran ends with it; unless all of it was killed at one blow.
    """
    commands = [ProcessId(item.stream_id) for item in owned if item.kind == "process"]
    for process_id in commands:
        state = (await fold(world.log, PROCESS, process_id)).state
        if isinstance(state, Running):
            await world.runner.end_orphan(orphan_of(process_id, state.spawned))
        await record_exit(world, process_id, None, as_recovery(caller))
    return len(commands)


async def recover_instance(
    world: World, instance_id: InstanceId, closed: InstanceRecovered, caller: Caller
) -> None:
    """Close the stream of a dead instance that has nothing open any more. Its lock is in hand."""
    items = await world.log.open_items(instance_id=instance_id)
    if not items or any(item.kind in _SETTLED_KINDS for item in items):
        return
    events = (await fold(world.log, INSTANCE, instance_id)).decide(RecoverInstance(closed))
    if events:
        await world.log.append(Append(events), as_recovery(caller))
        world.faults(FaultPoint.INSTANCE_RECOVERED)
