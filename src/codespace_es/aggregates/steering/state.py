"""Works and intents as they are now, with positions and revisions. Source: contract B6.1 to B6.3."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from codespace_es.aggregates.steering.events import Delivery, IntentKind
from codespace_es.vocabulary.event import Body
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

    @property
    def is_over(self) -> bool:
        """Nothing will happen to it any more."""
        return self.phase not in _WAITING

    @property
    def is_pending(self) -> bool:
        """It keeps its work from being closed: claimed, or queued so that the work may still claim it. See B6.3."""
        return self.phase == "claimed" or (self.phase == "queued" and self.delivery != "next_work")


@dataclass(frozen=True, slots=True)
class Queue:
    """The intents of a work, or of none. Follows from the intents; kept so that what is over costs an event nothing."""

    members: SharingMap[IntentId, None] = field(default_factory=SharingMap)
    waiting: SharingMap[IntentId, None] = field(default_factory=SharingMap)
    """Those that aren't over."""
    pending: int = 0
    """How many are `is_pending`."""
    last: int = 0
    """The highest position of all."""
    last_over: int = 0
    """The highest position of those that are over, which keep it for good."""

    def with_intent(self, known: Intent | None, intent: Intent) -> "Queue":
        """Return the queue once `intent` has taken the place of `known`, or was added; `last` may be too high."""
        if known is not None and known.position == intent.position and known.is_pending == intent.is_pending and (
            known.is_over == intent.is_over
        ):
            return self
        waiting = self.waiting
        if intent.is_over:
            waiting = waiting.without(intent.intent_id)
        elif known is None:
            waiting = waiting.with_item(intent.intent_id, None)
        return Queue(
            self.members.with_item(intent.intent_id, None) if known is None else self.members,
            waiting,
            self.pending + intent.is_pending - (known is not None and known.is_pending),
            max(self.last, intent.position),
            max(self.last_over, intent.position) if intent.is_over else self.last_over,
        )

    def without_intent(self, known: Intent) -> "Queue":
        """Return the queue without an intent that isn't over; `last` may be too high."""
        return replace(
            self, members=self.members.without(known.intent_id), waiting=self.waiting.without(known.intent_id),
            pending=self.pending - known.is_pending,
        )


_NO_QUEUE = Queue()


@dataclass(frozen=True, slots=True)
class Steering:
    """All works and intents of one workspace."""

    works: SharingMap[WorkId, Work] = field(default_factory=SharingMap)
    intents: SharingMap[IntentId, Intent] = field(default_factory=SharingMap)
    # What isn't shown follows from these two, and is kept so that no call has to look through them.
    open_works: SharingMap[WorkId, None] = field(default_factory=SharingMap, repr=False)
    """Those of `works` that aren't closed."""
    queues: SharingMap[WorkId | None, Queue] = field(default_factory=SharingMap, repr=False)
    """Which of `intents` belong to a work, or, with None, to none."""
    by_client_key: SharingMap[str, IntentId] = field(default_factory=SharingMap, repr=False)
    """Which intent was written under a writer's key."""
    claims: int = field(default=0, repr=False)
    """How many there were."""
    workspace_id: str | None = field(default=None, repr=False)
    """As the newest work names the workspace."""

    def queue(self, work_id: WorkId | None) -> Queue:
        """Return the queue of a work (None: of no work)."""
        return self.queues.get(work_id, _NO_QUEUE)

    def attached(self, work_id: WorkId | None) -> list[Intent]:
        """Return the intents of a work (None: of no work), by position; also those that are over, however many."""
        return sorted((self.intents[each] for each in self.queue(work_id).members), key=_place)

    def waiting(self, work_id: WorkId | None) -> list[Intent]:
        """Return the intents of a work (None: of no work) that aren't over, by position."""
        return sorted((self.intents[each] for each in self.queue(work_id).waiting), key=_place)

    def claimable(self, work_id: WorkId) -> list[Intent]:
        """Return what may be claimed in a work now, in the order of claims. Source: contract B6.4."""
        allowed = _CLAIMABLE[self.works[work_id].phase]
        return [each for each in self.waiting(work_id) if each.phase == "queued" and each.delivery in allowed]


def _place(intent: Intent) -> tuple[int, int]:
    return intent.position, intent.number


_CLAIMABLE: Mapping[WorkPhase, tuple[Delivery, ...]] = MappingProxyType({
    "active": ("next_checkpoint",),
    "closing": ("next_checkpoint", "after_current_work"),
    "closed": (),
})
UNCLAIMED: tuple[IntentPhase, ...] = ("draft", "queued")
"""What nobody has had yet: it may be edited, cancelled, adopted and detached."""
_WAITING: tuple[IntentPhase, ...] = (*UNCLAIMED, "claimed")
