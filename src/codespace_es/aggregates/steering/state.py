"""The fold: works and intents as they are now, with positions and revisions. Source: contract B6.1 to B6.3."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from codespace_es.aggregates.steering.events import (
    Delivery,
    IntentCancelled,
    IntentClaimed,
    IntentCompleted,
    IntentDrafted,
    IntentEdited,
    IntentKind,
    IntentQueued,
    IntentRedelivered,
    IntentReleased,
    IntentsReordered,
    StopRequested,
    WorkClosed,
    WorkClosing,
    WorkOpened,
)
from codespace_es.vocabulary.decider import refuse_event
from codespace_es.vocabulary.event import Body, Event
from codespace_es.vocabulary.identifiers import IntentId, WorkId

WorkPhase = Literal["active", "closing", "closed"]
IntentPhase = Literal["draft", "queued", "claimed", "done", "blocked", "cancelled"]


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work that people steer."""

    work_id: WorkId
    workspace_id: str
    title: str | None
    phase: WorkPhase = "active"
    queue_revision: int = 1
    """Rises with every change of an attached intent."""

    @property
    def is_open(self) -> bool:
        """It isn't closed."""
        return self.phase != "closed"


@dataclass(frozen=True, slots=True)
class Intent:
    """An instruction of a person: text, never authority."""

    intent_id: IntentId
    work_id: WorkId | None
    kind: IntentKind
    delivery: Delivery
    body: Body | None
    phase: IntentPhase
    position: int
    revision: int = 1
    client_key: str | None = None


@dataclass(frozen=True, slots=True)
class Steering:
    """All works and intents of one workspace."""

    works: Mapping[WorkId, Work] = field(default_factory=dict)
    intents: Mapping[IntentId, Intent] = field(default_factory=dict)

    def attached(self, work_id: WorkId | None) -> list[Intent]:
        """Return the intents of a work (None: of no work), by position."""
        return sorted((each for each in self.intents.values() if each.work_id == work_id), key=lambda i: i.position)

    def claimable(self, work_id: WorkId) -> list[Intent]:
        """Return what may be claimed in a work now, in the order of claims. Source: contract B6.4."""
        work = self.works[work_id]
        allowed = ("next_checkpoint",) if work.phase == "active" else ("next_checkpoint", "after_current_work")
        return [each for each in self.attached(work_id) if each.phase == "queued" and each.delivery in allowed]


def evolve(state: Steering, event: Event) -> Steering:
    """Return the state after `event`."""
    match event:
        case WorkOpened():
            return _opened(state, event)
        case WorkClosing(work_id=work_id):
            return _with_work(state, replace(state.works[work_id], phase="closing"))
        case WorkClosed(work_id=work_id, detached=detached):
            closed = _with_work(state, replace(state.works[work_id], phase="closed"))
            return _with_intents(closed, (replace(closed.intents[each], work_id=None) for each in detached))
        case StopRequested():
            return _stopped(state, event)
        case IntentDrafted():
            drafted = Intent(
                event.intent_id, event.work_id, event.kind, event.delivery, event.body, "draft",
                _next_position(state, event.work_id), client_key=event.client_key,
            )
            return _touched(state, drafted)
        case IntentEdited(intent_id=intent_id, body=body, delivery=delivery):
            before = state.intents[intent_id]
            edited = replace(
                before, body=body, delivery=delivery or before.delivery, revision=before.revision + 1
            )
            return _touched(state, edited)
        case IntentsReordered(intent_ids=intent_ids):
            moved = (replace(state.intents[each], position=n) for n, each in enumerate(intent_ids, start=1))
            return _touched(_with_intents(state, moved), state.intents[intent_ids[0]], is_new=False)
        case _:
            return _changed_phase(state, event)


def _changed_phase(state: Steering, event: Event) -> Steering:
    match event:
        case IntentQueued(intent_id=intent_id):
            before = state.intents[intent_id]
            return _touched(state, replace(before, phase="queued", revision=before.revision + 1))
        case IntentClaimed(intent_id=intent_id):
            return _touched(state, replace(state.intents[intent_id], phase="claimed"))
        case IntentRedelivered():
            return state
        case IntentReleased(intent_id=intent_id):
            return _touched(state, replace(state.intents[intent_id], phase="queued"))
        case IntentCompleted(intent_id=intent_id, outcome=outcome):
            return _touched(state, replace(state.intents[intent_id], phase=outcome))
        case IntentCancelled(intent_id=intent_id):
            return _touched(state, replace(state.intents[intent_id], phase="cancelled"))
        case _:
            raise refuse_event(state, event)


def _opened(state: Steering, event: WorkOpened) -> Steering:
    work = Work(event.work_id, event.workspace_id, event.title)
    adopted = (_adopted(state.intents[each], event.work_id, n) for n, each in enumerate(event.adopted, start=1))
    return _with_intents(_with_work(state, work), adopted)


def _adopted(intent: Intent, work_id: WorkId, position: int) -> Intent:
    """Return an intent of nobody as one of a work: what waited for the next work waits for its end."""
    delivery = "after_current_work" if intent.delivery == "next_work" else intent.delivery
    return replace(intent, work_id=work_id, delivery=delivery, position=position, revision=intent.revision + 1)


def _stopped(state: Steering, event: StopRequested) -> Steering:
    work_id = event.work_id if event.is_claimed else None
    notice = Intent(
        event.intent_id, work_id, "stop_notice", "next_checkpoint", event.body,
        "claimed" if event.is_claimed else "queued", _next_position(state, work_id),
    )
    return _touched(state, notice)


def _next_position(state: Steering, work_id: WorkId | None) -> int:
    return max((each.position for each in state.intents.values() if each.work_id == work_id), default=0) + 1


def _touched(state: Steering, intent: Intent, *, is_new: bool = True) -> Steering:
    """Return the state with `intent`, and the revision of its work's queue raised."""
    after = _with_intents(state, (intent,)) if is_new else state
    work = None if intent.work_id is None else after.works[intent.work_id]
    return after if work is None else _with_work(after, replace(work, queue_revision=work.queue_revision + 1))


def _with_work(state: Steering, work: Work) -> Steering:
    return replace(state, works={**state.works, work.work_id: work})


def _with_intents(state: Steering, intents: Iterable[Intent]) -> Steering:
    return replace(state, intents={**state.intents, **{each.intent_id: each for each in intents}})
