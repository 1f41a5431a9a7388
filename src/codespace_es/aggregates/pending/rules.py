"""What may be done with a stack: push, take the newest off, give it back, be done with it.

Invariants: only the newest is ever resolved; what is being resolved is nobody else's; an action is popped once; it
returns only if nothing of it was done. Source: the pending-actions paper; decisions 27 to 32.
"""

from dataclasses import dataclass
from typing import assert_never

from codespace_es.aggregates.pending.events import (
    Ending,
    PendingActionPopped,
    PendingActionPushed,
    PendingActionReturned,
    PendingEffectBegun,
    PendingResolveStarted,
    PendingStackLeft,
)
from codespace_es.aggregates.pending.state import PendingState, Resolving, Stack, evolve, find
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Body, Event, Fault
from codespace_es.vocabulary.identifiers import ActionId, OperationId

NOTHING_PENDING = "No pending action to resolve. Nothing to apply or discard."
"""Exactly these words. Source: the pending-actions paper."""

# Commands


@dataclass(frozen=True, slots=True)
class PushAction:
    """Put an action on top."""

    pushed: PendingActionPushed


@dataclass(frozen=True, slots=True)
class StartResolve:
    """Take the newest off, which has to be the one that is named."""

    started: PendingResolveStarted


@dataclass(frozen=True, slots=True)
class BeginEffect:
    """Its callback is about to do what can't be taken back."""

    action_id: ActionId


@dataclass(frozen=True, slots=True)
class ReturnAction:
    """Put what is being resolved back on top: nothing of it was done."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class PopAction:
    """Be done with what is being resolved; a result or a fault, or neither for a plain discard."""

    outcome: Ending
    effect_id: OperationId | None = None
    result: Body | None = None
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class ResolveAtOnce:
    """Take the newest off and end that in the same append: nothing has to run in between."""

    started: PendingResolveStarted
    ending: ReturnAction | PopAction


@dataclass(frozen=True, slots=True)
class OrphanActions:
    """Be done with actions whose closures are gone.

    What is being resolved ends with its resolve, which may be writing: then its end is its operation's.
    """

    action_ids: tuple[ActionId, ...]


@dataclass(frozen=True, slots=True)
class LeaveStack:
    """Close the work whose stack this is, on which nothing waits."""

    left: PendingStackLeft


PendingCommand = (
    PushAction | StartResolve | BeginEffect | ReturnAction | PopAction | ResolveAtOnce | OrphanActions | LeaveStack
)

# Decide


def decide(state: PendingState, command: PendingCommand) -> list[Event]:
    """Return the events that `command` leads to; none for what has to be done no more.

    Raises:
        CodespaceError: NO_PENDING_ACTION, PENDING_ACTION_MISMATCH, WORKSPACE_BUSY while another resolve runs,
            RESOURCE_QUEUE_FULL when too many wait.
    """
    match command:
        case PushAction(pushed):
            assert find(state, pushed.action_id) is None, "ids are made anew"
            _require_room(state)
            return [pushed]
        case StartResolve(started):
            require_top(state, started.action_id)
            return [started]
        case BeginEffect(action_id):
            return _begin(state, action_id)
        case ReturnAction(fault):
            assert isinstance(state, Resolving), "only what was taken off returns"
            assert not state.has_begun, "what has begun never returns"
            return [PendingActionReturned(action_id=state.action.action_id, fault=fault)]
        case PopAction():
            assert isinstance(state, Resolving), "only what was taken off is popped"
            return [_popped(state, command)]
        case ResolveAtOnce(started, ending):
            first = decide(state, StartResolve(started))
            return [*first, *decide(evolve(state, started), ending)]
        case OrphanActions(action_ids):
            return _orphan(state, action_ids)
        case LeaveStack(left):
            assert not state.unresolved, "a work isn't closed over what waits"
            return [left]
        case _:
            assert_never(command)


def require_top(state: PendingState, action_id: str | None) -> PendingActionPushed:
    """Return the newest action; `action_id`, if it is given, has to be its.

    Raises:
        CodespaceError: NO_PENDING_ACTION, PENDING_ACTION_MISMATCH naming what waits, WORKSPACE_BUSY.
    """
    if not state.unresolved:
        raise CodespaceError(ErrorCode.NO_PENDING_ACTION, NOTHING_PENDING)
    waiting = [each.action_id for each in reversed(state.unresolved)]
    if isinstance(state, Resolving):
        raise CodespaceError(
            ErrorCode.WORKSPACE_BUSY, f"{waiting[0]} is being resolved by another call.",
            detail={"pending": waiting},
        )
    if action_id is not None and action_id != waiting[0]:
        raise CodespaceError(
            ErrorCode.PENDING_ACTION_MISMATCH,
            f"{action_id[:100]!r} isn't the newest pending action; newest first: {', '.join(waiting)}.",
            detail={"pending": waiting},
        )
    return state.actions[-1]


def _begin(state: PendingState, action_id: ActionId) -> list[Event]:
    """Return the event of a callback's first effect. Raises PENDING_ACTION_MISMATCH if its resolve is over."""
    if not isinstance(state, Resolving) or state.action.action_id != action_id:
        raise CodespaceError(
            ErrorCode.PENDING_ACTION_MISMATCH, f"{action_id} isn't being resolved, so its callback may do nothing more."
        )
    return [] if state.has_begun else [PendingEffectBegun(action_id=action_id)]


def _require_room(state: PendingState) -> None:
    if len(state.unresolved) >= limits.PENDING_ACTIONS_MAX:
        raise CodespaceError(
            ErrorCode.RESOURCE_QUEUE_FULL,
            f"{len(state.unresolved)} actions wait to be resolved already: resolve some of them first.",
        )


def _popped(state: Resolving, command: PopAction) -> PendingActionPopped:
    return PendingActionPopped(
        action_id=state.action.action_id,
        outcome=command.outcome,
        reason=state.started.reason,
        remaining=len(state.actions),
        effect_id=command.effect_id,
        result=command.result,
        fault=command.fault,
    )


def _orphan(state: PendingState, action_ids: tuple[ActionId, ...]) -> list[Event]:
    events: list[Event] = []
    for action_id in action_ids:
        action = next((each for each in state.actions if each.action_id == action_id), None)
        if action is None or action.handler is not None:
            continue
        popped = PendingActionPopped(
            action_id=action_id, outcome="orphaned", remaining=len(state.unresolved) - 1
        )
        events.append(popped)
        state = evolve(state, popped)
    return events


PENDING: Decider[PendingState, PendingCommand] = Decider(Stack(), evolve, decide)
