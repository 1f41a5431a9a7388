"""Pending actions: proposed, resolved, given back."""

from codespace_es.aggregates.pending.events import (
    PendingActionPlaced,
    PendingActionPopped,
    PendingActionPushed,
    PendingActionReturned,
    PendingEffectBegun,
    PendingResolveStarted,
    PendingStackLeft,
)
from codespace_es.projections.sentences.words import Sentences, because, count, said


def _pending_action_pushed(event: PendingActionPushed) -> str:
    files = f" ({count(len(event.edits), 'file')})" if event.edits else ""
    proposal = f"{event.label}{files}; nothing is done"
    return f"{event.source_tool_name} proposes in workspace {event.workspace_id}: {proposal}."


def _pending_action_placed(event: PendingActionPlaced) -> str:
    return f"It waits on the stack {event.stack_id}."


def _pending_resolve_started(event: PendingResolveStarted) -> str:
    verb = "applied" if event.action == "apply" else "discarded"
    return f"{event.action_id} is about to be {verb}{said(event.reason)}."


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
    return f"{event.action_id} {how}{led}{because(event.fault)}; {count(event.remaining, 'action')} still waiting."


def _pending_stack_left(event: PendingStackLeft) -> str:
    return f"Nothing waits on the stack of work {event.work_id}, which is closed."


PENDING_SENTENCES: Sentences = {
    PendingActionPushed: _pending_action_pushed,
    PendingActionPlaced: _pending_action_placed,
    PendingResolveStarted: _pending_resolve_started,
    PendingEffectBegun: _pending_effect_begun,
    PendingActionReturned: _pending_action_returned,
    PendingActionPopped: _pending_action_popped,
    PendingStackLeft: _pending_stack_left,
}
