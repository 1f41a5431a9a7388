"""The fold: which actions wait, and which one is being resolved. Stack ⇄ Resolving.

What is being resolved is off the stack, so an action that is pushed meanwhile is the new top; if the resolve fails,
the action goes back above it.
"""

from dataclasses import dataclass, replace

from codespace_es.aggregates.pending.events import (
    PendingActionPopped,
    PendingActionPushed,
    PendingActionReturned,
    PendingEffectBegun,
    PendingResolveStarted,
    PendingStackLeft,
)
from codespace_es.vocabulary.decider import refuse_event
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import ActionId


@dataclass(frozen=True, slots=True)
class Stack:
    """What waits, oldest first; nothing is being resolved."""

    actions: tuple[PendingActionPushed, ...] = ()

    @property
    def unresolved(self) -> tuple[PendingActionPushed, ...]:
        """Every action that isn't over, the next one last."""
        return self.actions


@dataclass(frozen=True, slots=True)
class Resolving:
    """One action was taken off the stack and its end isn't on record."""

    actions: tuple[PendingActionPushed, ...]
    """The others, oldest first."""
    action: PendingActionPushed
    started: PendingResolveStarted
    has_begun: bool = False
    """Its callback has done, or may have done, what can't be taken back."""

    @property
    def unresolved(self) -> tuple[PendingActionPushed, ...]:
        """Every action that isn't over, the one being resolved last."""
        return (*self.actions, self.action)


PendingState = Stack | Resolving


def evolve(state: PendingState, event: Event) -> PendingState:
    """Return the state after `event`; one that no rule would have allowed is refused, as in every aggregate."""
    match event:
        case PendingActionPushed() if find(state, event.action_id) is None:
            return _with_actions(state, (*state.actions, event))
        case PendingResolveStarted() if isinstance(state, Stack) and _is_top(state, event.action_id):
            return Resolving(state.actions[:-1], state.actions[-1], event)
        case PendingEffectBegun() if isinstance(state, Resolving) and state.action.action_id == event.action_id:
            return replace(state, has_begun=True)
        case PendingActionReturned() if isinstance(state, Resolving) and state.action.action_id == event.action_id:
            if state.has_begun:
                raise refuse_event(state, event)
            return Stack(state.unresolved)
        case PendingActionPopped() if isinstance(state, Resolving) and state.action.action_id == event.action_id:
            _require_count(state, event, state.actions)
            return Stack(state.actions)
        case PendingStackLeft() if not state.unresolved:
            return state
        case PendingActionPopped(outcome="orphaned") if find(state, event.action_id) is not None:
            left = tuple(each for each in state.actions if each.action_id != event.action_id)
            after = _with_actions(state, left)
            _require_count(state, event, after.unresolved)
            return after
        case _:
            raise refuse_event(state, event)


def find(state: PendingState, action_id: str) -> PendingActionPushed | None:
    """Return the action if it isn't over."""
    return next((each for each in state.unresolved if each.action_id == ActionId(action_id)), None)


def _is_top(state: Stack, action_id: ActionId) -> bool:
    return bool(state.actions) and state.actions[-1].action_id == action_id


def _with_actions(state: PendingState, actions: tuple[PendingActionPushed, ...]) -> PendingState:
    if isinstance(state, Resolving):
        return replace(state, actions=actions)
    return Stack(actions)


def _require_count(
    state: PendingState, event: PendingActionPopped, left: tuple[PendingActionPushed, ...]
) -> None:
    """Refuse a count that isn't the fold's: the open index rests on it."""
    if event.remaining != len(left):
        raise refuse_event(state, event)
