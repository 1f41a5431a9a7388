"""One plain sentence for each class of event, as a person reads the log.

A test demands exactly one for each class of the catalogue.
"""

from collections.abc import Callable, Mapping
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
)
from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken
from codespace_es.aggregates.instance import (
    InstanceCallRefused,
    InstanceRecovered,
    InstanceStarted,
    InstanceStopped,
    InstanceTakenOver,
)
from codespace_es.aggregates.operation import OperationFinished, OperationMinted, OperationReverted
from codespace_es.aggregates.pending.events import (
    PendingActionPlaced,
    PendingActionPopped,
    PendingActionPushed,
    PendingActionReturned,
    PendingEffectBegun,
    PendingResolveStarted,
)
from codespace_es.aggregates.process import (
    ProcessEndRequested,
    ProcessExited,
    ProcessInputSent,
    ProcessNotStarted,
    ProcessResized,
    ProcessSpawned,
)
from codespace_es.aggregates.steering.events import (
    IntentCancelled,
    IntentClaimed,
    IntentCompleted,
    IntentDrafted,
    IntentEdited,
    IntentQueued,
    IntentRedelivered,
    IntentReleased,
    IntentsReordered,
    StopRequested,
    WorkClosed,
    WorkClosing,
    WorkOpened,
)
from codespace_es.aggregates.store import StoreBodiesRemoved, StoreCopied, StoreCreated
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.projections.process_status import SIGNAL_NAMES
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.file_change import PlannedFile

_PATHS_SHOWN_MAX = 3


def summarise(event: Event) -> str:
    """Return what `event` says in one plain sentence."""
    return SENTENCES[type(event)](event)


def _store_created(event: StoreCreated) -> str:
    return f"The log {event.store_id} begins, made by {event.software}."


def _store_bodies_removed(event: StoreBodiesRemoved) -> str:
    return f"Stored contents were {event.reason}: {event.count:,}, of {event.total_bytes:,} bytes together."


def _store_copied(event: StoreCopied) -> str:
    return f"The log goes on here, copied from {event.from_store_id} at position {event.from_position}."


def _instance_started(event: InstanceStarted) -> str:
    return f"{event.software} started on {event.host} as process {event.pid}, serving {event.transport}."


def _instance_stopped(event: InstanceStopped) -> str:
    reasons = {
        "eof": "its client closed the input",
        "signal": "it was told to end",
        "output_closed": "nobody read its output any more",
        "done": "its work was done",
        "fault": "of a fault",
    }
    return f"The server stopped because {reasons[event.reason]}."


def _instance_call_refused(event: InstanceCallRefused) -> str:
    place = f" in workspace {event.workspace_id}" if event.workspace_id is not None else ""
    return f"A call of {event.tool}{place} was refused with {event.code}."


def _instance_recovered(event: InstanceRecovered) -> str:
    closed = event.operations_closed + event.processes_closed + event.resolves_closed
    if not closed:
        return "Another server found this one dead, with nothing left to close."
    return f"Another server found this one dead and closed {_count(closed, 'thing')} that it had left open."


def _instance_taken_over(event: InstanceTakenOver) -> str:
    return f"The operator declared its host lost: it can't append any more. {event.reason}".rstrip()


def _workspace_bound(event: WorkspaceBound) -> str:
    return f"Workspace {event.workspace_id} stands for the directory {event.root}."


def _claim_taken(event: ClaimTaken) -> str:
    return f"The {event.kind.replace('_', ' ')} was taken by {event.holder_id}."


def _claim_released(event: ClaimReleased) -> str:
    return f"The hold was let go by {event.holder_id}."


def _operation_minted(event: OperationMinted) -> str:
    who = "An undo" if event.source == "revert" else event.told_source
    if not event.plan:
        return f"{who} in workspace {event.workspace_id} was recorded, with nothing planned."
    verb = "would change" if event.check_only else "is about to change"
    others = f" and {_count(len(event.also_reverts), 'older operation')}" if event.also_reverts else ""
    purpose = f" of {event.reverts}{others}" if event.reverts is not None else ""
    return f"{who}{purpose} {verb} {_paths(event.plan)} in workspace {event.workspace_id}."


def _operation_finished(event: OperationFinished) -> str:
    sentence = {
        "checked": "The preview was answered; nothing was written",
        "applied": "Every planned file has its new content",
        "rejected": "The request was refused; nothing was written",
        "failed_rolled_back": "Writing failed, and every file is as it was before",
        "failed_partial": "Writing failed, and some files have changed",
        "unknown": "What became of the files can't be said",
    }[event.status]
    because = f" ({event.fault.code}: {event.fault.message.rstrip('.')})" if event.fault is not None else ""
    how = ", found after a crash" if event.reason == "recovered" else ""
    return f"{sentence}{how}{because}."


