"""A claim: at most one holder of a name at a time. Free → Taken → Free.

Its stream is named by what is claimed, so that two holders who try at once meet as a version conflict in the store,
in one process or in ten. Kinds: `operation_key` (one name space for all tools, never released) and `hold`.
Source: event catalogue, *claim*.
"""

from dataclasses import dataclass
from typing import Literal, assert_never

from pydantic import Field

from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Digest, Event
from codespace_es.vocabulary.identifiers import ApprovalId, OperationId, ProcessId

ClaimKind = Literal["operation_key", "hold"]

# Events


class ClaimTaken(Event):
    """Somebody holds the name now."""

    TOPIC = "claim.taken.v1"

    kind: ClaimKind = Field(description="What sort of name is claimed.")
    holder_id: OperationId | ProcessId | ApprovalId = Field(description="Who holds it.")
    fingerprint: Digest = Field(description="Digest of the holder's request.")


class ClaimReleased(Event):
    """The name is free again (`hold` only)."""

    TOPIC = "claim.released.v1"

    holder_id: ApprovalId = Field(description="Who held it.")


# State


@dataclass(frozen=True, slots=True)
class Free:
    """Nobody holds it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Held."""

    kind: ClaimKind
    holder_id: str
    fingerprint: Digest


ClaimState = Free | Taken

# Evolve


def evolve(state: ClaimState, event: Event) -> ClaimState:
    """Return the state after `event`."""
    match event:
        case ClaimTaken() if isinstance(state, Free):
            return Taken(event.kind, event.holder_id, event.fingerprint)
        case ClaimReleased() if isinstance(state, Taken) and state.kind == "hold":
            return Free()
        case _:
            raise refuse_event(state, event)


# Decide


@dataclass(frozen=True, slots=True)
class TakeClaim:
    """Claim the name for `holder_id`."""

    kind: ClaimKind
    holder_id: OperationId | ProcessId | ApprovalId
    fingerprint: Digest


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """Let go of a `hold`."""

    holder_id: ApprovalId


ClaimCommand = TakeClaim | ReleaseClaim


def decide(state: ClaimState, command: ClaimCommand) -> list[Event]:
    """Return the events that `command` leads to.

    Raises:
        CodespaceError: OPERATION_KEY_CONFLICT if an operation key is held already. Whoever may be repeating the
            holder's request asks `is_repeat` first.
    """
    match command:
        case TakeClaim(kind, holder_id, fingerprint):
            if isinstance(state, Taken):
                raise CodespaceError(
                    ErrorCode.OPERATION_KEY_CONFLICT, f"The {kind.replace('_', ' ')} is held by another request."
                )
            return [ClaimTaken(kind=kind, holder_id=holder_id, fingerprint=fingerprint)]
        case ReleaseClaim(holder_id):
            assert isinstance(state, Taken), "only a taken claim is released"
            assert state.kind == "hold", "an operation key is never released"
            assert state.holder_id == holder_id, "only its holder releases it"
            return [ClaimReleased(holder_id=holder_id)]
        case _:
            assert_never(command)


def is_repeat(state: ClaimState, fingerprint: Digest) -> bool:
    """Return whether a request with `fingerprint` repeats the one that holds the claim."""
    return isinstance(state, Taken) and state.fingerprint == fingerprint


CLAIM: Decider[ClaimState, ClaimCommand] = Decider(Free(), evolve, decide)
