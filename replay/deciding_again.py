"""From recorded events back to the command that must have led to them, and what today's decider makes of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from codespace_es.aggregates.approval import (
    ApprovalConsumed,
    ApprovalCreated,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalParked,
    ApprovalQueued,
    ApprovalResuming,
    BeginEffect,
    ConsumeApproval,
    CreateApproval,
    DenyApproval,
    ExpireApproval,
    GrantApproval,
    ParkApproval,
    QueueApproval,
    WithdrawApproval,
)
from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken, ReleaseClaim, TakeClaim
from codespace_es.aggregates.instance import (
    InstanceCallRefused,
    InstanceRecovered,
    InstanceStarted,
    InstanceStopped,
    InstanceTakenOver,
    RecordRefusal,
    RecoverInstance,
    StartInstance,
    StopInstance,
    TakeOverInstance,
)
from codespace_es.aggregates.operation import (
    FinishOperation,
    MarkReverted,
    MintFinishedOperation,
    MintOperation,
    OperationFinished,
    OperationMinted,
    OperationReverted,
)
from codespace_es.aggregates.process import (
    ProcessEndRequested,
    ProcessExited,
    ProcessInputSent,
    ProcessNotStarted,
    ProcessResized,
    ProcessSpawned,
    RecordExit,
    RecordInput,
    RecordNoStart,
    RecordResize,
    RecordSpawn,
    RequestEnd,
)
from codespace_es.aggregates.store import (
    CreateStore,
    RecordCopy,
    RemoveBodies,
    StoreBodiesRemoved,
    StoreCopied,
    StoreCreated,
)
from codespace_es.aggregates.workspace import BindWorkspace, WorkspaceBound
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Envelope, Event
from replay.deciding_stacks import COMMANDS_BY_STATE

_BEFORE_ITS_APPEND = timedelta(minutes=1)
"""A decision is a little older than the append that records it; how much is not recorded."""

_COMMANDS: Mapping[type[Event], Callable[[Any], object]] = MappingProxyType({
    StoreCreated: lambda event: CreateStore(event.store_id, event.software),
    StoreBodiesRemoved: RemoveBodies,
    StoreCopied: RecordCopy,
    InstanceStarted: StartInstance,
    InstanceStopped: StopInstance,
    InstanceCallRefused: RecordRefusal,
    InstanceRecovered: RecoverInstance,
    InstanceTakenOver: TakeOverInstance,
    WorkspaceBound: BindWorkspace,
    ClaimTaken: lambda event: TakeClaim(event.kind, event.holder_id, event.fingerprint),
    ClaimReleased: lambda event: ReleaseClaim(event.holder_id),
    OperationMinted: MintOperation,
    OperationFinished: FinishOperation,
    OperationReverted: lambda event: MarkReverted(event.by),
    ApprovalCreated: CreateApproval,
    ApprovalParked: lambda event: ParkApproval(event.fault),
    ApprovalResuming: lambda event: BeginEffect(event.effect_id),
    ApprovalConsumed: ConsumeApproval,
    ProcessSpawned: RecordSpawn,
    ProcessNotStarted: RecordNoStart,
    ProcessInputSent: RecordInput,
    ProcessResized: RecordResize,
    ProcessEndRequested: RequestEnd,
    ProcessExited: RecordExit,
})
"""Event -> command, where the event says all that the command said."""

_TIMED: Mapping[type[Event], Callable[[Any, Any], object]] = MappingProxyType({
    ApprovalGranted: lambda event, now: GrantApproval(event.reason, now),
    ApprovalDenied: lambda event, now: DenyApproval(event.reason, now),
    ApprovalExpired: lambda _, now: ExpireApproval(now),
    ApprovalQueued: lambda _, now: QueueApproval(now),
})
"""Event -> command, where the decision depended on the time."""


def decide_again(
    decider: Decider[Any, Any], before: object, events: Sequence[Event], envelope: Envelope
) -> str | None:
    """Return why today's code wouldn't have decided `events` (of one stream and append); None if it would.

    Raises:
        LookupError: no command leads to such an event, so there is nothing to decide.
    """
    told: str | None = "nothing would be decided"
    for make in _commands(before, events, envelope):
        try:
            command = make()
            decided = decider.decide(before, command)
        except (CodespaceError, AssertionError) as refusal:
            told = f"it would be refused: {refusal}"
            continue
        if decided == list(events):
            return None
        told = f"it would be {', '.join(event.TOPIC for event in decided) or 'nothing'}" + _fields(events, decided)
    return told


def _commands(before: object, events: Sequence[Event], envelope: Envelope) -> Iterator[Callable[[], object]]:
    """Yield what makes the commands that may have led to `events`; an AssertionError: nothing can have led to them."""
    first, kind = events[0], type(events[0])
    if len(events) == 2 and isinstance(first, OperationMinted) and isinstance(finished := events[1], OperationFinished):
        yield lambda: MintFinishedOperation(first, finished)
    elif kind in _TIMED:
        yield lambda: _TIMED[kind](first, envelope.recorded_at)
        yield lambda: _TIMED[kind](first, envelope.recorded_at - _BEFORE_ITS_APPEND)
        if isinstance(first, ApprovalDenied):  # it may have ended with its pending action, granted or not
            yield lambda: WithdrawApproval(first.reason or "")
    elif kind in COMMANDS_BY_STATE:
        yield lambda: COMMANDS_BY_STATE[kind](first, before)
    else:
        command = _COMMANDS[kind](first)
        yield lambda: command


def _fields(recorded: Sequence[Event], decided: Sequence[Event]) -> str:
    """Return which fields differ, where the events are of the same kinds."""
    if [type(event) for event in recorded] != [type(event) for event in decided]:
        return ""
    names = [
        name for was, now in zip(recorded, decided, strict=True) for name in type(was).model_fields
        if getattr(was, name) != getattr(now, name)
    ]
    return f" with another {', '.join(names)}"
