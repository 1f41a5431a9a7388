"""A log whose long reads are attended: somebody is told how far they are, and may end them by raising."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from codespace_es.ports.log import OpenItem
from codespace_es.vocabulary.event import Digest, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.source import LogSource, RawRow, StoredRow

_ROWS_BETWEEN_LOOKS = 256


class Attended:
    """Another `LogSource`, with the same rows."""

    def __init__(self, source: LogSource, look: Callable[[int], None]) -> None:
        """Call `look` with a position, now and then, while rows are taken; what it raises ends the read."""
        self._source = source
        self._look = look
        self._reached = 0

    def moment(self) -> AbstractContextManager[None]:
        """See `LogSource`."""
        return self._source.moment()

    def head(self) -> tuple[int, bytes]:
        """See `LogSource`."""
        return self._source.head()

    def raw_rows(self, *, after: int = 0, last: int | None = None) -> Iterator[RawRow]:
        """See `LogSource`."""
        for number, row in enumerate(self._source.raw_rows(after=after, last=last)):
            if number % _ROWS_BETWEEN_LOOKS == 0:
                self._reach(row[0])
            yield row

    def read_log(self, *, after: int = 0) -> Iterator[RecordedEvent]:
        """See `LogSource`."""
        for number, recorded in enumerate(self._source.read_log(after=after)):
            if number % _ROWS_BETWEEN_LOOKS == 0:
                self._reach(recorded.position)
            yield recorded

    def walk_stream(self, stream_id: StreamId, *, after: int = 0) -> Iterator[RecordedEvent]:
        """See `LogSource`."""
        for number, recorded in enumerate(self._source.walk_stream(stream_id, after=after), start=1):
            if number % _ROWS_BETWEEN_LOOKS == 0:
                self._look(self._reached)  # a stream leads back: it is no progress
            yield recorded

    def read_body(self, stream_id: StreamId, digest: Digest) -> bytes | None:
        """See `LogSource`."""
        return self._source.read_body(stream_id, digest)

    def stored_contents(self) -> Iterator[StoredRow]:
        """See `LogSource`."""
        return self._source.stored_contents()

    def open_items_at_head(self) -> tuple[int, Sequence[OpenItem]]:
        """See `LogSource`."""
        return self._source.open_items_at_head()

    def open_items(self) -> Sequence[OpenItem]:
        """See `LogSource`."""
        return self._source.open_items()

    def damage(self) -> Iterator[str]:
        """See `LogSource`."""
        return self._source.damage()

    def _reach(self, position: int) -> None:
        self._reached = position
        self._look(position)
