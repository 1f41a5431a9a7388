"""What ends a hold: the events, bodies and the scrub that go into the append of whatever ends it.

A hold and its effect are never two facts: `approval.resuming` stands in the append that mints the operation, and
`approval.consumed` in the one that ends the effect, with the claim's release. The arguments are scrubbed with it.
Source: decision 7; event catalogue section 4.
"""

from dataclasses import dataclass

from codespace_es.aggregates.approval import (
    APPROVAL,
    ApprovalCommand,
    ApprovalConsumed,
    ApprovalState,
    BeginEffect,
    ConsumeApproval,
    Unheld,
    hold_claim,
)
from codespace_es.aggregates.claim import CLAIM, ReleaseClaim
from codespace_es.folding import Folded, fold
from codespace_es.ports.log import EventLog, NewBody, NewEvent
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Digest, Fault
from codespace_es.vocabulary.identifiers import ApprovalId, OperationId, ProcessId, StreamId


@dataclass(frozen=True, slots=True)
class AppendPart:
    """A part of an append that something else leads."""

    events: tuple[NewEvent, ...] = ()
    bodies: tuple[NewBody, ...] = ()
    scrubbed: tuple[tuple[Digest, StreamId], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an effect came to, as a hold remembers it: a result or a fault."""

    effect_id: OperationId | ProcessId | None = None
    result: bytes | None = None
    fault: Fault | None = None


NOTHING = AppendPart()

BLOCKED_CODES = (ErrorCode.WORKSPACE_BUSY, ErrorCode.RESOURCE_QUEUE_FULL, ErrorCode.SERVER_SHUTTING_DOWN)
"""The way was only blocked, and nothing was done: what is held stays held, and waits for another resume."""


async def beginning(log: EventLog, approval_id: ApprovalId | None, effect_id: OperationId) -> AppendPart:
    """Return what begins together with an operation: its hold is resuming now."""
    if approval_id is None:
        return NOTHING
    return AppendPart((await fold(log, APPROVAL, approval_id)).decide(BeginEffect(effect_id)))


async def consumption(log: EventLog, approval_id: ApprovalId | None, outcome: Outcome) -> AppendPart:
    """Return what ends together with an effect: its hold is consumed, with the answer to be given again."""
    if approval_id is None:
        return NOTHING
    stored = () if outcome.result is None else (NewBody(StreamId(approval_id), "result", outcome.result),)
    consumed = ApprovalConsumed(
        effect_id=outcome.effect_id, result=stored[0].body if stored else None, fault=outcome.fault
    )
    part = await ending(log, await fold(log, APPROVAL, approval_id), ConsumeApproval(consumed))
    return AppendPart(part.events, stored, part.scrubbed)


async def ending(
    log: EventLog, approval: Folded[ApprovalState, ApprovalCommand], command: ApprovalCommand
) -> AppendPart:
    """Return what ends a hold by `command`: its last event, the release of its claim, the scrub of its arguments."""
    assert not isinstance(approval.state, Unheld), "only a hold that exists can end"
    created = approval.state.created
    events = approval.decide(command)
    if not events:
        return NOTHING
    claim = await fold(log, CLAIM, hold_claim(created.workspace_key, created.fingerprint))
    released = claim.decide(ReleaseClaim(ApprovalId(approval.stream_id)))
    return AppendPart((*events, *released), (), ((created.arguments.digest, approval.stream_id),))
