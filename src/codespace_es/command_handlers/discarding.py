"""Discarding an action: it is over, whatever its `reject` says; a hold of its apply is denied in the same append.

Source: the pending-actions paper, *resolve*; decision 25; event catalogue, section 4.
"""

from codespace_es.aggregates.approval import APPROVAL, Granted, Parked, Pending, WithdrawApproval
from codespace_es.aggregates.pending.events import EDITS_HANDLER, PendingResolveStarted
from codespace_es.command_handlers.calling_back import answer_from_log, call_back, end_resolve, said_by
from codespace_es.command_handlers.concluding import Discarded, conclude
from codespace_es.command_handlers.consuming import AppendPart, ending
from codespace_es.command_handlers.resolve_request import Resolve
from codespace_es.command_handlers.stacks import read_stack
from codespace_es.command_handlers.staging import extra_body
from codespace_es.folding import fold
from codespace_es.ports.log import Append, NewEvent, VersionConflictError
from codespace_es.ports.tool_host import ActionCall, CallbackRaisedError
from codespace_es.ports.world import World
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Digest, Fault
from codespace_es.vocabulary.identifiers import StreamId


async def discard(world: World, resolve: Resolve) -> ResolveResult:
    """Return how the action was discarded. Raises NO_PENDING_ACTION, PENDING_ACTION_MISMATCH, WORKSPACE_BUSY."""
    if resolve.action.handler != EDITS_HANDLER:
        return await call_back(world, resolve, lambda call: _reject(world, resolve, call))
    return await world.effects.run(lambda: _discard_at_once(world, resolve))


async def _discard_at_once(world: World, resolve: Resolve) -> ResolveResult:
    stream_id, command = resolve.session.stream_id, resolve.command
    extra = () if command.extra is None else (extra_body(stream_id, command.extra),)
    started = PendingResolveStarted(
        action_id=resolve.action.action_id, action="discard", reason=command.reason,
        extra=extra[0].body if extra else None,
    )
    while True:
        stack = await read_stack(world, stream_id)
        part = conclude(stack.folded, Discarded(), started=started).part
        hold = await withdrawal(world, resolve)
        append = Append((*part.events, *hold.events), (*part.bodies, *extra), hold.scrubbed)
        try:
            await world.log.append(append, resolve.caller)
        except VersionConflictError:
            continue
        return await answer_from_log(world, resolve)


async def _reject(world: World, resolve: Resolve, call: ActionCall) -> ResolveResult:
    """Run `reject`; what it raises changes nothing of the discard, and is told."""
    end = Discarded()
    try:
        returned = await world.tool_host.reject(call)
    except CallbackRaisedError as error:
        failed = CodespaceError(ErrorCode.APPLY_FAILED, f"Reject failed: {error.message}")
        end = Discarded(error=Fault.of(failed))
    else:
        if returned is not None and (returned.text or returned.details is not None):
            end = Discarded(said_by(returned))
    return await end_resolve(world, resolve, end, more=lambda: withdrawal(world, resolve))


async def withdrawal(world: World, resolve: Resolve) -> AppendPart:
    """Return what ends the holds of an apply that isn't wanted any more. A resume on its way finds the action gone."""
    events: list[NewEvent] = []
    scrubbed: list[tuple[Digest, StreamId]] = []
    for item in await world.log.open_items(kind="approval", workspace_key=resolve.session.workspace.key):
        approval = await fold(world.log, APPROVAL, item.stream_id)
        state = approval.state
        if not isinstance(state, Pending | Granted | Parked) or state.created.action_id != resolve.action.action_id:
            continue
        part = await ending(world.log, approval, WithdrawApproval("Its action was discarded."))
        events.extend(part.events)
        scrubbed.extend(part.scrubbed)
    return AppendPart(tuple(events), (), tuple(scrubbed))
