"""`show ID`: everything that the log knows of one thing, told from its beginning.

An id is an operation, a process, a hold, an instance, a work, an instruction, a pending action, a workspace's key, a
claim, `store`, or an operation key of a caller.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.operation import OperationMinted
from codespace_es.aggregates.pending.events import PendingActionPlaced, PendingActionPopped
from codespace_es.projections.approval_status import ApprovalReport
from codespace_es.projections.approval_status import project as tell_hold
from codespace_es.projections.operation_status import OperationReport
from codespace_es.projections.operation_status import project as report_of
from codespace_es.projections.timeline import TimelineEntry, project
from codespace_es.v4a.diff import DiffWriter, file_diff
from codespace_es.vocabulary.event import ABSENT, RecordedEvent, Version
from codespace_es.vocabulary.file_change import PlannedFile
from codespace_es.vocabulary.identifiers import StreamId, claim_stream
from replay.moments import event_at, holder_of_key
from replay.process_story import ProcessStory, tell_process
from replay.removals import Removals
from replay.source import LogSource, first_of
from replay.work_story import BEGINNINGS, IntentStory, WorkStory, tell_steering

_NEAR_EVENTS = 64
"""How far around a stream's own events others of the same call are looked for: an append's stand side by side."""
_BEGUN_SHOWN_MAX = 1_000
_RELATED_SHOWN_MAX = 1_000
_EVENTS_SHOWN_EACH_MAX = 500
"""Of a thing that has more than twice as many events, so many of the first and so many of the last are told."""


class NothingRecordedError(LookupError):
    """The log knows nothing under this name."""


class FileStory(BaseModel):
    """What an operation meant to do to one file."""

    model_config = ConfigDict(frozen=True)

    planned: PlannedFile = Field(description="The plan's row.")
    diff: str | None = Field(default=None, description="Unified diff of the recorded images; absent without them.")
    note: str | None = Field(default=None, description="Why there is no diff, or not all of it.")


class Story(BaseModel):
    """One thing's whole story. What doesn't apply to its kind is absent."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="Its stream, or the work, instruction or action in one.")
    kind: str = Field(description="operation, process, instance, work, intent, action, or the stream's own.")
    events: tuple[TimelineEntry, ...] = Field(
        description="Its own events; of more than 1,000, the first 500 and the last 500."
    )
    event_count: int = Field(description="How many it has.")
    details: tuple[dict[str, Any], ...] = Field(description="The same events as they were recorded, in full.")
    related: tuple[TimelineEntry, ...] = Field(default=(), description="Others of the same calls; at most 1,000.")
    report: OperationReport | None = Field(default=None, description="What operation_status says of it.")
    process: ProcessStory | None = Field(default=None, description="What became of a command, and its output.")
    approval: ApprovalReport | None = Field(default=None, description="Who asked for a hold, who decided, and how.")
    files: tuple[FileStory, ...] = Field(default=(), description="An operation's plan with its diffs.")
    request: str | None = Field(default=None, description="An operation's patch text; absent if it was pruned.")
    claim_id: str | None = Field(default=None, description="The claim of an operation's key.")
    instance: TimelineEntry | None = Field(default=None, description="The start of the server that did it.")
    begun: tuple[TimelineEntry, ...] = Field(default=(), description="What an instance began; at most 1,000.")
    begun_count: int | None = Field(default=None, description="How much an instance began in all.")
    work: WorkStory | None = Field(default=None, description="A work: what people asked for, and what was done.")
    intent: IntentStory | None = Field(default=None, description="An instruction: its text, and what became of it.")


def tell(source: LogSource, name: str) -> Story:
    """Return the story of `name`: an id, or an operation key.

    Raises:
        NothingRecordedError: the log has no such stream and no such key.
        UnknownTopicError: a newer version has written part of it.
        StoreUnavailableError: the log can't be read.
    """
    stream_id = StreamId(name)
    first = first_of(source, stream_id)
    if first is None and (steering := tell_steering(source, name)) is not None:
        kind = "work" if steering.work is not None else "intent"
        story = _story(source, name, kind, _ends_of(steering.recorded))
        return story.model_copy(update={"work": steering.work, "intent": steering.intent})
    if first is None:
        stream_id, first = _holder_of_key(source, name)
    kind = first.topic.partition(".")[0]
    if isinstance(placed := first.event, PendingActionPlaced):
        return _story(source, name, "action", _ends_of(_of_action(source, first, placed)))
    ends = _ends_of(source.walk_stream(stream_id))
    story = _story(source, stream_id, kind, ends)
    if isinstance(first.event, OperationMinted):
        return story.model_copy(update=_operation(source, first, first.event))
    if kind == "process":
        began = _start_of(source, first.envelope.instance_id)
        return story.model_copy(update={"process": tell_process(source, stream_id), "instance": began})
    if kind == "approval":
        return story.model_copy(update={"approval": tell_hold(source.walk_stream(stream_id))})
    if kind == "instance":
        return story.model_copy(update=_instance(source, ends.recorded))
    return story


@dataclass(frozen=True, slots=True)
class _Ends:
    """The first and the last of some events, and how many there are."""

    recorded: Sequence[RecordedEvent]
    count: int


def _ends_of(events: Iterable[RecordedEvent]) -> _Ends:
    left = iter(events)
    first = list(islice(left, _EVENTS_SHOWN_EACH_MAX))
    count = len(first)
    last: deque[RecordedEvent] = deque(maxlen=_EVENTS_SHOWN_EACH_MAX)
    for each in left:
        count += 1
        last.append(each)
    return _Ends((*first, *last), count)


