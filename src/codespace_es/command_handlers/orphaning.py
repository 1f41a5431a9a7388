"""Settling a stack: a resolve that nobody goes on with is ended, and closures that are gone are popped.

Done before an answer depends on the stack, and at start. A resolve whose operation is open is closed with it, under
the workspace's lease; one that has none wrote nothing, so its action returns, unless its callback had begun what can't
be taken back, or was a closure of a server that is dead. Source: event catalogue, section 5; decision 32.
"""

from collections.abc import Sequence
from contextlib import suppress

from anyio import move_on_after

from codespace_es.admission import lives
from codespace_es.aggregates.operation import OPERATION, Minted
from codespace_es.aggregates.pending.events import PendingActionPopped, PendingActionPushed, PendingResolveStarted
from codespace_es.aggregates.pending.rules import OrphanActions
from codespace_es.aggregates.pending.state import Resolving, find
from codespace_es.command_handlers.concluding import Discarded, NotApplied, apply_failed, conclude
from codespace_es.command_handlers.ending import as_recovery
from codespace_es.command_handlers.settling import settle_when_free
from codespace_es.command_handlers.stacks import ReadStack, Session, read_stack
from codespace_es.folding import fold
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ActionId, InstanceId, StreamId

_PATIENCE_SECONDS = 2.0
_LEFT = "the server that applied it ended before anything was written."
_LEFT_BEGUN = "the server that applied it ended, and what its callback had begun can't be established."
_LOST = "the server that had its callback is gone."
_ELSEWHERE = "its callback is in another server, which lives: apply it there, or discard it."


async def settled_stack(world: World, session: Session, caller: Caller, *, is_passing: bool = False) -> ReadStack:
    """Return the stack of a session, without what the dead have left half-way in it; `is_passing`: see `read_stack`."""
    while True:
        stack = await read_stack(world, session.stream_id, is_passing=is_passing)
        if await _is_settled(world, session, stack, caller):
            return stack


def require_callback_here(world: World, stack: ReadStack, action: PendingActionPushed, reason: str) -> None:
    """Pass unless the callback is a closure of another server: a settled stack has only those of servers that live.

    Raises:
        CodespaceError: APPLY_FAILED with the outcome `returned`; nothing is begun, so the other server can apply it.
    """
    if action.handler is not None or stack.pusher(action) == world.instance_id:
        return
    started = PendingResolveStarted(action_id=action.action_id, action="apply", reason=reason)
    answer = conclude(stack.folded, NotApplied(apply_failed(_ELSEWHERE), "returned"), started=started).answer
    assert isinstance(answer, CodespaceError), "what returns is told as an error"
    raise answer


async def require_appliable_here(world: World, session: Session, action_id: ActionId, caller: Caller) -> None:
    """Pass unless another server has the callback of an action that isn't over: what is refused so can be asked there.

    Raises:
        CodespaceError: APPLY_FAILED with the outcome `returned`.
    """
    stack = await settled_stack(world, session, caller)
    action = find(stack.state, action_id)
    if action is None or action.handler is not None or stack.pusher(action) == world.instance_id:
        return
    raise apply_failed(_ELSEWHERE).with_detail(id=action_id, label=action.label, outcome="returned")


async def orphan_actions(
    world: World, session: Session, action_ids: Sequence[ActionId], caller: Caller
) -> None:
    """Pop actions whose closures are gone, and have the next answer of the session say so."""
    while True:
        stack = await read_stack(world, session.stream_id)
        events = stack.folded.decide(OrphanActions(tuple(action_ids)))
        if not events:
            return
        try:
            await world.log.append(Append(events), as_recovery(caller))
        except VersionConflictError:
            continue
        gone = {each.event.action_id for each in events if isinstance(each.event, PendingActionPopped)}
        for action in stack.state.unresolved:
            if action.action_id in gone:
                _remark(world, session.stream_id, action)
        return


def _remark(world: World, stream_id: StreamId, action: PendingActionPushed) -> None:
    world.tool_host.forget(action.action_id)
    world.remarks.add(action.workspace_key, stream_id, Notice(
        kind="pending_action_orphaned",
        message=f"{action.action_id} ({action.label}) is over, unresolved: {_LOST} Preview it again if it is wanted.",
    ))


async def _is_settled(world: World, session: Session, stack: ReadStack, caller: Caller) -> bool:
    """Settle one thing; return whether nothing was left to do. False: look again."""
    gone = [
        each.action_id for each in stack.state.actions
        if each.handler is None and await _is_dead(world, stack.pusher(each))
    ]
    if gone:
        await orphan_actions(world, session, gone, caller)
        return False
    state = stack.state
    if not isinstance(state, Resolving) or not await _is_left(world, state.action.action_id, stack.resolver()):
        return True
    effect_id = state.started.effect_id
    operation = None if effect_id is None else (await fold(world.log, OPERATION, effect_id)).state
    if isinstance(operation, Minted):
        with move_on_after(_PATIENCE_SECONDS):
            await settle_when_free(world, session.workspace, caller)
        after = await read_stack(world, session.stream_id)
        return isinstance(after.state, Resolving)  # what can't be closed now stays open; whoever asks is told so
    await _end_left(world, stack, state, caller)
    return False


async def _end_left(world: World, stack: ReadStack, state: Resolving, caller: Caller) -> None:
    """End a resolve that has written nothing."""
    end: Discarded | NotApplied
    if state.started.action == "discard":
        end = Discarded()
    elif state.has_begun:
        end = NotApplied(apply_failed(_LEFT_BEGUN), "failed")
    elif state.action.handler is None and await _is_dead(world, stack.pusher(state.action)):
        end = NotApplied(apply_failed(_LOST), "orphaned")
        _remark(world, stack.folded.stream_id, state.action)
    else:
        end = NotApplied(apply_failed(_LEFT), "returned")
    part = conclude(stack.folded, end).part
    with suppress(VersionConflictError):  # somebody else has ended it
        await world.log.append(Append(part.events, part.bodies), as_recovery(caller))


async def _is_left(world: World, action_id: ActionId, owner: InstanceId) -> bool:
    """Return whether a resolve that `owner` has begun can't go on any more."""
    return action_id not in world.under_way if owner == world.instance_id else await _is_dead(world, owner)


async def _is_dead(world: World, instance_id: InstanceId) -> bool:
    return instance_id != world.instance_id and not await lives(world, instance_id)
