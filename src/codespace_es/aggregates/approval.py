"""An approval: a request that is held until somebody with the right to it has decided, and then runs exactly once.

Pending → Granted → Queued → Resuming → Consumed; Queued → Consumed; Queued ⇄ Parked; Pending → Denied; Pending, Granted
→ Expired; Granted, Parked → Denied only where its pending action is discarded. Denied, Expired and Consumed are for
ever.

Invariants: consumed exactly once, together with its stored result or fault, in the append that ends its effect; what
was denied or expired never runs; a grant raises no profile. Source: contract B4, A4; event catalogue, *approval*.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self, assert_never

from pydantic import Field, model_validator

from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Body, Digest, Event, Fault, Version
from codespace_es.vocabulary.identifiers import (
    ActionId,
    OperationId,
    ProcessId,
    StreamId,
    WorkId,
    WorkspaceKey,
    claim_stream,
)

HeldTool = Literal["apply_patch", "exec_command", "operation_revert", "resolve"]

# Events


class ApprovalCreated(Event):
    """A request is held; nothing of it has run."""

    TOPIC = "approval.created.v1"

    workspace_key: WorkspaceKey = Field(description="Identity of the workspace.")
    workspace_id: str = Field(description="Its name in the server's configuration.")
    tool: HeldTool = Field(description="What was asked for.")
    fingerprint: Digest = Field(description="Digest of the request: one active hold each.")
    origin: Literal["policy", "approval_create"] = Field(description="Who opened it.")
    arguments: Body = Field(description="Nonce and arguments; scrubbed when the hold ends.")
    title: str = Field(max_length=200, description="What would happen, for people.")
    seen_versions: dict[str, Version] = Field(default_factory=dict, description="Files as they were then.")
    operation_key: str | None = Field(default=None, description="The request's idempotency key.")
    work_id: WorkId | None = Field(default=None, description="The work it belongs to.")
    action_id: ActionId | None = Field(default=None, description="The pending action that is to be applied.")
    expires_at: datetime | None = Field(default=None, description="Not to be granted or resumed after this.")


class ApprovalGranted(Event):
    """Somebody allows it; the envelope says through which channel."""

    TOPIC = "approval.granted.v1"

    reason: str | None = Field(default=None, description="What they said.")


class ApprovalDenied(Event):
    """Somebody refuses it."""

    TOPIC = "approval.denied.v1"

    reason: str | None = Field(default=None, description="What they said.")


class ApprovalExpired(Event):
    """Its time is over, and it had not begun."""

    TOPIC = "approval.expired.v1"


class ApprovalQueued(Event):
    """A resume of this instance is on its way; nothing is done yet."""

    TOPIC = "approval.queued.v1"


class ApprovalParked(Event):
    """The resume couldn't begin; another one may."""

    TOPIC = "approval.parked.v1"

    fault: Fault = Field(description="Busy, queue full, or found queued by a dead server.")


class ApprovalResuming(Event):
    """Its effect is minted, in this very append."""

    TOPIC = "approval.resuming.v1"

    effect_id: OperationId = Field(description="The operation.")


class ApprovalConsumed(Event):
    """It is done, one way or the other, and will never run again."""

    TOPIC = "approval.consumed.v1"

    effect_id: OperationId | ProcessId | None = Field(default=None, description="What it led to.")
    result: Body | None = Field(default=None, description="The answer, to be given again.")
    fault: Fault | None = Field(default=None, description="Or the error, to be given again.")

    @model_validator(mode="after")
    def _has_one_outcome(self) -> Self:
        assert (self.result is None) != (self.fault is None), "a result or a fault"
        return self


# State


@dataclass(frozen=True, slots=True)
class Unheld:
    """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Waits for a decision."""

    created: ApprovalCreated


@dataclass(frozen=True, slots=True)
class Granted:
    """May be resumed."""

    created: ApprovalCreated


@dataclass(frozen=True, slots=True)
class Queued:
    """A resume is on its way."""

    created: ApprovalCreated


@dataclass(frozen=True, slots=True)
class Parked:
    """A resume couldn't begin; the wire calls it `queued` too."""

    created: ApprovalCreated
    fault: Fault


@dataclass(frozen=True, slots=True)
class Resuming:
    """Its operation is under way."""

    created: ApprovalCreated
    effect_id: OperationId


@dataclass(frozen=True, slots=True)
class Consumed:
    """Done."""

    created: ApprovalCreated
    consumed: ApprovalConsumed


@dataclass(frozen=True, slots=True)
class Denied:
    """Refused."""

    created: ApprovalCreated
    reason: str | None


@dataclass(frozen=True, slots=True)
class Expired:
    """Too late."""

    created: ApprovalCreated


ApprovalState = Unheld | Pending | Granted | Queued | Parked | Resuming | Consumed | Denied | Expired

# Evolve