def _of_action(
    source: LogSource, place: RecordedEvent, placed: PendingActionPlaced
) -> Iterator[RecordedEvent]:
    """Yield the events of an action: its stack's that name it, from its push, which its place stands behind."""
    pushed = event_at(source, place.position - 1)
    if pushed is None or pushed.stream_id != placed.stack_id:
        yield place
        return
    yield pushed
    yield place
    for each in source.walk_stream(placed.stack_id, after=pushed.version):
        if getattr(each.event, "action_id", None) == place.stream_id:
            yield each
            if isinstance(each.event, PendingActionPopped):
                return


def _story(source: LogSource, name: str, kind: str, ends: _Ends) -> Story:
    return Story(
        id=name,
        kind=kind,
        events=tuple(project(each) for each in ends.recorded),
        event_count=ends.count,
        details=tuple(each.event.model_dump(mode="json", exclude_none=True) for each in ends.recorded),
        related=tuple(islice(_related(source, ends.recorded), _RELATED_SHOWN_MAX)),
    )


def _holder_of_key(source: LogSource, key: str) -> tuple[StreamId, RecordedEvent]:
    """Return the stream of what holds an operation key, and its first event. Raises NothingRecordedError."""
    holder = holder_of_key(source, key)
    if holder is None:
        msg = f"The log knows no id and no operation key {key!r}."
        raise NothingRecordedError(msg)
    first = first_of(source, holder)
    if first is None:
        msg = f"The key {key!r} belongs to {str(holder)!r}, of which nothing is recorded; see `verify`."
        raise NothingRecordedError(msg)
    return holder, first


def _related(source: LogSource, recorded: Sequence[RecordedEvent]) -> Iterator[TimelineEntry]:
    """Yield, by position, the events near by that belong to the same calls and aren't the stream's own."""
    requests = {each.envelope.request_id for each in recorded}
    done = 0
    for each in recorded:
        begin = max(done, each.position - 1 - _NEAR_EVENTS)
        end = each.position + _NEAR_EVENTS
        for near in islice(source.read_log(after=begin), max(0, end - begin)):
            if near.stream_id != each.stream_id and near.envelope.request_id in requests:
                yield project(near)
        done = max(done, end)


def _operation(source: LogSource, first: RecordedEvent, minted: OperationMinted) -> dict[str, Any]:
    stream_id = first.stream_id
    request = source.read_body(stream_id, minted.request.digest)
    key = minted.operation_key
    return {
        "report": report_of(source.walk_stream(stream_id)),
        "files": tell_files(source, stream_id, minted, Removals(source)),
        "request": None if request is None else request.decode("utf-8", "replace"),
        "claim_id": None if key is None else claim_stream("operation_key", key),
        "instance": _start_of(source, first.envelope.instance_id),
    }


def tell_files(
    source: LogSource, stream_id: StreamId, minted: OperationMinted, removals: Removals
) -> tuple[FileStory, ...]:
    """Return what an operation meant to do to each file, with its diff, or why there is none."""
    return tuple(_file(source, stream_id, minted, planned, removals) for planned in minted.plan)


def _file(
    source: LogSource, stream_id: StreamId, minted: OperationMinted, planned: PlannedFile, removals: Removals
) -> FileStory:
    before, after = (_image(source, stream_id, version) for version in (planned.before, planned.after))
    if before is None or after is None:
        if minted.check_only:
            return FileStory(planned=planned, note="A preview: the contents of its files weren't recorded.")
        missing = planned.before if before is None else planned.after
        removal = removals.of(stream_id, missing)
        note = f"Its contents were {removal}." if removal is not None else (
            "Its contents are missing, and nothing says why: see `verify`."
        )
        return FileStory(planned=planned, note=note)
    old_path = None if planned.before == ABSENT else planned.path
    new_path = None if planned.after == ABSENT else planned.path
    diff = file_diff(old_path, new_path, before, after)
    writer = DiffWriter()
    writer.write(diff)
    notes = {True: "Not text: no lines to show."} if diff.is_binary else {writer.is_truncated: "The diff is cut here."}
    return FileStory(planned=planned, diff=writer.text, note=notes.get(True))


def _image(source: LogSource, stream_id: StreamId, version: Version) -> bytes | None:
    return b"" if version == ABSENT else source.read_body(stream_id, version)


def _start_of(source: LogSource, instance_id: str) -> TimelineEntry | None:
    first = first_of(source, instance_id)
    return None if first is None else project(first)


def _instance(source: LogSource, recorded: Sequence[RecordedEvent]) -> dict[str, Any]:
    """Return what was asked for and begun through the instance, from its start to its end."""
    instance_id: str = recorded[0].stream_id
    begin = recorded[0].position
    is_over = recorded[-1].topic in ("instance.stopped.v1", "instance.recovered.v1", "instance.taken_over.v1")
    length = recorded[-1].position - begin if is_over else None
    begun: list[TimelineEntry] = []
    count = 0
    for each in islice(source.read_log(after=begin), length):
        if isinstance(each.event, BEGINNINGS) and each.envelope.instance_id == instance_id:
            count += 1
            if len(begun) < _BEGUN_SHOWN_MAX:
                begun.append(project(each))
    return {"begun": tuple(begun), "begun_count": count}
