"""`resolve`: apply or discard the newest pending action of a session.

1. Which stack: see `choosing`. One resolve at a time on it, in order of arrival; what the dead have left is settled.
2. An id that was resolved already is answered with its outcome; else the action is on top, or nothing is done.
3. Apply is held where the operator wants that. Staged edits are a patch whose operation begins and ends the resolve; a
   callback runs after its resolve is on record, and what it has staged is written as one operation when it returns.
4. What is answered is what the log says of the action then.

Source: the pending-actions paper; decisions 25, 28, 30, 31.
"""

from anyio import sleep

from codespace_es import policy
from codespace_es.aggregates.pending.rules import require_top
from codespace_es.aggregates.pending.state import Resolving, find
from codespace_es.command_handlers.applying import apply
from codespace_es.command_handlers.choosing import position_of
from codespace_es.command_handlers.discarding import discard
from codespace_es.command_handlers.holding import hold_if_required
from codespace_es.command_handlers.orphaning import require_callback_here, settled_stack
from codespace_es.command_handlers.outcomes import find_end, history_to_end, tell_end
from codespace_es.command_handlers.resolve_request import (
    Resolve,
    ResolveAction,
    find_session,
    held_apply,
    require_bounded,
)
from codespace_es.command_handlers.stacks import ReadStack, Session, read_stack
from codespace_es.ports.world import World
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ApprovalId, OperationId

_PATIENCE_SECONDS = 30.0
"""How long a resolve of another server is waited for, before the caller is told that it goes on."""

_MOVED_CODES = (ErrorCode.NO_PENDING_ACTION, ErrorCode.PENDING_ACTION_MISMATCH, ErrorCode.WORKSPACE_BUSY)


async def resolve_action(
    world: World, command: ResolveAction, caller: Caller, *, resumed: ApprovalId | None = None
) -> ResolveResult:
    """Return how the action was resolved, now or before; `resumed` is the hold that allows it.

    Raises:
        CodespaceError: NO_PENDING_ACTION, PENDING_ACTION_MISMATCH, APPROVAL_REQUIRED, STALE_PREVIEW, APPLY_FAILED,
            WORKSPACE_BUSY, RESOURCE_QUEUE_FULL, UNAUTHORIZED, INVALID_ARGUMENT, WORKSPACE_NOT_FOUND.
    """
    require_bounded(command)
    session = await find_session(world, command)
    async with world.turns.of(session.stream_id):
        while True:
            stack = await _free_stack(world, session, caller)
            if resumed is None:
                replay = await _replay(world, stack, command)
                if replay is not None:
                    return replay
            try:
                action = require_top(stack.state, command.id)
            except CodespaceError as error:
                raise (error if resumed is None else _as_resumed(error, command)) from error
            if command.action == "apply":
                require_callback_here(world, stack, action, command.reason)
            resolve = Resolve(
                session, action, command, caller, stack.push_of(action.action_id).position,
                OperationId(f"op-{world.ids.uuid()}") if command.action == "apply" else None, resumed,
            )
            try:
                return await _carry_out(world, resolve)
            except CodespaceError as error:
                if error.code not in _MOVED_CODES or not await _has_moved(world, resolve):
                    raise


async def _free_stack(world: World, session: Session, caller: Caller) -> ReadStack:
    """Return the stack once nobody resolves on it, or as it is after a while."""
    started = world.clock.monotonic()
    while True:
        stack = await settled_stack(world, session, caller)
        if not isinstance(stack.state, Resolving) or world.clock.monotonic() - started > _PATIENCE_SECONDS:
            return stack
        await sleep(limits.LEASE_POLL_MS_MAX / 1000)


async def _replay(world: World, stack: ReadStack, command: ResolveAction) -> ResolveResult | None:
    """Return the outcome of an action that was resolved already; None for one that wasn't. Raises its error."""
    if command.id is None or find(stack.state, command.id) is not None:
        return None
    begun_at = await position_of(world, command.id)
    if begun_at is None:
        return None
    history, end = await history_to_end(world.log, stack.folded.stream_id, begun_at, command.id)
    return None if end is None else await tell_end(world.log, history, end, is_replayed=True)


def _as_resumed(error: CodespaceError, command: ResolveAction) -> CodespaceError:
    """Return the refusal of a resume whose action is on top no more, empty stack or not. Source: decision 25."""
    if error.code is not ErrorCode.NO_PENDING_ACTION:
        return error
    return CodespaceError(
        ErrorCode.PENDING_ACTION_MISMATCH, f"{command.id} isn't pending any more.", detail={"pending": []}
    )


async def _carry_out(world: World, resolve: Resolve) -> ResolveResult:
    if resolve.command.action == "discard":
        return await discard(world, resolve)
    policy.require(resolve.session.workspace, "write")
    if resolve.resumed is None:
        await hold_if_required(world, held_apply(resolve.session, resolve.action, resolve.command), resolve.caller)
    return await apply(world, resolve)


async def _has_moved(world: World, resolve: Resolve) -> bool:
    """Return whether another server has resolved, or begun with, what was on top: then it is decided again.

    What this very resolve has given back isn't that.
    """
    history = await world.log.read_stream(resolve.session.stream_id, since=resolve.since)
    is_own = resolve.effect_id is not None
    if is_own and find_end(history, resolve.action.action_id, effect_id=resolve.effect_id) is not None:
        return False
    stack = await read_stack(world, resolve.session.stream_id)
    is_on_top = not isinstance(stack.state, Resolving) and stack.state.actions[-1:] == (resolve.action,)
    return not is_on_top
