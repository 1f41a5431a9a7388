"""`diff A..B`: what changed between two moments: the streams, and the files with their diffs from the body store."""

from dataclasses import dataclass, field
from itertools import takewhile

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.v4a.diff import DiffWriter, file_diff
from codespace_es.vocabulary.event import ABSENT, Version
from codespace_es.vocabulary.file_change import PlannedFile
from codespace_es.vocabulary.limits import MIB
from replay.files_at import UNKNOWN, FileKnowledge, KnownFile, KnownWorkspace, read_version
from replay.source import LogSource
from replay.state_at import fold_to

STREAMS_TOLD_MAX = 10_000
OPERATIONS_TOLD_MAX = 1_000
"""Of those that wrote a file."""
DIFF_BYTES_MAX = 16 * MIB
"""Of all diffs together; files after that are told without."""
_NOTES_MAX = 100


class StreamChange(BaseModel):
    """What became of one stream between the moments."""

    model_config = ConfigDict(frozen=True)

    stream_id: str = Field(description="Which.")
    kind: str = Field(description="operation, instance, workspace...")
    before: str | None = Field(default=None, description="Its state at the first moment; absent: it wasn't there yet.")
    after: str = Field(description="Its state at the second.")
    events: int = Field(description="Events in between.")


class FileDifference(BaseModel):
    """What became of one path between the moments."""

    model_config = ConfigDict(frozen=True)

    workspace_id: str = Field(description="The workspace's name.")
    path: str = Field(description="Relative to its root.")
    before: Version = Field(description="Version at the first moment, or that the first operation since met.")
    after: Version = Field(description="Version at the second.")
    operations: tuple[str, ...] = Field(description="Operations in between that wrote it; at most the first 1,000.")
    summary: str | None = Field(default=None, description="Lines added and removed, as `+n -m`.")
    diff: str | None = Field(default=None, description="Unified diff of the recorded contents.")
    notes: tuple[str, ...] = Field(default=(), description="What is missing, cut, or happened beside the log.")


class Difference(BaseModel):
    """All that changed between two moments."""

    model_config = ConfigDict(frozen=True)

    begin: int = Field(description="The first moment.")
    end: int = Field(description="The second.")
    topics: dict[str, int] = Field(description="Events in between, by topic.")
    streams: tuple[StreamChange, ...] = Field(description="By first change; at most 10,000.")
    files: tuple[FileDifference, ...] = Field(description="By workspace and path; those that are as before left out.")


def difference(source: LogSource, begin: int, end: int) -> Difference:
    """Return what changed after position `begin` up to position `end`.

    Raises:
        UnknownTopicError: a newer version has written something before `end`.
        StoreUnavailableError: the log can't be read.
    """
    knowledge = FileKnowledge()
    before: tuple[KnownWorkspace, ...] | None = None
    met = _Met()
    topics: dict[str, int] = {}
    streams: dict[str, int] = {}
    for recorded in takewhile(lambda each: each.position <= end, source.read_log()):
        if recorded.position > begin:
            before = knowledge.told() if before is None else before
            topics[recorded.topic] = topics.get(recorded.topic, 0) + 1
            if recorded.stream_id in streams or len(streams) < STREAMS_TOLD_MAX:
                streams[recorded.stream_id] = streams.get(recorded.stream_id, 0) + 1
            met.see(recorded.stream_id, recorded.event)
        knowledge.see(recorded.stream_id, recorded.event)
    after = knowledge.told()
    return Difference(
        begin=begin,
        end=end,
        topics=dict(sorted(topics.items())),
        streams=tuple(
            _stream(source, stream_id, count, begin, end)
            for stream_id, count in streams.items()
        ),
        files=_files(source, after if before is None else before, after, met),
    )


@dataclass(slots=True)
class _Writes:
    """What the operations between the moments did to one path."""

    first: str
    """The first of them."""
    before: Version
    """What that one found."""
    last: str = ""
    after: Version = ""
    """What the last of them left."""
    operations: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, operation_id: str, row: PlannedFile) -> None:
        """Take in one more."""
        if self.last and self.after != row.before and len(self.notes) < _NOTES_MAX:
            self.notes.append(f"It was changed beside the server between {self.last} and {operation_id}.")
        self.last, self.after = operation_id, row.after
        if len(self.operations) < OPERATIONS_TOLD_MAX:
            self.operations[operation_id] = None


