"""`replay --at`: the state of every aggregate as of a moment, and what was open, running and bound then.

The log is folded to the moment and no further. Only what is open is held in memory; the aggregates themselves are told
one after the other, each folded from its own stream.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import takewhile
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_jsonable_python

from codespace_es.aggregates.operation import Finished
from codespace_es.aggregates.workspace import Bound
from codespace_es.ports.log import OpenItem, StoreUnavailableError
from codespace_es.projections.operation_status import OperationReport
from codespace_es.projections.operation_status import project as report_of
from codespace_es.projections.timeline import TimelineEntry, project
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.finding import Findings
from replay.memory import DECIDERS, Memory, SeenAppend
from replay.source import LogSource


class AggregateState(BaseModel):
    """One stream, folded to a moment."""

    model_config = ConfigDict(frozen=True)

    stream_id: str = Field(description="Which.")
    kind: str = Field(description="operation, instance, workspace, claim, store, process...")
    version: int = Field(description="Events of it so far.")
    position: int = Field(description="Position of the newest of them.")
    state: str = Field(description="Name of the state that its fold is in.")
    facts: dict[str, Any] = Field(description="What that state holds.")
    report: OperationReport | None = Field(default=None, description="What operation_status said of it then.")


class OpenThing(BaseModel):
    """One row of the open index."""

    model_config = ConfigDict(frozen=True)

    stream_id: str = Field(description="What is open.")
    kind: str = Field(description="Kind of row.")
    instance_id: str = Field(description="In whose hands.")
    position: int = Field(description="Of the event that opened it.")


class LogState(BaseModel):
    """A whole log as of one moment."""

    model_config = ConfigDict(frozen=True)

    position: int = Field(description="The moment.")
    head_position: int = Field(description="Where the log ends now.")
    event: TimelineEntry | None = Field(default=None, description="What was recorded last; absent at 0.")
    aggregates: dict[str, dict[str, int]] = Field(description="How many streams of each kind were in which state.")
    operations: dict[str, int] = Field(description="How many operations had ended how.")
    open: tuple[OpenThing, ...] = Field(description="What was open, oldest first.")
    workspaces: dict[str, str] = Field(description="Directory on record, by workspace key.")


def state_at(source: LogSource, position: int) -> LogState:
    """Return what the log said at `position`; its end if that lies behind it.

    Raises:
        UnknownTopicError: a newer version has written something before.
        StoreUnavailableError: the log can't be read, or tells a story up to there that can't be.
    """
    findings = Findings()
    memory = Memory(source, findings)
    states: Counter[tuple[str, str]] = Counter()
    endings: Counter[str] = Counter()
    workspaces: dict[str, str] = {}
    last: RecordedEvent | None = None
    for last in takewhile(lambda recorded: recorded.position <= position, source.read_log()):
        seen = memory.fold(last, last.envelope)
        if seen is None:
            problem = next(iter(findings.told()))
            raise StoreUnavailableError(f"it tells a story that can't be, see `verify`: {problem.problem}")
        kind = last.topic.partition(".")[0]
        if last.version > 1:
            states[kind, type(seen.before).__name__] -= 1
        states[kind, type(seen.after).__name__] += 1
        if isinstance(seen.after, Finished):
            endings[seen.after.finished.status] += 1
        if isinstance(seen.after, Bound):
            workspaces[last.stream_id] = seen.after.binding.root
        memory.forget(SeenAppend(last.envelope, (seen,), is_whole=True))
    return LogState(
        position=0 if last is None else last.position,
        head_position=source.head()[0],
        event=None if last is None else project(last),
        aggregates=_nested(states),
        operations=dict(sorted(endings.items())),
        open=tuple(_open_thing(item) for item in sorted(memory.open.values(), key=lambda item: item.position)),
        workspaces=workspaces,
    )


def aggregates_at(source: LogSource, position: int) -> Iterator[AggregateState]:
    """Yield every aggregate as it was at `position`, in the order in which they began. Raises as `state_at`."""
    for recorded in source.read_log():
        if recorded.position > position:
            return
        if recorded.version == 1:
            state = aggregate_at(source, recorded.stream_id, position)
            if state is None:
                raise StoreUnavailableError(f"{recorded.stream_id} can't be found again, see `verify`")
            yield state


def aggregate_at(source: LogSource, stream_id: str, position: int) -> AggregateState | None:
    """Return one aggregate as it was at `position`; None if it hadn't begun. Raises as `state_at`."""
    (folded,) = fold_to(source, stream_id, (position,))
    if folded is None:
        return None
    kind = folded.last.topic.partition(".")[0]
    return AggregateState(
        stream_id=stream_id, kind=kind, version=folded.last.version, position=folded.last.position,
        state=type(folded.state).__name__, facts=facts_of(folded.state),
        report=report_of(past_of(source, stream_id, position)) if kind == "operation" else None,
    )


@dataclass(frozen=True, slots=True)
class FoldedTo:
    """A stream's state at a moment, and its last event until then."""

    last: RecordedEvent
    state: object


def past_of(source: LogSource, stream_id: str, position: int) -> Iterator[RecordedEvent]:
    """Yield the events of a stream up to a moment, in order."""
    return takewhile(lambda each: each.position <= position, source.walk_stream(StreamId(stream_id)))


def fold_to(
    source: LogSource, stream_id: str, positions: Sequence[int], begun: FoldedTo | None = None
) -> list[FoldedTo | None]:
    """Return a stream as it was at each of some ascending moments, in one walk; None where it hadn't begun.

    With `begun` the walk goes on from there; no moment lies before it. Raises as `state_at`.
    """
    decider = DECIDERS.get(stream_id.partition("-")[0])
    if decider is None:
        return [None for _ in positions]
    folded: list[FoldedTo | None] = []
    known = begun
    for each in source.walk_stream(StreamId(stream_id), after=0 if begun is None else begun.last.version):
        while len(folded) < len(positions) and each.position > positions[len(folded)]:
            folded.append(known)
        if len(folded) == len(positions):
            return folded
        known = FoldedTo(each, evolve_on(decider, decider.initial_state if known is None else known.state, each))
    return folded + [known] * (len(positions) - len(folded))


def evolve_on(decider: Decider[Any, Any], state: object, recorded: RecordedEvent) -> object:
    """Return the state after one more event. Raises StoreUnavailableError if it can't follow."""
    try:
        return decider.evolve(state, recorded.event)
    except AssertionError as refusal:
        raise StoreUnavailableError(
            f"{recorded.stream_id} tells a story that can't be, see `verify`: {refusal}"
        ) from refusal


def facts_of(state: object) -> dict[str, Any]:
    """Return what a state holds, as JSON; what is absent is left out, and so is what it only keeps to be quick."""
    if not is_dataclass(state):
        return {}
    facts: dict[str, Any] = to_jsonable_python(_held(state), exclude_none=True)
    return {name: value for name, value in facts.items() if value is not None}


def _held(value: object) -> object:
    """Return plain containers of what is shown of states; a field without a `repr` follows from the others."""
    if isinstance(value, Mapping):
        return {key: _held(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_held(each) for each in value]
    if is_dataclass(value):
        return {field.name: _held(getattr(value, field.name)) for field in fields(value) if field.repr}
    return value


def _nested(states: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (kind, state), count in sorted(states.items()):
        if count:
            nested.setdefault(kind, {})[state] = count
    return nested


def _open_thing(item: OpenItem) -> OpenThing:
    return OpenThing(stream_id=item.stream_id, kind=item.kind, instance_id=item.instance_id, position=item.position)
