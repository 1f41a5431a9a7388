"""Parking: a hold whose resume ended before anything was done may be resumed again.

Found queued by a dead server, or by this one without a resume of it under way: nothing of it has run, since whatever
begins an effect takes the hold out of this state in the same append. Source: event catalogue section 5.
"""

from collections.abc import Sequence

from codespace_es.admission import lives, take_dead
from codespace_es.aggregates.approval import APPROVAL, ParkApproval, Queued
from codespace_es.command_handlers.ending import as_recovery
from codespace_es.command_handlers.holding import expire_if_due
from codespace_es.folding import Folded
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Caller, Fault, RecordedEvent
from codespace_es.vocabulary.identifiers import ApprovalId, InstanceId, StreamId, WorkspaceKey

_LEFT = Fault(code=ErrorCode.INTERNAL, message="The server that resumed it ended before anything was done.")


async def park_if_left(world: World, approval_id: ApprovalId, caller: Caller) -> None:
    """Park the hold if it is queued and whoever queued it can't go on."""
    while True:
        recorded = await world.log.read_stream(StreamId(approval_id))
        if not isinstance(APPROVAL.fold_recorded(recorded), Queued):
            return
        owner = recorded[-1].envelope.instance_id
        if owner == world.instance_id:
            if approval_id in world.under_way or await _park(world, approval_id, recorded, caller):
                return
            continue
        proof_of_death = await take_dead(world, owner)
        if proof_of_death is None:
            return
        try:
            if await _park(world, approval_id, recorded, caller):
                return
        finally:
            proof_of_death.release()


async def tidy_holds(world: World, key: WorkspaceKey, caller: Caller) -> None:
    """Park every hold of a workspace that a dead server left queued, and expire, with its arguments, what is due."""
    for item in await world.log.open_items(kind="approval", workspace_key=key):
        approval_id = ApprovalId(item.stream_id)
        if not await expire_if_due(world, approval_id, caller):
            await park_if_left(world, approval_id, caller)


async def is_left(world: World, approval_id: ApprovalId, owner: InstanceId) -> bool:
    """Return whether a resume that `owner` has begun can't go on any more."""
    return approval_id not in world.under_way if owner == world.instance_id else not await lives(world, owner)


async def _park(
    world: World, approval_id: ApprovalId, recorded: Sequence[RecordedEvent], caller: Caller
) -> bool:
    """Append it behind exactly what was read: a resume that began meanwhile is somebody else's. False: look again."""
    try:
        folded = Folded(APPROVAL, StreamId(approval_id), len(recorded), APPROVAL.fold_recorded(recorded))
        await world.log.append(Append(folded.decide(ParkApproval(_LEFT))), as_recovery(caller))
    except VersionConflictError:
        return False
    return True
