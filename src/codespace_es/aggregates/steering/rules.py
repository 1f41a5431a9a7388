"""What may be done to works and intents. Source: contract B6.2 to B6.5, A6; decision 29."""

from dataclasses import dataclass
from typing import Literal, assert_never

from codespace_es.aggregates.steering.events import (
    Delivery,
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
from codespace_es.aggregates.steering.fold import evolve
from codespace_es.aggregates.steering.state import UNCLAIMED, Intent, Steering, Work
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Body, Event
from codespace_es.vocabulary.identifiers import IntentId, WorkId

# Commands


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Begin a work; what waits unattached is adopted."""

    opened: WorkOpened


@dataclass(frozen=True, slots=True)
class FinishWork:
    """End a work, as far as what people have queued allows it."""

    work_id: WorkId


@dataclass(frozen=True, slots=True)
class StopWork:
    """Stop a work at once."""

    stop: StopRequested


@dataclass(frozen=True, slots=True)
class DraftIntent:
    """Write an instruction; on a closed work it waits for the next one."""

    drafted: IntentDrafted


@dataclass(frozen=True, slots=True)
class EditIntent:
    """Change what nobody has claimed yet."""

    intent_id: IntentId
    revision: int
    body: Body
    delivery: Delivery | None


@dataclass(frozen=True, slots=True)
class QueueIntent:
    """Let agents have it."""

    intent_id: IntentId
    revision: int


@dataclass(frozen=True, slots=True)
class ReorderIntents:
    """Give the queue of a work another order."""

    work_id: WorkId
    intent_ids: tuple[IntentId, ...]


@dataclass(frozen=True, slots=True)
class ClaimNext:
    """Take the next one that may be claimed, or with `is_redelivery` the oldest that is claimed."""

    work_id: WorkId
    is_redelivery: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseIntent:
    """Put a claimed one back."""

    intent_id: IntentId


@dataclass(frozen=True, slots=True)
class CompleteIntent:
    """Be done with a claimed one."""

    work_id: WorkId
    intent_id: IntentId
    outcome: Literal["done", "blocked"]


@dataclass(frozen=True, slots=True)
class CancelIntent:
    """Take it back."""

    intent_id: IntentId


SteeringCommand = (
    OpenWork | FinishWork | StopWork | DraftIntent | EditIntent | QueueIntent | ReorderIntents | ClaimNext
    | ReleaseIntent | CompleteIntent | CancelIntent
)

# Decide


def decide(state: Steering, command: SteeringCommand) -> list[Event]:  # noqa: C901, PLR0912 - one case a command
    """Return the events that `command` leads to; none where there is nothing to claim or nothing to end yet.

    Raises:
        CodespaceError: WORK_NOT_FOUND, WORK_CLOSED, INTENT_NOT_FOUND, INTENT_ALREADY_CLAIMED, INTENT_NOT_EDITABLE,
            INTENT_REVISION_CONFLICT, INVALID_ARGUMENT.
    """
    match command:
        case OpenWork(opened):
            assert opened.work_id not in state.works, "ids are made anew"
            waiting = [each.intent_id for each in state.waiting(None) if each.phase in UNCLAIMED]
            return [opened.model_copy(update={"adopted": tuple(waiting)})]
        case FinishWork(work_id):
            return _finish(state, open_work(state, work_id))
        case StopWork(stop):
            assert stop.intent_id not in state.intents, "ids are made anew"
            is_open = find_work(state, stop.work_id).is_open
            return [stop.model_copy(update={"is_claimed": is_open})]
        case DraftIntent(drafted):
            return _draft(state, drafted)
        case EditIntent(intent_id, revision, body, delivery):
            intent = _editable(state, intent_id)
            _require_revision(intent, revision)
            return [IntentEdited(intent_id=intent_id, body=body, delivery=delivery)]
        case QueueIntent(intent_id, revision):
            intent = find_intent(state, intent_id)
            if intent.phase != "draft":
                raise _not_editable(intent)
            _require_revision(intent, revision)
            return [IntentQueued(intent_id=intent_id)]
        case ReorderIntents(work_id, intent_ids):
            return _reorder(state, work_id, intent_ids)
        case ClaimNext(work_id, is_redelivery):
            return _claim(state, open_work(state, work_id), is_redelivery=is_redelivery)
        case ReleaseIntent(intent_id):
            _require_claimed(find_intent(state, intent_id))
            return [IntentReleased(intent_id=intent_id)]
        case CompleteIntent(work_id, intent_id, outcome):
            find_work(state, work_id)
            intent = find_intent(state, intent_id, work_id=work_id)
            _require_claimed(intent)
            return [IntentCompleted(intent_id=intent_id, outcome=outcome)]
        case CancelIntent(intent_id):
            _editable(state, intent_id)
            return [IntentCancelled(intent_id=intent_id)]
        case _:
            assert_never(command)


def find_work(state: Steering, work_id: str) -> Work:
    """Return a work. Raises WORK_NOT_FOUND."""
    work = state.works.get(WorkId(work_id))
    if work is None:
        raise CodespaceError(ErrorCode.WORK_NOT_FOUND, f"No work {work_id[:100]!r} was opened.")
    return work


def open_work(state: Steering, work_id: str) -> Work:
    """Return an open work. Raises WORK_NOT_FOUND, WORK_CLOSED."""
    work = find_work(state, work_id)
    if not work.is_open:
        raise CodespaceError(ErrorCode.WORK_CLOSED, f"{work_id} is closed.")
    return work


def find_intent(state: Steering, intent_id: str, *, work_id: WorkId | None = None) -> Intent:
    """Return an intent, of `work_id` if that is given. Raises INTENT_NOT_FOUND."""
    intent = state.intents.get(IntentId(intent_id))
    if intent is None or (work_id is not None and intent.work_id != work_id):
        raise CodespaceError(ErrorCode.INTENT_NOT_FOUND, f"No intent {intent_id[:100]!r} is there.")
    return intent


def count_pending(state: Steering, work_id: WorkId) -> int:
    """Return how many intents keep a work from being closed: claimed ones, and queued ones that it may still claim."""
    return state.queue(work_id).pending


def _finish(state: Steering, work: Work) -> list[Event]:
    intents = state.waiting(work.work_id)
    if count_pending(state, work.work_id) == 0:
        left = tuple(each.intent_id for each in intents if each.phase in UNCLAIMED)
        return [WorkClosed(work_id=work.work_id, detached=left)]
    is_held_up = any(
        each.phase == "claimed" or (each.phase == "queued" and each.delivery == "next_checkpoint") for each in intents
    )
    return [] if is_held_up or work.phase == "closing" else [WorkClosing(work_id=work.work_id)]


def _draft(state: Steering, drafted: IntentDrafted) -> list[Event]:
    if drafted.client_key is not None and drafted.client_key in state.by_client_key:
        return []
    assert drafted.intent_id not in state.intents, "ids are made anew"
    if drafted.work_id is not None and not find_work(state, drafted.work_id).is_open:
        return [drafted.model_copy(update={"work_id": None, "delivery": "next_work"})]
    return [drafted]


def _reorder(state: Steering, work_id: WorkId, intent_ids: tuple[IntentId, ...]) -> list[Event]:
    find_work(state, work_id)
    queued = {each.intent_id for each in state.waiting(work_id) if each.phase == "queued"}
    if len(intent_ids) != len(queued) or set(intent_ids) != queued:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"intent_ids has to name exactly the {len(queued)} queued intents of {work_id}, each once.",
            detail={"field": "intent_ids", "queued": sorted(queued)},
        )
    return [IntentsReordered(work_id=work_id, intent_ids=intent_ids)] if intent_ids else []


def _claim(state: Steering, work: Work, *, is_redelivery: bool) -> list[Event]:
    if is_redelivery:
        claimed = [each for each in state.waiting(work.work_id) if each.phase == "claimed"]
        oldest = min(claimed, key=lambda each: each.claim_number, default=None)
        return [] if oldest is None else [IntentRedelivered(intent_id=oldest.intent_id)]
    claimable = state.claimable(work.work_id)
    return [IntentClaimed(intent_id=claimable[0].intent_id)] if claimable else []


def _editable(state: Steering, intent_id: IntentId) -> Intent:
    intent = find_intent(state, intent_id)
    if intent.phase == "claimed":
        raise CodespaceError(ErrorCode.INTENT_ALREADY_CLAIMED, f"{intent_id} is claimed: an agent works on it.")
    if intent.phase not in UNCLAIMED:
        raise _not_editable(intent)
    return intent


def _require_claimed(intent: Intent) -> None:
    if intent.phase != "claimed":
        raise _not_editable(intent)


def _require_revision(intent: Intent, revision: int) -> None:
    if intent.revision != revision:
        raise CodespaceError(
            ErrorCode.INTENT_REVISION_CONFLICT,
            f"{intent.intent_id} is at revision {intent.revision}, not {revision}.",
            detail={"revision": intent.revision},
        )


def _not_editable(intent: Intent) -> CodespaceError:
    return CodespaceError(ErrorCode.INTENT_NOT_EDITABLE, f"{intent.intent_id} is {intent.phase}.")


STEERING: Decider[Steering, SteeringCommand] = Decider(Steering(), evolve, decide)
