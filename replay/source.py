"""What an audit needs of a log: reads only. `adapters.log.reader.LogReader` has this shape; so has any stored log."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from codespace_es.ports.log import OpenItem
from codespace_es.vocabulary.event import Digest, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId

RawRow = tuple[int, str, int, str, bytes, bytes]
"""Position, stream, version, topic, state, hash: an event as it is stored."""

StoredRow = tuple[str, bytes, bytes, str, int, int]
"""Stream, digest (32 bytes), content, kind, size in bytes, stored at (milliseconds since 1970)."""


class LogSource(Protocol):
    """A log that can be read and not written; for one thread at a time.

    Guarantee: an iterator over events yields those up to the head of its beginning; other reads see what is there now.
    Every read may raise `StoreUnavailableError`; those that decode may raise `UnknownTopicError`.
    """

    def moment(self) -> AbstractContextManager[None]:
        """Let every read inside see the log as it is at the first of them, or just before."""
        ...

    def head(self) -> tuple[int, bytes]:
        """Return position and hash of the newest event; (0, 32 zero bytes) in an empty log."""
        ...

    def raw_rows(self, *, after: int = 0, last: int | None = None) -> Iterator[RawRow]:
        """Yield the events with `after` < position <= `last` (None: all) as they are stored, in order of position."""
        ...

    def open_items_at_head(self) -> tuple[int, Sequence[OpenItem]]:
        """Return the newest event's position, and the open index's rows of the same moment."""
        ...

    def read_log(self, *, after: int = 0) -> Iterator[RecordedEvent]:
        """Yield the events with position > `after`, in order of position."""
        ...

    def walk_stream(self, stream_id: StreamId, *, after: int = 0) -> Iterator[RecordedEvent]:
        """Yield the events of a stream with version > `after`, in order, a few held at a time.

        A stream may be as long as the log: whoever wants its first event, or folds it, comes here.
        """
        ...

    def read_body(self, stream_id: StreamId, digest: Digest) -> bytes | None:
        """Return the bytes stored for this stream under `digest`, None if there are none."""
        ...

    def stored_contents(self) -> Iterator[StoredRow]:
        """Yield every stored content with its bytes and its label, in about the order of their events."""
        ...

    def open_items(self) -> Sequence[OpenItem]:
        """Return the rows of the open index, oldest first."""
        ...

    def damage(self) -> Iterator[str]:
        """Yield what is wrong with the file or the tables themselves, beneath the rows, one sentence each."""
        ...


def first_of(source: LogSource, stream_id: StreamId | str) -> RecordedEvent | None:
    """Return the first event of a stream; None if there is none. Raises UnknownTopicError, StoreUnavailableError."""
    return next(source.walk_stream(StreamId(stream_id)), None)
