"""The fold: what each event makes of works and intents. Source: contract B6.1 to B6.3."""

from collections.abc import Iterable
from dataclasses import replace

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
from codespace_es.aggregates.steering.state import UNCLAIMED, Intent, IntentPhase, Queue, Steering, Work
from codespace_es.vocabulary.decider import refuse_event
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import IntentId, WorkId
from codespace_es.vocabulary.sharing_map import SharingMap


def evolve(state: Steering, event: Event) -> Steering:
    """Return the state after `event`; one that no rule would have allowed is refused, as in every aggregate."""
    match event:
        case WorkOpened():
            return _opened(state, event)
        case WorkClosing(work_id=work_id):
            return _with_work(state, replace(_open_work(state, event, work_id), phase="closing"))
        case WorkClosed():
            return _closed(state, event)
        case StopRequested():
            return _stopped(state, event)
        case IntentsReordered():
            return _reordered(state, event)
        case _:
            return _of_one_intent(state, event)


def _of_one_intent(state: Steering, event: Event) -> Steering:
    match event:
        case IntentDrafted():
            return _drafted(state, event)
        case IntentEdited(intent_id=intent_id, body=body, delivery=delivery):
            old = _intent(state, event, intent_id, UNCLAIMED)
            return _changed(
                state, replace(old, body=body, delivery=delivery or old.delivery, revision=old.revision + 1)
            )
        case IntentQueued(intent_id=intent_id):
            old = _intent(state, event, intent_id, ("draft",))
            return _changed(state, replace(old, phase="queued", revision=old.revision + 1))
        case IntentClaimed(intent_id=intent_id):
            old = _intent(state, event, intent_id, ("queued",))
            if old.work_id is None:
                raise refuse_event(state, event)
            return _changed(state, replace(old, phase="claimed", claim_number=state.claims + 1))
        case IntentRedelivered(intent_id=intent_id):
            _intent(state, event, intent_id, ("claimed",))
            return state
        case IntentReleased(intent_id=intent_id):
            return _changed(state, replace(_intent(state, event, intent_id, ("claimed",)), phase="queued"))
        case IntentCompleted(intent_id=intent_id, outcome=outcome):
            return _changed(state, replace(_intent(state, event, intent_id, ("claimed",)), phase=outcome))
        case IntentCancelled(intent_id=intent_id):
            return _changed(state, replace(_intent(state, event, intent_id, UNCLAIMED), phase="cancelled"))
        case _:
            raise refuse_event(state, event)


def _opened(state: Steering, event: WorkOpened) -> Steering:
    """Return the state with a new work: what waited for the next work now waits for the end of this one."""
    if event.work_id in state.works:
        raise refuse_event(state, event)
    adopted = []
    for position, intent_id in enumerate(event.adopted, start=1):
        old = _intent_of(state, event, None, intent_id, UNCLAIMED)
        delivery = "after_current_work" if old.delivery == "next_work" else old.delivery
        adopted.append(replace(
            old, work_id=event.work_id, delivery=delivery, position=position, revision=old.revision + 1
        ))
    named = replace(state, workspace_id=event.workspace_id)
    return _with_intents(_with_work(named, Work(event.work_id, event.workspace_id, event.title)), adopted)


def _closed(state: Steering, event: WorkClosed) -> Steering:
    """Return the state without an open work: what it leaves goes behind what waits unattached already."""
    after = _with_work(state, replace(_open_work(state, event, event.work_id), phase="closed"))
    left = [_intent_of(state, event, event.work_id, intent_id, UNCLAIMED) for intent_id in event.detached]
    return _with_intents(after, [
        replace(old, work_id=None, position=position)
        for position, old in enumerate(left, start=_next_position(after, None))
    ])


def _stopped(state: Steering, event: StopRequested) -> Steering:
    work = state.works.get(event.work_id)
    if work is None or work.is_open != event.is_claimed or event.intent_id in state.intents:
        raise refuse_event(state, event)
    work_id = event.work_id if event.is_claimed else None
    notice = Intent(
        event.intent_id, work_id, "stop_notice", "next_checkpoint", event.body,
        "claimed" if event.is_claimed else "queued", _next_position(state, work_id), len(state.intents),
        claim_number=state.claims + 1 if event.is_claimed else 0,
    )
    return _changed(state, notice)


