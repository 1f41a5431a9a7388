"""Stepping through a log: one event at a time, with what it did to its stream and what was open after it.

What is open is folded on from the nearest place that was looked at before, so a step costs little in either direction.
"""

from bisect import bisect_right
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.open_index import open_change
from codespace_es.projections.timeline import TimelineEntry, project
from replay.moments import event_at
from replay.source import LogSource
from replay.state_at import aggregate_at

_KEPT_EVERY = 1_000


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
        before = aggregate_at(self._source, recorded.stream_id, position - 1)
        after = aggregate_at(self._source, recorded.stream_id, position)
        return Frame(
            position=position,
            head_position=head,
            event=project(recorded),
            before=before.state if before is not None else None,
            after=after.state if after is not None else None,
            recorded=recorded.event.model_dump(mode="json", exclude_none=True),
            open=tuple(self._open_after(position)),
        )

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
