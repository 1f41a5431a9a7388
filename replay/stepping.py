"""Stepping through a log: one event at a time, with what it did to its stream and what was open after it.

What is open is folded on from the nearest place that was looked at before, and so is the event's own stream, which may
be long: a step costs little in either direction.
"""

from bisect import bisect_right
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.open_index import open_change
from codespace_es.projections.timeline import TimelineEntry, project
from codespace_es.vocabulary.identifiers import StreamId
from replay.moments import event_at
from replay.source import LogSource
from replay.state_at import FoldedTo, fold_to

_KEPT_EVERY = 1_000
_KEPT_BEFORE = (4_096, 1_024, 256, 64, 16, 4, 1, 0)
"""How far before a place its stream's states are kept as well, for steps back."""
_STATES_KEPT_MAX = 32
_STREAMS_KEPT_MAX = 64


class Frame(BaseModel):
    """One moment, for somebody who steps through a log."""

    model_config = ConfigDict(frozen=True)

    position: int = Field(description="The moment.")
    head_position: int = Field(description="Where the log ends.")
    event: TimelineEntry | None = Field(default=None, description="What was recorded here; absent before everything.")
    before: str | None = Field(default=None, description="State of its stream before; absent where it begins.")
    after: str | None = Field(default=None, description="State of its stream after.")
    recorded: dict[str, Any] = Field(default_factory=dict, description="The event in full.")
    open: tuple[str, ...] = Field(default=(), description="Streams that were open after it.")


class Stepper:
    """Looks at one log, moment by moment."""

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._places = [0]
        self._opens: dict[int, dict[str, None]] = {0: {}}
        self._folds: dict[StreamId, tuple[FoldedTo, ...]] = {}

    def frame(self, position: int) -> Frame:
        """Return the moment at `position`, or the nearest there is.

        Raises:
            UnknownTopicError: a newer version has written something before.
            StoreUnavailableError: the log can't be read.
        """
        head, _ = self._source.head()
        position = max(0, min(position, head))
        recorded = event_at(self._source, position)
        if recorded is None:
            return Frame(position=position, head_position=head)
        before, after = self._states_around(recorded.stream_id, position)
        return Frame(
            position=position,
            head_position=head,
            event=project(recorded),
            before=None if before is None else type(before.state).__name__,
            after=None if after is None else type(after.state).__name__,
            recorded=recorded.event.model_dump(mode="json", exclude_none=True),
            open=tuple(self._open_after(position)),
        )

    def _states_around(self, stream_id: StreamId, position: int) -> tuple[FoldedTo | None, FoldedTo | None]:
        """Return a stream before and after the event at `position`."""
        known = self._folds.pop(stream_id, ())
        begun = max((each for each in known if each.last.position < position), key=_position, default=None)
        floor = 0 if begun is None else begun.last.position
        moments = [position - back for back in _KEPT_BEFORE if position - back >= floor]
        folded = fold_to(self._source, stream_id, moments, begun)
        kept = {each.last.position: each for each in (*known, *folded) if each is not None}
        nearest = sorted(kept.values(), key=lambda each: abs(each.last.position - position))
        self._folds[stream_id] = tuple(nearest[:_STATES_KEPT_MAX])
        if len(self._folds) > _STREAMS_KEPT_MAX:
            del self._folds[next(iter(self._folds))]
        return folded[-2], folded[-1]

    def _open_after(self, position: int) -> dict[str, None]:
        place = self._places[bisect_right(self._places, position) - 1]
        opened = dict(self._opens[place])
        if place == position:
            return opened
        for recorded in self._source.read_log(after=place):
            if recorded.position > position:
                break
            change = open_change(recorded.stream_id, recorded.event)
            if change is not None and change.closes:
                opened.pop(recorded.stream_id, None)
            if change is not None and change.opens:
                opened.setdefault(recorded.stream_id)
            if recorded.position % _KEPT_EVERY == 0 and recorded.position not in self._opens:
                self._places.append(recorded.position)
                self._opens[recorded.position] = dict(opened)
        return opened


def _position(folded: FoldedTo) -> int:
    return folded.last.position
