"""Works, and what people want of them."""

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
from codespace_es.projections.sentences.words import Sentences, count


def _work_opened(event: WorkOpened) -> str:
    title = f" ({event.title})" if event.title else ""
    taken = f", taking over {count(len(event.adopted), 'intent')}" if event.adopted else ""
    return f"{event.work_id}{title} was opened in workspace {event.workspace_id}{taken}."


def _work_closing(event: WorkClosing) -> str:
    return f"{event.work_id} is about to close: what was to come after it is delivered now."


def _work_closed(event: WorkClosed) -> str:
    left = f"; {count(len(event.detached), 'intent')} went back to the workspace" if event.detached else ""
    return f"{event.work_id} was closed{left}."


def _stop_requested(event: StopRequested) -> str:
    return f"{event.work_id} was stopped; {count(len(event.process_ids), 'command')} had to end."


def _intent_drafted(event: IntentDrafted) -> str:
    return f"A person drafted {event.intent_id} ({event.kind}, {event.delivery})."


def _intent_edited(event: IntentEdited) -> str:
    return f"{event.intent_id} was edited."


def _intent_queued(event: IntentQueued) -> str:
    return f"{event.intent_id} was queued: agents may have it."


def _intents_reordered(event: IntentsReordered) -> str:
    return f"The {count(len(event.intent_ids), 'queued intent')} of {event.work_id} got another order."


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


STEERING_SENTENCES: Sentences = {
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
}