def evolve(state: ApprovalState, event: Event) -> ApprovalState:
    """Return the state after `event`."""
    match event:
        case ApprovalCreated() if isinstance(state, Unheld):
            return Pending(event)
        case ApprovalGranted() if isinstance(state, Pending):
            return Granted(state.created)
        case ApprovalDenied(reason=reason) if isinstance(state, Pending | Granted | Parked) and _may_end_denied(state):
            return Denied(state.created, reason)
        case ApprovalExpired() if isinstance(state, Pending | Granted):
            return Expired(state.created)
        case ApprovalQueued() if isinstance(state, Granted | Parked):
            return Queued(state.created)
        case ApprovalParked(fault=fault) if isinstance(state, Queued):
            return Parked(state.created, fault)
        case ApprovalResuming(effect_id=effect_id) if isinstance(state, Queued):
            return Resuming(state.created, effect_id)
        case ApprovalConsumed() if isinstance(state, Queued | Resuming):
            return Consumed(state.created, event)
        case _:
            raise refuse_event(state, event)


# Decide


@dataclass(frozen=True, slots=True)
class CreateApproval:
    """Hold a request."""

    created: ApprovalCreated


@dataclass(frozen=True, slots=True)
class GrantApproval:
    """Allow it, as of `now`."""

    reason: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class DenyApproval:
    """Refuse it, as of `now`."""

    reason: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class WithdrawApproval:
    """Refuse it because what it would do isn't wanted any more, granted or not; not once its resume has begun."""

    reason: str


@dataclass(frozen=True, slots=True)
class ExpireApproval:
    """End it if its time is over at `now`."""

    now: datetime


@dataclass(frozen=True, slots=True)
class QueueApproval:
    """Begin to resume it, as of `now`."""

    now: datetime


@dataclass(frozen=True, slots=True)
class ParkApproval:
    """Give up this resume; another may follow."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class BeginEffect:
    """Its operation is minted in this append."""

    effect_id: OperationId


@dataclass(frozen=True, slots=True)
class ConsumeApproval:
    """It is done."""

    consumed: ApprovalConsumed


ApprovalCommand = (
    CreateApproval | GrantApproval | DenyApproval | WithdrawApproval | ExpireApproval | QueueApproval | ParkApproval
    | BeginEffect | ConsumeApproval
)


def decide(state: ApprovalState, command: ApprovalCommand) -> list[Event]:
    """Return the events that `command` leads to; none to expire what isn't due.

    Raises:
        CodespaceError: APPROVAL_CONFLICT, saying which state is in the way.
    """
    match command:
        case CreateApproval(created):
            assert isinstance(state, Unheld), "an approval id is created once"
            return [created]
        case GrantApproval(reason, now):
            _require(isinstance(state, Pending) and not is_due(state, now), state, now)
            return [ApprovalGranted(reason=reason)]
        case DenyApproval(reason, now):
            _require(isinstance(state, Pending) and not is_due(state, now), state, now)
            return [ApprovalDenied(reason=reason)]
        case WithdrawApproval(reason):
            if isinstance(state, Pending | Granted | Parked) and _may_end_denied(state):
                return [ApprovalDenied(reason=reason)]
            return []
        case ExpireApproval(now):
            return [ApprovalExpired()] if is_due(state, now) else []
        case QueueApproval(now):
            _require(isinstance(state, Granted | Parked) and not is_due(state, now), state, now)
            return [ApprovalQueued()]
        case ParkApproval(fault):
            return [ApprovalParked(fault=fault)] if isinstance(state, Queued) else []
        case BeginEffect(effect_id):
            assert isinstance(state, Queued), "an effect begins only from a resume on its way"
            return [ApprovalResuming(effect_id=effect_id)]
        case ConsumeApproval(consumed):
            assert isinstance(state, Queued | Resuming), "consumed exactly once, by the resume that ran it"
            return [consumed]
        case _:
            assert_never(command)


def _may_end_denied(state: Pending | Granted | Parked) -> bool:
    """Return whether the hold may be denied now: once granted, only by the discard of its pending action."""
    return isinstance(state, Pending) or state.created.action_id is not None


def is_due(state: ApprovalState, now: datetime) -> bool:
    """Return whether the hold has to be expired at `now`. One whose resume has begun is never too late."""
    if not isinstance(state, Pending | Granted) or state.created.expires_at is None:
        return False
    return now >= state.created.expires_at


def wire_state(state: ApprovalState) -> str:
    """Return the state as clients know it."""
    return "queued" if isinstance(state, Parked) else type(state).__name__.lower()


def _require(is_allowed: bool, state: ApprovalState, now: datetime) -> None:
    if is_allowed:
        return
    name = "expired" if is_due(state, now) else wire_state(state)
    reason = f": {state.reason}" if isinstance(state, Denied) and state.reason else ""
    raise CodespaceError(ErrorCode.APPROVAL_CONFLICT, f"The approval is {name}{reason}.")


def hold_claim(key: WorkspaceKey, fingerprint: Digest) -> StreamId:
    """Return the claim stream that keeps a request from having two active holds."""
    return claim_stream("hold", f"{key}\0{fingerprint}")


APPROVAL: Decider[ApprovalState, ApprovalCommand] = Decider(Unheld(), evolve, decide)
