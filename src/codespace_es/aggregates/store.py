"""The store: the log's own story. Absent → Created. Source: event catalogue, *store*."""

from dataclasses import dataclass
from typing import Literal, assert_never

from pydantic import Field

from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.event import Body, Digest, Event

STORE_FORMAT = 1
"""Raised when the meaning of what is stored changes, never for a new event."""

# Events


class StoreCreated(Event):
    """The log begins."""

    TOPIC = "store.created.v1"

    store_id: str = Field(description="UUID of this log.")
    format: int = Field(description="Format of what is stored.")
    software: str = Field(description="Name/version that made it.")


class StoreBodiesRemoved(Event):
    """Bodies were pruned or scrubbed; the events that name them stay."""

    TOPIC = "store.bodies_removed.v1"

    reason: Literal["pruned", "scrubbed"] = Field(description="Why.")
    count: int = Field(description="How many.")
    total_bytes: int = Field(description="Their size together.")
    digests: Body = Field(description="JSON list of pairs: stream and digest of each content removed.")


class StoreCopied(Event):
    """The chain goes on in another database; the first event after the copy."""

    TOPIC = "store.copied.v1"

    from_store_id: str = Field(description="The log copied from.")
    from_position: int = Field(description="Its head.")
    from_hash: Digest = Field(description="The head's hash.")


# State


@dataclass(frozen=True, slots=True)
class Absent:
    """No event yet."""


@dataclass(frozen=True, slots=True)
class Created:
    """A log with an identity."""

    store_id: str
    format: int


StoreState = Absent | Created

# Evolve


def evolve(state: StoreState, event: Event) -> StoreState:
    """Return the state after `event`."""
    match event:
        case StoreCreated() if isinstance(state, Absent):
            return Created(event.store_id, event.format)
        case StoreBodiesRemoved() | StoreCopied() if isinstance(state, Created):
            return state
        case _:
            raise refuse_event(state, event)


# Decide


@dataclass(frozen=True, slots=True)
class CreateStore:
    """Begin the log, unless it was begun already."""

    store_id: str
    software: str


@dataclass(frozen=True, slots=True)
class RemoveBodies:
    """Record that bodies were removed."""

    removed: StoreBodiesRemoved


@dataclass(frozen=True, slots=True)
class RecordCopy:
    """Record that the chain goes on here."""

    copied: StoreCopied


StoreCommand = CreateStore | RemoveBodies | RecordCopy


def decide(state: StoreState, command: StoreCommand) -> list[Event]:
    """Return the events that `command` leads to; none when the log exists already."""
    match command:
        case CreateStore(store_id, software):
            if isinstance(state, Created):
                return []
            return [StoreCreated(store_id=store_id, format=STORE_FORMAT, software=software)]
        case RemoveBodies(removed):
            assert isinstance(state, Created), "bodies are removed from a log that exists"
            return [removed]
        case RecordCopy(copied):
            assert isinstance(state, Created), "what is copied is a log"
            return [copied]
        case _:
            assert_never(command)


STORE: Decider[StoreState, StoreCommand] = Decider(Absent(), evolve, decide)
