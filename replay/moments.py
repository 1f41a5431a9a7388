"""What a reader means by a moment: a position, a time, an event, or a word for the ends of the log."""

import re
from datetime import UTC, datetime

from codespace_es.aggregates.claim import ClaimTaken
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId, claim_stream
from replay.source import LogSource

_VERSIONED = re.compile(r"(?P<stream>.+)@(?P<version>[0-9]+)")


class NoSuchMomentError(LookupError):
    """The log has no such moment."""


def position_of(source: LogSource, moment: str) -> int:
    """Return the position that `moment` names; what was recorded there is part of the moment.

    Args:
        source: The log.
        moment: A position (0: before everything), `head`, a time (RFC 3339; UTC unless it says otherwise), `ID@VERSION`
            for one event, or an id or operation key for the newest event of its stream.

    Raises:
        NoSuchMomentError: it is none of these, or lies behind the end of the log.
    """
    head, _ = source.head()
    if moment == "head":
        return head
    if moment.isascii() and moment.isdecimal():
        if len(moment) > 18 or int(moment) > head:
            raise NoSuchMomentError(f"The log ends at position {head}; there is no {moment}.")
        return int(moment)
    found = _position_of_event(source, moment)
    if found is None:
        found = _position_at(source, moment, head)
    if found is None:
        raise NoSuchMomentError(
            f"{moment!r} is no position, no time (such as 2026-01-31T12:00:00Z), no id and no operation key of this "
            "log."
        )
    return found


def event_at(source: LogSource, position: int) -> RecordedEvent | None:
    """Return the event that stands at `position`, None where there is none."""
    if position < 1:
        return None
    rows = source.read_log(after=position - 1)
    recorded = next(rows, None)
    return recorded if recorded is not None and recorded.position == position else None


def _position_of_event(source: LogSource, name: str) -> int | None:
    versioned = _VERSIONED.fullmatch(name)
    if versioned is not None and len(versioned["version"]) <= 18:
        version = int(versioned["version"])
        found = next(source.walk_stream(StreamId(versioned["stream"]), after=version - 1), None)
        return found.position if found is not None and found.version == version else None
    last = _last_of(source, StreamId(name))
    if last is None:
        holder = holder_of_key(source, name)
        last = None if holder is None else _last_of(source, holder)
    return None if last is None else last.position


def holder_of_key(source: LogSource, key: str) -> StreamId | None:
    """Return the stream of what holds an operation key, or was the last to; None if nothing ever did."""
    holder: StreamId | None = None
    for each in source.walk_stream(claim_stream("operation_key", key)):
        if isinstance(each.event, ClaimTaken):
            holder = StreamId(each.event.holder_id)
    return holder


def _last_of(source: LogSource, stream_id: StreamId) -> RecordedEvent | None:
    last: RecordedEvent | None = None
    for last in source.walk_stream(stream_id):  # noqa: B007 - the last one is wanted
        pass
    return last


def _position_at(source: LogSource, text: str, head: int) -> int | None:
    """Return the last position that was recorded no later than the time `text`; None if it is no time.

    Halves the log again and again, as if it had been written by one clock.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    low, high = 0, head
    while low < high:
        middle = (low + high + 1) // 2
        recorded = event_at(source, middle)
        if recorded is not None and recorded.envelope.recorded_at <= time:
            low = middle
        else:
            high = middle - 1
    return low
