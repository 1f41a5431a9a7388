"""Stored contents that the walk couldn't judge where it met them: whether an event of their stream wants them so.

Nothing leads from a content to the event that names it, so the stream is read again. It may be as long as the log, and
so may the contents of it be that were met out of order: doubts are gathered, and each stream is read once for many.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from codespace_es.ports.log import StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.event import Digest, Envelope, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from codespace_es.vocabulary.limits import LARGE_BODY_BYTES
from replay.naming import Named, named_bodies
from replay.source import LogSource
from replay.stored_contents import Content, Label

_GATHERED_MAX = 8_192
"""How many doubts are held at a time; a stream is read again for every so many."""

Tell = Callable[[StreamId, int | None, str], None]
"""Is told a stream, a position (None: the doubt came without one and the stream has no event), and what is wrong."""


@dataclass(slots=True)
class _Doubt:
    """A content, without its bytes, whose label fits no event that was met."""

    content: Content
    position: int | None
    """Of the event that was met with it; None: of the last one of its stream."""
    is_named: bool = False


class Doubts:
    """Gathers doubts and settles them by reading streams. Memory doesn't grow with the streams, nor with the doubts."""

    def __init__(self, source: LogSource, tell: Tell) -> None:
        """Prepare; `tell` is told of each doubt that was right."""
        self._source = source
        self._tell = tell
        self._gathered: dict[StreamId, dict[Digest, list[_Doubt]]] = {}
        self._count = 0

    def add(self, stream_id: StreamId, digest: Digest, content: Content, *, position: int | None = None) -> None:
        """Doubt whether a content stands there as an event of its stream wants it."""
        doubt = _Doubt(content._replace(content=None), position)
        self._gathered.setdefault(stream_id, {}).setdefault(digest, []).append(doubt)
        self._count += 1
        if self._count >= _GATHERED_MAX:
            self.settle()

    def settle(self) -> None:
        """Tell of what is wrong among those that were gathered."""
        for stream_id, doubts in self._gathered.items():
            # What can't be read is named by the walk where it stands; what such a stream wants, nobody can say.
            try:
                self._settle(stream_id, doubts)
            except (UnknownTopicError, StoreUnavailableError, ValidationError):
                continue
        self._gathered, self._count = {}, 0

    def _settle(self, stream_id: StreamId, doubts: dict[Digest, list[_Doubt]]) -> None:
        last: int | None = None
        for recorded in self._source.walk_stream(stream_id):
            last = recorded.position
            for named in named_bodies(recorded.event):
                left = doubts.pop(named.digest, None)
                if left and (left := _left(left, named, recorded)):
                    doubts[named.digest] = left
            if not doubts:
                return
        for digest, those in doubts.items():
            for doubt in those:
                problem = _problem(digest, doubt)
                if problem is not None:
                    self._tell(stream_id, last if doubt.position is None else doubt.position, problem)


def _left(doubts: list[_Doubt], named: Named, recorded: RecordedEvent) -> list[_Doubt]:
    """Return those that an event which names their content doesn't settle."""
    for doubt in doubts:
        doubt.is_named = True
    return [
        each for each in doubts
        if each.content.label is not None and not fits(each.content.label, each.content, named, recorded.envelope)
    ]


def _problem(digest: Digest, doubt: _Doubt) -> str | None:
    content, label = doubt.content, doubt.content.label
    if not doubt.is_named or label is None:
        # A large content is stored before its event, and is left alone where a crash came between.
        return None if content.size_bytes > LARGE_BODY_BYTES else f"{digest} is stored, and no event names it"
    return f"{digest} is stored as {label.kind}, {label.size_bytes} bytes, at {label.stored_at_ms}, which isn't so"


def fits(label: Label, content: Content, named: Named, envelope: Envelope) -> bool:
    """Return whether a content is stored as an event says: by kind, size and time, which goes by milliseconds."""
    stored_at_ms = round(envelope.recorded_at.timestamp() * 1000)
    return (
        label.kind == named.kind and label.size_bytes == content.size_bytes
        and isinstance(label.stored_at_ms, int) and abs(label.stored_at_ms - stored_at_ms) <= 1
    )
