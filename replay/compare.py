"""`compare`: decide again, with today's code, what a log says was decided; report where the past would differ.

Each recorded event has to follow from the state before it by a command of today's deciders, and each recorded patch,
planned again on the recorded files, has to give the recorded plan. Source: replay of stored histories, decision 9.
"""

from collections.abc import Iterator
from itertools import groupby

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.operation import OperationMinted
from codespace_es.vocabulary.event import RecordedEvent
from replay.deciding_again import decide_again
from replay.finding import Findings
from replay.memory import DECIDERS, Memory, Seen, SeenAppend
from replay.planning_again import NotPlannableError, plan_again
from replay.source import LogSource

DIFFERENCES_TOLD_MAX = 100


class PastDifference(BaseModel):
    """One place where today's code would have decided otherwise."""

    model_config = ConfigDict(frozen=True)

    position: int = Field(description="Where in the log.")
    stream_id: str = Field(description="Which stream.")
    topic: str = Field(description="What was recorded.")
    today: str = Field(description="What would be decided today.")


class Comparison(BaseModel):
    """How the past would look today."""

    model_config = ConfigDict(frozen=True)

    is_same: bool = Field(description="Nothing would differ.")
    events: int = Field(description="Events read.")
    decided: int = Field(description="Events that were decided again.")
    planned: int = Field(description="Patches that were planned again.")
    undecidable: dict[str, int] = Field(description="What couldn't be done again, and how often.")
    differing: int = Field(description="Places that would differ.")
    differences: tuple[PastDifference, ...] = Field(description="The first 100 of them, by position.")


def compare(source: LogSource, *, after: int = 0) -> Comparison:
    """Return where today's code would decide otherwise than the log says, behind position `after`.

    Raises:
        UnknownTopicError: a newer version has written to the log.
        StoreUnavailableError: the log can't be read.
    """
    return _Comparing(source, after).run()


class _Comparing:
    def __init__(self, source: LogSource, after: int) -> None:
        self._source = source
        self._after = after
        self._memory = Memory(source, Findings())
        self._events = self._decided = self._planned = self._differing = 0
        self._undecidable: dict[str, int] = {}
        self._told: list[PastDifference] = []

    def run(self) -> Comparison:
        for _, append in groupby(self._source.read_log(), lambda recorded: recorded.envelope.append_id):
            recorded = list(append)
            seen = [each for each in map(self._fold, recorded) if each is not None]
            for _, of_stream in groupby(sorted(seen, key=_stream_of), _stream_of):
                self._decide(list(of_stream))
            self._memory.forget(SeenAppend(recorded[0].envelope, tuple(seen), is_whole=True))
        return Comparison(
            is_same=not self._differing, events=self._events, decided=self._decided, planned=self._planned,
            undecidable=dict(sorted(self._undecidable.items())), differing=self._differing,
            differences=tuple(sorted(self._told, key=lambda each: each.position)),
        )

    def _fold(self, recorded: RecordedEvent) -> Seen | None:
        self._events += recorded.position > self._after
        seen = self._memory.fold(recorded, recorded.envelope)
        if seen is None and recorded.position > self._after:
            self._differ(recorded, "it can't follow what was recorded before it: see `verify`")
        return seen

    def _decide(self, seen: list[Seen]) -> None:
        """Decide again what one append says of one stream: together, or event by event."""
        for part in _parts(seen):
            first = part[0].recorded
            if first.position <= self._after:
                continue
            decider = DECIDERS[first.stream_id.partition("-")[0]]
            try:
                told = decide_again(decider, part[0].before, [each.recorded.event for each in part], first.envelope)
            except LookupError:
                self._skip(f"{first.topic}: no command leads to it")
                continue
            self._decided += len(part)
            if told is not None:
                self._differ(first, told)
            if isinstance(first.event, OperationMinted):
                self._plan(first, first.event)

    def _plan(self, recorded: RecordedEvent, minted: OperationMinted) -> None:
        try:
            told = plan_again(self._source, recorded.stream_id, minted)
        except NotPlannableError as error:
            self._skip(f"patch: {error}")
            return
        self._planned += 1
        if told is not None:
            self._differ(recorded, told)

    def _skip(self, reason: str) -> None:
        self._undecidable[reason] = self._undecidable.get(reason, 0) + 1

    def _differ(self, recorded: RecordedEvent, told: str) -> None:
        self._differing += 1
        if len(self._told) < DIFFERENCES_TOLD_MAX:
            self._told.append(PastDifference(
                position=recorded.position, stream_id=recorded.stream_id, topic=recorded.topic, today=told
            ))


def _stream_of(seen: Seen) -> str:
    return seen.stream_id


def _parts(seen: list[Seen]) -> Iterator[list[Seen]]:
    """Yield what was decided by one command: an operation that was minted and finished at once, else each event."""
    is_pair = len(seen) == 2 and isinstance(seen[0].recorded.event, OperationMinted)
    if is_pair:
        yield seen
    else:
        yield from ([each] for each in seen)

