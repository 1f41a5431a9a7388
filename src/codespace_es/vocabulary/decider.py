"""The shape every aggregate has: an initial state, a fold and a decision. Three pure things, nothing else."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from codespace_es.vocabulary.event import Event, RecordedEvent

State = TypeVar("State")
Command = TypeVar("Command")


@dataclass(frozen=True, slots=True)
class Decider(Generic[State, Command]):
    """An aggregate as data: fold events to a state, decide a command against it."""

    initial_state: State
    evolve: Callable[[State, Event], State]
    decide: Callable[[State, Command], list[Event]]

    def fold(self, events: Iterable[Event]) -> State:
        """Return the state after `events`, in order."""
        state = self.initial_state
        for event in events:
            state = self.evolve(state, event)
        return state

    def fold_recorded(self, events: Iterable[RecordedEvent]) -> State:
        """Return the state after recorded `events`, in order."""
        return self.fold(recorded.event for recorded in events)


def refuse_event(state: object, event: Event) -> AssertionError:
    """Return the error of a fold that meets an event which can't follow: the log is damaged, or a bug wrote it."""
    return AssertionError(f"{event.TOPIC} can't follow {type(state).__name__}")