def _operation_reverted(event: OperationReverted) -> str:
    return f"It was undone by {event.by}."


def _approval_created(event: ApprovalCreated) -> str:
    why = "as its operator wants" if event.origin == "policy" else "as its caller wants"
    return f"{event.title}: held in workspace {event.workspace_id}, {why}; nothing has run."


def _approval_granted(event: ApprovalGranted) -> str:
    return f"It was granted{_said(event.reason)}."


def _approval_denied(event: ApprovalDenied) -> str:
    return f"It was denied{_said(event.reason)}; it will never run."


def _approval_expired(_event: ApprovalExpired) -> str:
    return "Its time is over; it will never run."


def _approval_queued(_event: ApprovalQueued) -> str:
    return "It is about to run."


def _approval_parked(event: ApprovalParked) -> str:
    return f"It couldn't run yet: {event.fault.message.rstrip('.')}."


def _approval_resuming(event: ApprovalResuming) -> str:
    return f"It runs as {event.effect_id}."


def _approval_consumed(event: ApprovalConsumed) -> str:
    if event.fault is not None:
        return f"It is over, refused: {event.fault.code}: {event.fault.message.rstrip('.')}."
    if event.effect_id is None:
        return "It is over: its key had done it before."
    return f"It is over, having led to {event.effect_id}."


def _pending_action_pushed(event: PendingActionPushed) -> str:
    files = f" ({_count(len(event.edits), 'file')})" if event.edits else ""
    proposal = f"{event.label}{files}; nothing is done"
    return f"{event.source_tool_name} proposes in workspace {event.workspace_id}: {proposal}."


def _pending_action_placed(event: PendingActionPlaced) -> str:
    return f"It waits on the stack {event.stack_id}."


def _pending_resolve_started(event: PendingResolveStarted) -> str:
    verb = "applied" if event.action == "apply" else "discarded"
    return f"{event.action_id} is about to be {verb}{_said(event.reason)}."


def _pending_effect_begun(event: PendingEffectBegun) -> str:
    return f"The callback of {event.action_id} is about to do what can't be taken back."


def _pending_action_returned(event: PendingActionReturned) -> str:
    return f"{event.action_id} couldn't be applied and waits again: {event.fault.message.rstrip('.')}."


def _pending_action_popped(event: PendingActionPopped) -> str:
    how = {
        "applied": "was applied",
        "discarded": "was discarded",
        "failed": "failed, and is over",
        "orphaned": "is over, unresolved: the server that had its callback is gone",
    }[event.outcome]
    led = f", having led to {event.effect_id}" if event.effect_id is not None else ""
    because = f" ({event.fault.code}: {event.fault.message.rstrip('.')})" if event.fault is not None else ""
    return f"{event.action_id} {how}{led}{because}; {_count(event.remaining, 'action')} still waiting."


def _work_opened(event: WorkOpened) -> str:
    title = f" ({event.title})" if event.title else ""
    taken = f", taking over {_count(len(event.adopted), 'intent')}" if event.adopted else ""
    return f"{event.work_id}{title} was opened in workspace {event.workspace_id}{taken}."


def _work_closing(event: WorkClosing) -> str:
    return f"{event.work_id} is about to close: what was to come after it is delivered now."


def _work_closed(event: WorkClosed) -> str:
    left = f"; {_count(len(event.detached), 'intent')} went back to the workspace" if event.detached else ""
    return f"{event.work_id} was closed{left}."


def _stop_requested(event: StopRequested) -> str:
    return f"{event.work_id} was stopped; {_count(len(event.process_ids), 'command')} had to end."


def _intent_drafted(event: IntentDrafted) -> str:
    return f"A person drafted {event.intent_id} ({event.kind}, {event.delivery})."


def _intent_edited(event: IntentEdited) -> str:
    return f"{event.intent_id} was edited."


def _intent_queued(event: IntentQueued) -> str:
    return f"{event.intent_id} was queued: agents may have it."


def _intents_reordered(event: IntentsReordered) -> str:
    return f"The {_count(len(event.intent_ids), 'queued intent')} of {event.work_id} got another order."


def _intent_claimed(event: IntentClaimed) -> str:
    return f"An agent claimed {event.intent_id}."


def _intent_redelivered(event: IntentRedelivered) -> str:
    return f"{event.intent_id} was given out again."


def _intent_released(event: IntentReleased) -> str:
    return f"The operator put {event.intent_id} back into the queue."


def _intent_completed(event: IntentCompleted) -> str:
    return f"{event.intent_id} is {event.outcome}."