class _Met:
    """Who wrote each path between the moments, and what the first of them found there."""

    def __init__(self) -> None:
        self._begun: dict[str, OperationMinted] = {}
        self.writes: dict[tuple[str, str], _Writes] = {}

    def see(self, stream_id: str, event: object) -> None:
        if isinstance(event, OperationMinted) and not event.check_only:
            self._begun[stream_id] = event
        elif isinstance(event, OperationFinished) and stream_id in self._begun:
            minted = self._begun.pop(stream_id)
            if event.status not in ("rejected", "failed_rolled_back"):
                for row in minted.plan:
                    known = self.writes.setdefault((minted.workspace_key, row.path), _Writes(stream_id, row.before))
                    known.add(stream_id, row)


def _stream(source: LogSource, stream_id: str, count: int, begin: int, end: int) -> StreamChange:
    earlier, later = fold_to(source, stream_id, (begin, end))
    return StreamChange(
        stream_id=stream_id,
        kind=later.last.topic.partition(".")[0] if later is not None else "unknown",
        before=type(earlier.state).__name__ if earlier is not None else None,
        after=type(later.state).__name__ if later is not None else "unknown",
        events=count,
    )


def _files(
    source: LogSource, before: tuple[KnownWorkspace, ...], after: tuple[KnownWorkspace, ...], met: _Met
) -> tuple[FileDifference, ...]:
    earlier = {(each.workspace_key, file.path): file for each in before for file in each.files}
    found: list[FileDifference] = []
    diff_bytes = 0
    for each in after:
        for file in each.files:
            key = each.workspace_key, file.path
            told = _file(
                source, each.workspace_id, earlier.get(key), file, met.writes.get(key),
                is_diff_told=diff_bytes < DIFF_BYTES_MAX,
            )
            if told is not None:
                diff_bytes += len(told.diff or "")
                found.append(told)
    return tuple(found)


def _file(
    source: LogSource, workspace_id: str, earlier: KnownFile | None, later: KnownFile,
    writes: _Writes | None, *, is_diff_told: bool,
) -> FileDifference | None:
    """Return what became of one path; None where nothing did."""
    notes: list[str] = []
    if earlier is not None:
        version, holders = earlier.version, earlier.holders
    elif writes is not None:
        version, holders = writes.before, (writes.first,)
    else:
        return None
    if writes is not None and earlier is not None and writes.before != version:
        notes.append("It was changed beside the server before the first of these operations.")
    notes += [] if writes is None else writes.notes
    if version == later.version and not notes:
        return None
    summary: str | None = None
    diff: str | None = None
    if is_diff_told:
        summary, diff = _diff(source, later, version, holders, notes)
    else:
        notes.append("The diffs before it are long enough: ask for a shorter range to see this one.")
    return FileDifference(
        workspace_id=workspace_id, path=later.path, before=version, after=later.version,
        operations=() if writes is None else tuple(writes.operations), summary=summary, diff=diff,
        notes=tuple(notes),
    )


def _diff(
    source: LogSource, later: KnownFile, version: Version, holders: tuple[str, ...], notes: list[str]
) -> tuple[str | None, str | None]:
    """Return counts of lines and the diff; why there is none is noted."""
    old, new = read_version(source, version, holders), read_version(source, later.version, later.holders)
    if old is None or new is None:
        is_unknown = UNKNOWN in (version, later.version)
        notes.append("The log can't tell its content." if is_unknown else "Its contents aren't stored (any more).")
        return None, None
    found = file_diff(
        None if version == ABSENT else later.path, None if later.version == ABSENT else later.path, old, new
    )
    writer = DiffWriter()
    writer.write(found)
    if found.is_binary:
        notes.append("Not text: no lines to show.")
    if writer.is_truncated:
        notes.append("The diff is cut here.")
    return found.summary, writer.text