def _drafted(state: Steering, event: IntentDrafted) -> Steering:
    if event.intent_id in state.intents:
        raise refuse_event(state, event)
    if event.work_id is not None:
        _open_work(state, event, event.work_id)
    return _changed(state, Intent(
        event.intent_id, event.work_id, event.kind, event.delivery, event.body, "draft",
        _next_position(state, event.work_id), len(state.intents), client_key=event.client_key,
    ))


def _reordered(state: Steering, event: IntentsReordered) -> Steering:
    work = _open_work(state, event, event.work_id)
    moved = [
        replace(_intent_of(state, event, work.work_id, intent_id, ("queued",)), position=position)
        for position, intent_id in enumerate(event.intent_ids, start=1)
    ]
    return _with_work(_with_intents(state, moved), replace(work, queue_revision=work.queue_revision + 1))


def _open_work(state: Steering, event: Event, work_id: WorkId) -> Work:
    work = state.works.get(work_id)
    if work is None or not work.is_open:
        raise refuse_event(state, event)
    return work


def _intent(state: Steering, event: Event, intent_id: IntentId, phases: tuple[IntentPhase, ...]) -> Intent:
    """Return the intent that `event` is about, which has to be in one of `phases`."""
    intent = state.intents.get(intent_id)
    if intent is None or intent.phase not in phases:
        raise refuse_event(state, event)
    return intent


def _intent_of(
    state: Steering, event: Event, work_id: WorkId | None, intent_id: IntentId, phases: tuple[IntentPhase, ...]
) -> Intent:
    """Return the intent, which has to belong to `work_id` (None: to no work), too."""
    intent = _intent(state, event, intent_id, phases)
    if intent.work_id != work_id:
        raise refuse_event(state, event)
    return intent


def _next_position(state: Steering, work_id: WorkId | None) -> int:
    return state.queue(work_id).last + 1


def _changed(state: Steering, intent: Intent) -> Steering:
    """Return the state with `intent` as it is now, and the revision of its work's queue raised."""
    after = _with_intents(state, (intent,))
    if intent.work_id is None:
        return after
    work = after.works[intent.work_id]
    return _with_work(after, replace(work, queue_revision=work.queue_revision + 1))


def _with_work(state: Steering, work: Work) -> Steering:
    known = state.open_works
    if not work.is_open:
        known = known.without(work.work_id)
    elif work.work_id not in known:
        known = known.with_item(work.work_id, None)
    return Steering(  # not by `replace`, which takes a fold several times as long
        state.works.with_item(work.work_id, work), state.intents, known, state.queues, state.by_client_key,
        state.claims, state.workspace_id,
    )


def _with_intents(state: Steering, intents: Iterable[Intent]) -> Steering:
    lowered: dict[WorkId | None, None] = {}
    for intent in intents:
        known = state.intents.get(intent.intent_id)
        keys = state.by_client_key
        if known is None and intent.client_key is not None and intent.client_key not in keys:
            keys = keys.with_item(intent.client_key, intent.intent_id)
        is_lower = known is not None and (known.work_id != intent.work_id or intent.position < known.position)
        if known is not None and is_lower and known.position == state.queue(known.work_id).last:
            lowered[known.work_id] = None
        state = Steering(
            state.works, state.intents.with_item(intent.intent_id, intent), state.open_works,
            _moved(state, known, intent), keys, max(state.claims, intent.claim_number), state.workspace_id,
        )
    for work_id in lowered:
        state = replace(state, queues=state.queues.with_item(work_id, _measured(state, state.queue(work_id))))
    return state


def _moved(state: Steering, known: Intent | None, intent: Intent) -> SharingMap[WorkId | None, Queue]:
    """Return the queues once `intent` has taken the place of `known`."""
    queues = state.queues
    if known is not None and known.work_id != intent.work_id:
        queues = queues.with_item(known.work_id, state.queue(known.work_id).without_intent(known))
        known = None
    queue = state.queue(intent.work_id)
    changed = queue.with_intent(known, intent)
    return queues if changed is queue else queues.with_item(intent.work_id, changed)


def _measured(state: Steering, queue: Queue) -> Queue:
    """Return a queue with the highest position that it has now."""
    return replace(queue, last=max((state.intents[each].position for each in queue.waiting), default=queue.last_over))