def _intent_cancelled(event: IntentCancelled) -> str:
    return f"{event.intent_id} was taken back."


def _said(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _process_spawned(event: ProcessSpawned) -> str:
    request = event.request
    place = "with a terminal " if request.tty else ""
    confined = "unconfined" if request.sandbox == "none" else f"confined by {request.sandbox}"
    return (
        f"`{request.command_line}` is about to run {place}as process {event.pid} in workspace {request.workspace_id}, "
        f"{confined}."
    )


def _process_not_started(event: ProcessNotStarted) -> str:
    return f"`{event.request.command_line}` couldn't be started: {event.fault.message.rstrip('.')}."


def _process_input_sent(event: ProcessInputSent) -> str:
    end = ", and its input was closed" if event.is_eof else ""
    return f"{_count(event.size_bytes, 'byte')} went to its input{end}."


def _process_resized(event: ProcessResized) -> str:
    return f"Its terminal has {event.rows} rows and {event.columns} columns now."


def _process_end_requested(event: ProcessEndRequested) -> str:
    who = {
        "caller": "A caller wants it to end",
        "timeout": "Its time limit is over",
        "stop": "The work was stopped, so it has to end",
        "shutdown": "Its server ends, so it has to end",
    }[event.cause]
    name = SIGNAL_NAMES.get(event.signal, str(event.signal))
    return f"{who}: {name} now, and SIGKILL after {event.grace_ms:,} ms."


def _process_exited(event: ProcessExited) -> str:
    name = SIGNAL_NAMES.get(event.signal, str(event.signal)) if event.signal is not None else ""
    how = {
        "exited": f"It exited with code {event.exit_code}",
        "signaled": f"It was ended by {name}",
        "timeout": "It was ended by its time limit",
        "terminated": "It was ended on request",
        "unknown": "It is gone; how it ended can't be known",
    }[event.termination]
    swept = f"; {_count(event.swept, 'descendant')} had to be ended" if event.swept else ""
    return f"{how}, after {_count(event.output_bytes, 'byte')} of output{swept}."


def _paths(plan: tuple[PlannedFile, ...]) -> str:
    shown = ", ".join(planned.path for planned in plan[:_PATHS_SHOWN_MAX])
    rest = len(plan) - _PATHS_SHOWN_MAX
    return f"{shown} and {_count(rest, 'more file')}" if rest > 0 else shown


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


SENTENCES: Mapping[type[Event], Callable[[Any], str]] = MappingProxyType({
    StoreCreated: _store_created,
    StoreBodiesRemoved: _store_bodies_removed,
    StoreCopied: _store_copied,
    InstanceStarted: _instance_started,
    InstanceStopped: _instance_stopped,
    InstanceCallRefused: _instance_call_refused,
    InstanceRecovered: _instance_recovered,
    InstanceTakenOver: _instance_taken_over,
    WorkspaceBound: _workspace_bound,
    ClaimTaken: _claim_taken,
    ClaimReleased: _claim_released,
    OperationMinted: _operation_minted,
    OperationFinished: _operation_finished,
    OperationReverted: _operation_reverted,
    ApprovalCreated: _approval_created,
    ApprovalGranted: _approval_granted,
    ApprovalDenied: _approval_denied,
    ApprovalExpired: _approval_expired,
    ApprovalQueued: _approval_queued,
    ApprovalParked: _approval_parked,
    ApprovalResuming: _approval_resuming,
    ApprovalConsumed: _approval_consumed,
    PendingActionPushed: _pending_action_pushed,
    PendingActionPlaced: _pending_action_placed,
    PendingResolveStarted: _pending_resolve_started,
    PendingEffectBegun: _pending_effect_begun,
    PendingActionReturned: _pending_action_returned,
    PendingActionPopped: _pending_action_popped,
    WorkOpened: _work_opened,
    WorkClosing: _work_closing,
    WorkClosed: _work_closed,
    StopRequested: _stop_requested,
    IntentDrafted: _intent_drafted,
    IntentEdited: _intent_edited,
    IntentQueued: _intent_queued,
    IntentsReordered: _intents_reordered,
    IntentClaimed: _intent_claimed,
    IntentRedelivered: _intent_redelivered,
    IntentReleased: _intent_released,
    IntentCompleted: _intent_completed,
    IntentCancelled: _intent_cancelled,
    ProcessSpawned: _process_spawned,
    ProcessNotStarted: _process_not_started,
    ProcessInputSent: _process_input_sent,
    ProcessResized: _process_resized,
    ProcessEndRequested: _process_end_requested,
    ProcessExited: _process_exited,
})
"""One a class of the catalogue, exactly."""
