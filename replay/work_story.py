"""A work or an instruction as the log has it: what people asked for, in what state that is, and what was done for it.

Works and instructions have no stream of their own: those of a workspace share one. So its events are folded, and those
that name the work, or one of its instructions, are its story.
"""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.approval import ApprovalCreated
from codespace_es.aggregates.operation import OperationMinted
from codespace_es.aggregates.process import ProcessNotStarted, ProcessSpawned
from codespace_es.aggregates.steering import STEERING
from codespace_es.aggregates.steering.events import WorkOpened
from codespace_es.aggregates.steering.state import Intent, Steering
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.projections.timeline import TimelineEntry, fields_of, links, project
from codespace_es.vocabulary.event import Event, RecordedEvent
from codespace_es.vocabulary.identifiers import IntentId, StreamId, WorkId
from replay.moments import event_at
from replay.source import LogSource

_DONE_SHOWN_MAX = 1_000
INTENTS_SHOWN_MAX = 1_000
"""Of a work, with their texts."""
BEGINNINGS = (OperationMinted, ProcessSpawned, ProcessNotStarted, ApprovalCreated)
"""Events with which something begins that was asked for."""


class IntentStory(BaseModel):
    """One instruction of a person."""

    model_config = ConfigDict(frozen=True)

    intent_id: str = Field(description="Which.")
    work_id: str | None = Field(default=None, description="The work it belongs to.")
    kind: str = Field(description="follow_up, note or stop_notice.")
    state: str = Field(description="draft, queued, claimed, done, blocked or cancelled.")
    text: str | None = Field(default=None, description="What was asked; absent if it was pruned, or nothing was said.")


class WorkStory(BaseModel):
    """One piece of work."""

    model_config = ConfigDict(frozen=True)

    work_id: str = Field(description="Which.")
    workspace_id: str = Field(description="Where.")
    title: str | None = Field(default=None, description="What it is about.")
    state: str = Field(description="active, closing or closed.")
    intents: tuple[IntentStory, ...] = Field(
        default=(), description="What people asked for in it, in order; of more than 1,000 what waits and the newest."
    )
    intent_count: int = Field(default=0, description="How much they asked for in all.")
    done: tuple[TimelineEntry, ...] = Field(default=(), description="What was begun for it; at most 1,000.")
    done_count: int = Field(default=0, description="How much was begun in all.")


class SteeringOf(BaseModel):
    """What a name leads to, and the events that are about it, to be taken once."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    recorded: Iterator[RecordedEvent]
    work: WorkStory | None = None
    intent: IntentStory | None = None


def tell_steering(source: LogSource, name: str) -> SteeringOf | None:
    """Return the story of the work or instruction `name`, None if there is none. Raises StoreUnavailableError."""
    for stream_id in _steering_streams(source):
        first = next((each for each in source.walk_stream(stream_id) if name in names_of(each.event)), None)
        if first is None:
            continue
        state = fold_steering(source.walk_stream(stream_id))
        work, intent = state.works.get(WorkId(name)), state.intents.get(IntentId(name))
        if intent is not None:
            told = tell_intent(source, stream_id, intent)
            return SteeringOf(recorded=_naming(source, stream_id, {name}), intent=told)
        if work is not None:
            story = tell_work(source, stream_id, state, work.work_id)
            own = {name, *state.queue(work.work_id).members}
            done, count = _done(source, work.work_id, first.position)
            story = story.model_copy(update={"done": done, "done_count": count})
            return SteeringOf(recorded=_naming(source, stream_id, own), work=story)
    return None


def tell_work(
    source: LogSource, stream_id: StreamId, state: Steering, work_id: WorkId, *, intents_max: int = INTENTS_SHOWN_MAX
) -> WorkStory:
    """Return a work with its instructions, without what was done for it."""
    work, intents = state.works[work_id], state.attached(work_id)
    return WorkStory(
        work_id=work_id, workspace_id=work.workspace_id, title=work.title, state=work.phase,
        intents=tuple(tell_intent(source, stream_id, each) for each in _chosen(intents, intents_max)),
        intent_count=len(intents),
    )


def _chosen(intents: Sequence[Intent], most: int) -> Sequence[Intent]:
    """Return no more than `most` intents in their order: first what isn't over is chosen, then from the end."""
    if len(intents) <= most:
        return intents
    by_need = [*(each for each in intents if not each.is_over), *(each for each in reversed(intents) if each.is_over)]
    chosen = {each.intent_id for each in by_need[:most]}
    return [each for each in intents if each.intent_id in chosen]


def fold_steering(recorded: Iterable[RecordedEvent]) -> Steering:
    """Return the works and instructions of a workspace. Raises StoreUnavailableError for what can't be."""
    try:
        return STEERING.fold_recorded(recorded)
    except AssertionError as refusal:
        raise StoreUnavailableError(f"it tells a story that can't be, see `verify`: {refusal}") from refusal


def intents_of(source: LogSource, work_id: str) -> frozenset[str]:
    """Return the instructions that were ever meant for a work."""
    found: set[str] = set()
    for stream_id in _steering_streams(source):
        for recorded in source.walk_stream(stream_id):
            event = recorded.event
            if getattr(event, "work_id", None) == work_id:
                named = (getattr(event, "intent_id", None), *(event.adopted if isinstance(event, WorkOpened) else ()))
                found.update(each for each in named if each is not None)
    return frozenset(found)


def names_of(event: Event) -> frozenset[str]:
    """Return the ids that `event` holds; a work's may be any word."""
    works = (value for name, value in fields_of(event) if name == "work_id" and isinstance(value, str))
    return frozenset((*links(event), *works))


def _steering_streams(source: LogSource) -> Iterator[StreamId]:
    return (item.stream_id for item in source.open_items() if item.kind == "steering")


def _naming(source: LogSource, stream_id: StreamId, names: set[str]) -> Iterator[RecordedEvent]:
    return (each for each in source.walk_stream(stream_id) if not names.isdisjoint(names_of(each.event)))


def tell_intent(source: LogSource, stream_id: StreamId, intent: Intent) -> IntentStory:
    """Return an instruction with its text."""
    content = None if intent.body is None else source.read_body(stream_id, intent.body.digest)
    return IntentStory(
        intent_id=intent.intent_id, work_id=intent.work_id, kind=intent.kind, state=intent.phase,
        text=None if content is None else content.decode("utf-8", "replace"),
    )


def _done(source: LogSource, work_id: str, after: int) -> tuple[tuple[TimelineEntry, ...], int]:
    """Return what begins for a work: rows are only decoded where its name stands in them."""
    needle = work_id.encode()
    done: list[TimelineEntry] = []
    count = 0
    for row in source.raw_rows(after=after):
        if row[2] != 1 or not isinstance(row[4], bytes) or needle not in row[4]:
            continue
        recorded = event_at(source, row[0])
        if recorded is not None and isinstance(recorded.event, BEGINNINGS) and work_id in names_of(recorded.event):
            count += 1
            if len(done) < _DONE_SHOWN_MAX:
                done.append(project(recorded))
    return tuple(done), count
