"""A log read by a tool: while servers write it, after they are gone, or as a copy. Never writes an event."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from adapters.log import bodies, open_rows, statements
from adapters.log.bodies import StoredBody, StoredContent
from adapters.log.chain import GENESIS, Break, RawRow, find_breaks
from adapters.log.database import Connection
from adapters.log.names import can_be_name
from adapters.log.open_rows import OpenIndexDifference
from adapters.log.places import LogPlace, connect_to_read
from adapters.log.rows import Decoder, StoredRow
from adapters.log.scanning import scan_events, scan_events_to, scan_stream
from adapters.log.sqlite.connecting import driver
from codespace_es.ports.log import Catalogue, OpenIndexRule, OpenItem, StoreUnavailableError
from codespace_es.vocabulary.event import Digest, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId

__all__ = ["Break", "LogReader"]


class LogReader:
    """An open log that can only be read. A context manager; for one thread at a time.

    Iterators read the log as it was when they began.
    """

    def __init__(self, place: LogPlace | Connection, catalogue: Catalogue) -> None:
        """Open the log at `place`; or read it by a connection to it.

        Raises:
            LogMissingError: there is none.
            LogFormatError: what is there isn't a log, or is one of a newer format.
            StoreUnavailableError: it can't be read.
        """
        self._decoder = Decoder(catalogue)
        self._connection = connect_to_read(place) if isinstance(place, LogPlace) else place

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Let every read inside see the log as it is at the first of them, or just before; in memory, in a copy."""
        with _translated(), self._connection.moment():
            yield

    def head(self) -> tuple[int, bytes]:
        """Return position and hash of the newest event; (0, 32 zero bytes) in an empty log."""
        with _translated():
            return self._connection.execute(statements.HEAD).fetchone() or (0, GENESIS)

    def raw_rows(self, *, after: int = 0, last: int | None = None) -> Iterator[RawRow]:
        """Yield position, stream, version, topic, state and hash of each event, as stored.

        Args:
            after: Position to start behind.
            last: Position to end with; None: the newest event's as the reading begins.
        """
        with _translated():
            if last is None:
                rows = scan_events(self._connection, statements.RAW_SLICE, after=after)
            else:
                rows = scan_events_to(last, self._connection, statements.RAW_SLICE, after=after)
            for row in rows:
                yield row if _is_typed(row) else _as_typed(row)

    def find_breaks(self) -> Iterator[Break]:
        """Yield each place where the chain doesn't hold; nothing in a log that is as it was appended."""
        return find_breaks(self.raw_rows())

    def read_log(self, *, after: int = 0) -> Iterator[RecordedEvent]:
        """Yield the events with position > `after`, in order.

        Raises:
            UnknownTopicError: an event of a topic that isn't in the catalogue.
            StoreUnavailableError: a row that can't be read, named by its position.
        """
        with _translated():
            yield from self._decoder.decode(_typed(scan_events(self._connection, after=after)))

    def read_stream(self, stream_id: StreamId) -> Sequence[RecordedEvent]:
        """Return all events of a stream in order. Raises as `read_log`."""
        if not can_be_name(stream_id):
            return []
        with _translated():
            return list(self._decoder.decode(_typed(self._connection.execute(statements.STREAM, (stream_id,)))))

    def walk_stream(self, stream_id: StreamId, *, after: int = 0) -> Iterator[RecordedEvent]:
        """Yield the events of a stream with version > `after`, in order, a few held at a time. Raises as `read_log`."""
        if can_be_name(stream_id):
            with _translated():
                yield from self._decoder.decode(_typed(scan_stream(self._connection, stream_id, after=after)))

    def streams_beginning(self, beginning: str) -> Sequence[StreamId]:
        """Return the first two streams whose ids begin with `beginning`, or fewer; one look into the index each."""
        found: list[StreamId] = []
        with _translated():
            for statement in (statements.STREAM_FROM, statements.STREAM_BEHIND):
                name = self._connection.execute(statement, (found[-1] if found else beginning,)).fetchone()[0]
                if not isinstance(name, str) or not name.startswith(beginning):
                    break
                found.append(StreamId(name))
        return found

    def read_body(self, stream_id: StreamId, digest: Digest) -> bytes | None:
        """Return the bytes stored for this stream under `digest`, None if there are none."""
        if not can_be_name(stream_id):
            return None
        with _translated():
            try:
                return bodies.content_of(self._connection, stream_id, digest)
            except (ValueError, TypeError):
                return None  # a log can name what is no digest, and hold what is no content

    def stored_contents(self) -> Iterator[StoredContent]:
        """Yield every stored body with its bytes and label, in about the order in which they were stored."""
        with _translated():
            yield from bodies.scan(self._connection)

    def stored_bodies(self) -> Iterator[StoredBody]:
        """Yield what is known of every stored body without the bytes, stream by stream, in short reads."""
        with _translated():
            yield from bodies.list_all(self._connection)

    def open_items(self, *, kind: str | None = None) -> Sequence[OpenItem]:
        """Return the open index's rows, oldest first, of this kind (None: any)."""
        with _translated():
            return open_rows.select(self._connection, kind=kind)

    def open_items_at_head(self) -> tuple[int, Sequence[OpenItem]]:
        """Return the newest event's position, 0 if there is none, and the open index's rows of the same moment."""
        with _translated(), self._connection.snapshot():
            newest = self._connection.execute(statements.HEAD).fetchone()
            return (0 if newest is None else newest[0]), open_rows.select(self._connection)

    def compare_open_index(self, rule: OpenIndexRule) -> Sequence[OpenIndexDifference]:
        """Return each row in which the open index differs from the fold of the log; none when it is right.

        Streams with an unknown topic are left out: what they have open can't be said here.
        """
        with _translated():
            return open_rows.compare(self._connection, self._decoder, rule)

    def damage(self) -> Iterator[str]:
        """Yield what is wrong with the file or the tables themselves, beneath the rows: a sentence each."""
        with _translated():
            yield from self._connection.damage()


def _is_typed(row: tuple[object, ...]) -> bool:
    """Return whether stream, version and topic of a row are of their kinds: a file can hold anything."""
    return isinstance(row[1], str) and isinstance(row[2], int) and isinstance(row[3], str)


def _as_typed(row: RawRow) -> RawRow:
    """Return a row that can be spoken of; it is no longer what was appended, so the chain breaks there."""
    position, stream_id, version, topic, state, chained = row
    return position, str(stream_id), version if isinstance(version, int) else 0, str(topic), state, chained


def _typed(rows: Iterable[StoredRow]) -> Iterator[StoredRow]:
    for row in rows:
        if not _is_typed(row):
            msg = f"the event log is damaged at position {row[0]}: stream, version or topic is none"
            raise StoreUnavailableError(msg)
        yield row


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (driver.Error, UnicodeDecodeError) as error:
        msg = f"the event log can't be read: {error}"
        raise StoreUnavailableError(msg) from error
