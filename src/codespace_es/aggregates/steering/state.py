"""The fold: works and intents as they are now, with positions and revisions. Source: contract B6.1 to B6.3."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
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
from codespace_es.vocabulary.sharing_map import SharingMap

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
    number: int = field(repr=False)
    """How many the workspace had when it was written: of two with one position it decides."""
    revision: int = 1
    client_key: str | None = None
    claim_number: int = 0
    """Rises with every claim in the workspace, so that the oldest one can be told; 0: never claimed."""


@dataclass(frozen=True, slots=True)
class Steering:
    """All works and intents of one workspace."""

    works: SharingMap[WorkId, Work] = field(default_factory=SharingMap)
    intents: SharingMap[IntentId, Intent] = field(default_factory=SharingMap)
    # What isn't shown follows from these two, and is kept so that no call has to look through them.
    open_works: SharingMap[WorkId, Work] = field(default_factory=SharingMap, repr=False)
    """Those of `works` that aren't closed."""
    intents_of: SharingMap[WorkId | None, tuple[IntentId, ...]] = field(default_factory=SharingMap, repr=False)
    """Which of `intents` belong to a work, or, with None, to none."""
    claims: int = field(default=0, repr=False)
    """How many there were."""
    workspace_id: str | None = field(default=None, repr=False)
    """As the newest work names the workspace."""

    def attached(self, work_id: WorkId | None) -> list[Intent]:
        """Return the intents of a work (None: of no work), by position."""
        return sorted((self.intents[each] for each in self.intents_of.get(work_id, ())), key=_place)

    def claimable(self, work_id: WorkId) -> list[Intent]:
        """Return what may be claimed in a work now, in the order of claims. Source: contract B6.4."""
        allowed = _CLAIMABLE[self.works[work_id].phase]
        return [each for each in self.attached(work_id) if each.phase == "queued" and each.delivery in allowed]


def _place(intent: Intent) -> tuple[int, int]:
    return intent.position, intent.number


_CLAIMABLE: Mapping[WorkPhase, tuple[Delivery, ...]] = MappingProxyType({
    "active": ("next_checkpoint",),
    "closing": ("next_checkpoint", "after_current_work"),
    "closed": (),
})
UNCLAIMED: tuple[IntentPhase, ...] = ("draft", "queued")
"""What nobody has had yet: it may be edited, cancelled, adopted and detached."""


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
    for intent_id in event.detached:
        old = _intent_of(state, event, event.work_id, intent_id, UNCLAIMED)
        after = _with_intents(after, [replace(old, work_id=None, position=_next_position(after, None))])
    return after


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
    return max((each.position for each in state.attached(work_id)), default=0) + 1


def _changed(state: Steering, intent: Intent) -> Steering:
    """Return the state with `intent` as it is now, and the revision of its work's queue raised."""
    after = _with_intents(state, (intent,))
    if intent.work_id is None:
        return after
    work = after.works[intent.work_id]
    return _with_work(after, replace(work, queue_revision=work.queue_revision + 1))


def _with_work(state: Steering, work: Work) -> Steering:
    known = state.open_works
    is_open = known.with_item(work.work_id, work) if work.is_open else known.without(work.work_id)
    return replace(state, works=state.works.with_item(work.work_id, work), open_works=is_open)


def _with_intents(state: Steering, intents: Iterable[Intent]) -> Steering:
    for intent in intents:
        known = state.intents.get(intent.intent_id)
        state = replace(
            state, intents=state.intents.with_item(intent.intent_id, intent),
            intents_of=_moved(state.intents_of, known, intent), claims=max(state.claims, intent.claim_number),
        )
    return state


def _moved(
    belonging: SharingMap[WorkId | None, tuple[IntentId, ...]], known: Intent | None, intent: Intent
) -> SharingMap[WorkId | None, tuple[IntentId, ...]]:
    """Return which intents belong to which work, once `intent` has taken the place of `known`."""
    if known is not None and known.work_id == intent.work_id:
        return belonging
    if known is not None:
        left = tuple(each for each in belonging[known.work_id] if each != intent.intent_id)
        belonging = belonging.with_item(known.work_id, left)
    return belonging.with_item(intent.work_id, (*belonging.get(intent.work_id, ()), intent.intent_id))
