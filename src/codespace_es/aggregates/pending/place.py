"""The place of an action: the stack that it was pushed on. Unplaced → Placed, in the append of the push.

So `resolve` finds an action by its id alone, at the same cost however long the log is.
"""

from dataclasses import dataclass

from codespace_es.aggregates.pending.events import PendingActionPlaced
from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import StreamId


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No such action was pushed."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Pushed."""

    stack_id: StreamId


PlaceState = Unplaced | Placed


def evolve(state: PlaceState, event: Event) -> PlaceState:
    """Return the state after `event`."""
    if isinstance(event, PendingActionPlaced) and isinstance(state, Unplaced):
        return Placed(event.stack_id)
    raise refuse_event(state, event)


@dataclass(frozen=True, slots=True)
class PlaceAction:
    """It is pushed on `stack_id`."""

    stack_id: StreamId


def decide(state: PlaceState, command: PlaceAction) -> list[Event]:
    """Return the events that `command` leads to."""
    assert isinstance(state, Unplaced), "an action is pushed once"
    return [PendingActionPlaced(stack_id=command.stack_id)]


PLACE: Decider[PlaceState, PlaceAction] = Decider(Unplaced(), evolve, decide)
