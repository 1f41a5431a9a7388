"""What became of an action, from the log: the stored answer again, or the stored error."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from codespace_es.aggregates.pending.events import (
    PendingActionPopped,
    PendingActionPushed,
    PendingActionReturned,
    PendingResolveStarted,
)
from codespace_es.ports.log import EventLog
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Body, RecordedEvent
from codespace_es.vocabulary.identifiers import ActionId, OperationId, StreamId

Ended = PendingActionPopped | PendingActionReturned
_HISTORY_EVENTS = 64
"""How many are read at first for the end of an action: mostly it comes soon."""


def find_end(
    history: Sequence[RecordedEvent], action_id: str, *, effect_id: OperationId | None = None
) -> Ended | None:
    """Return the end of an action, or of the one resolve that had `effect_id`; None while there is none."""
    is_within = effect_id is None
    for recorded in history:
        event = recorded.event
        if isinstance(event, PendingResolveStarted) and effect_id is not None:
            is_within = is_within or event.effect_id == effect_id
        if not is_within:
            continue
        if isinstance(event, PendingActionPopped) and event.action_id == action_id:
            return event
        if effect_id is not None and isinstance(event, PendingActionReturned) and event.action_id == action_id:
            return event
    return None


async def history_to_end(
    log: EventLog, stream_id: StreamId, begun_at: int, action_id: str
) -> tuple[Sequence[RecordedEvent], Ended | None]:
    """Return what was recorded of a stack from an action's push on, and its end; no more than it takes to find that."""
    limit = _HISTORY_EVENTS
    while True:
        history = await log.read_stream(stream_id, since=begun_at, limit=limit)
        end = find_end(history, action_id)
        if end is not None or len(history) < limit:
            return history, end
        limit *= 4


async def tell_end(
    log: EventLog, history: Sequence[RecordedEvent], end: Ended, *, is_replayed: bool
) -> ResolveResult:
    """Return the stored answer. Raises the stored error. `history` begins with the push of the action, or before."""
    stream_id = history[0].stream_id
    detail = {"replayed": True} if is_replayed else {}
    if isinstance(end, PendingActionReturned):
        raise end.fault.to_error()
    pushed, started = _beginning(history, end.action_id)
    if end.outcome == "orphaned" and end.fault is None:
        raise CodespaceError(
            ErrorCode.APPLY_FAILED,
            f"{end.action_id} is over, unresolved: the server that had its callback is gone.",
            detail={"id": end.action_id, "label": pushed.label, "outcome": "orphaned", **detail},
        )
    if end.outcome in ("failed", "orphaned"):
        assert end.fault is not None, "what has failed says why"
        raise end.fault.to_error().with_detail(**detail)
    assert started is not None, "what was applied or discarded was resolved"
    answer = await _stored(log, stream_id, end, pushed, started)
    return answer.model_copy(update={
        "replayed": is_replayed,
        "details": await read_json(log, stream_id, pushed.details),
        "extra": await read_json(log, stream_id, started.extra),
    })


async def read_json(log: EventLog, stream_id: StreamId, body: Body | None) -> Any:
    """Return what a body of the stack holds; None if there is none, or it was pruned."""
    stored = None if body is None else await log.read_body(stream_id, body.digest)
    return None if stored is None else json.loads(stored)


def _beginning(
    history: Sequence[RecordedEvent], action_id: ActionId
) -> tuple[PendingActionPushed, PendingResolveStarted | None]:
    """Return the push of an action and the beginning of its last resolve."""
    events = [each.event for each in history]
    pushed = next(each for each in events if isinstance(each, PendingActionPushed) and each.action_id == action_id)
    started = next((
        each for each in reversed(events) if isinstance(each, PendingResolveStarted) and each.action_id == action_id
    ), None)
    return pushed, started


async def _stored(
    log: EventLog, stream_id: StreamId, end: PendingActionPopped, pushed: PendingActionPushed,
    started: PendingResolveStarted,
) -> ResolveResult:
    """Return the answer as it was given; where it was pruned, what the events still say."""
    assert end.result is not None, "what was applied or discarded has its answer"
    stored = await log.read_body(stream_id, end.result.digest)
    try:
        return ResolveResult.model_validate_json(stored or b"")
    except ValidationError:
        pruned = Notice(kind="result_pruned", message="The stored answer was pruned: this is what the events say.")
        return ResolveResult.model_validate({
            "action": started.action, "outcome": end.outcome, "id": end.action_id, "label": pushed.label,
            "source_tool_name": pushed.source_tool_name, "reason": end.reason, "text": "",
            "operation_id": end.effect_id, "remaining": end.remaining, "warnings": (pruned,),
        })
