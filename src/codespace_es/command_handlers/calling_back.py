"""Calling back: the resolve is put on record, the tool host runs the callback, the end is put on record.

Nobody else can have the action meanwhile, here or in another server. Before a callback does what can't be taken back
that is recorded too (`begin_effect`), so that neither an error nor a crash makes anybody do it twice.
Source: decisions 30 to 32; event catalogue, section 5.
"""

from collections.abc import Awaitable, Callable

from codespace_es.aggregates.pending.events import PendingActionPopped
from codespace_es.aggregates.pending.rules import BeginEffect
from codespace_es.aggregates.pending.state import Resolving
from codespace_es.command_handlers.concluding import Applied, Conclusion, Discarded, NotApplied, Said, conclude
from codespace_es.command_handlers.consuming import BLOCKED_CODES, NOTHING, AppendPart, consumption
from codespace_es.command_handlers.orphaning import settled_stack
from codespace_es.command_handlers.outcomes import find_end, read_json, tell_end
from codespace_es.command_handlers.resolve_request import Resolve
from codespace_es.command_handlers.stacks import Session, read_stack
from codespace_es.command_handlers.staging import LoggedPendingActions
from codespace_es.command_handlers.waiting import wait_aloud
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.pending_actions import Claim
from codespace_es.ports.tool_host import ActionCall, CallbackResult
from codespace_es.ports.world import World
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ActionId

Run = Callable[[ActionCall], Awaitable[ResolveResult]]
More = Callable[[], Awaitable[AppendPart]]
"""What else ends together with the resolve."""


async def nothing_more() -> AppendPart:
    """Return nothing."""
    return NOTHING


async def call_back(world: World, resolve: Resolve, run: Run) -> ResolveResult:
    """Take the action off its stack, then `run` its callback and what follows, as one effect.

    Raises:
        CodespaceError: NO_PENDING_ACTION, PENDING_ACTION_MISMATCH, WORKSPACE_BUSY, and what `run` raises.
    """

    async def story() -> ResolveResult:
        action_id = resolve.action.action_id
        if not world.under_way.begin(action_id):
            raise CodespaceError(ErrorCode.WORKSPACE_BUSY, f"{action_id} is being resolved by another call.")
        try:
            store = LoggedPendingActions(world, resolve.session, resolve.caller)
            command = resolve.command
            await store.pop(Claim(command.action, command.reason, command.extra, action_id, resolve.effect_id))
            world.faults(FaultPoint.RESOLVE_STARTED)
            return await run(await _call(world, resolve))
        finally:
            world.under_way.end(action_id)

    try:
        return await wait_aloud(
            world, resolve.caller, resolve.action.source_tool_name, lambda: world.effects.run(story)
        )
    except CodespaceError:
        raise
    except Exception:
        await settled_stack(world, resolve.session, resolve.caller)
        raise


async def _call(world: World, resolve: Resolve) -> ActionCall:
    action = resolve.action
    return ActionCall(
        action_id=action.action_id,
        workspace_id=resolve.session.workspace.workspace_id,
        work_id=resolve.session.work_id,
        label=action.label,
        source_tool_name=action.source_tool_name,
        handler=action.handler,
        payload=await read_json(world.log, resolve.session.stream_id, action.payload),
        reason=resolve.command.reason,
        extra=resolve.command.extra,
        effect_id=resolve.effect_id,
        caller=resolve.caller,
    )


async def begin_effect(world: World, session: Session, action_id: ActionId, caller: Caller) -> None:
    """Put on record that the callback of an action is about to do what can't be taken back; before it does it.

    Raises:
        CodespaceError: PENDING_ACTION_MISMATCH if it isn't being resolved, so that it may do nothing.
    """
    while True:
        stack = await read_stack(world, session.stream_id)
        events = stack.folded.decide(BeginEffect(action_id))
        if not events:
            return
        try:
            await world.log.append(Append(events), caller)
        except VersionConflictError:
            continue
        world.faults(FaultPoint.RESOLVE_EFFECT_BEGUN)
        return


async def end_resolve(
    world: World, resolve: Resolve, end: Applied | Discarded | NotApplied, *, more: More = nothing_more
) -> ResolveResult:
    """Put the end of a resolve on record, with the end of its hold, and return the answer.

    Raises:
        CodespaceError: the answer, where it is an error.
    """
    while True:
        stack = await read_stack(world, resolve.session.stream_id)
        state = stack.state
        if not isinstance(state, Resolving) or state.action.action_id != resolve.action.action_id:
            break  # its closure was found gone meanwhile, and it is over
        conclusion = conclude(stack.folded, end)
        hold_id = None if _is_only_blocked(conclusion) else resolve.resumed
        hold = await consumption(world.log, hold_id, conclusion.outcome)
        other = await more()
        append = Append(
            (*conclusion.part.events, *hold.events, *other.events),
            (*conclusion.part.bodies, *hold.bodies, *other.bodies),
            (*hold.scrubbed, *other.scrubbed),
        )
        try:
            await world.log.append(append, resolve.caller)
        except VersionConflictError:
            continue
        world.faults(FaultPoint.RESOLVE_ENDED)
        break
    return await answer_from_log(world, resolve)


def _is_only_blocked(conclusion: Conclusion) -> bool:
    """Return whether nothing was done and the same may be asked again: then the hold isn't used up either."""
    answer = conclusion.answer
    return (
        isinstance(answer, CodespaceError) and answer.code in BLOCKED_CODES and answer.detail["outcome"] == "returned"
    )


async def answer_from_log(
    world: World, resolve: Resolve, *, otherwise: CodespaceError | None = None
) -> ResolveResult:
    """Return what the log says of the resolve that has just ended. Raises its error; `otherwise` if it hasn't ended.

    The closure of an action that is over is let go; one that is on top again is needed.
    """
    history = await world.log.read_stream(resolve.session.stream_id, since=resolve.since)
    end = find_end(history, resolve.action.action_id, effect_id=resolve.effect_id)
    if end is None:
        assert otherwise is not None, "a resolve that was ended has an end"
        raise otherwise
    if isinstance(end, PendingActionPopped):
        world.tool_host.forget(resolve.action.action_id)
    return await tell_end(world.log, history, end, is_replayed=False)


def said_by(returned: CallbackResult) -> Said:
    """Return what a callback returned, as its caller sees it."""
    told: dict[str, object] = {"text": returned.text}
    return Said(returned.text, told if returned.details is None else {**told, "details": returned.details})
