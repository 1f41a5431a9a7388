"""A log in memory, seen by one more reader: it has but one connection, which is locked for each read alone.

So writing goes on while somebody walks through the log. A walk that is to see one moment gets a copy of that moment:
memory has no write-ahead log beside which an older state could be read. Taking it costs about what is stored, in
bytes and for as long as these are copied.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from adapters.log.found_rows import FoundRows
from adapters.log.sqlite import schema
from adapters.log.sqlite.connecting import Guarded, SqliteConnection, connect_memory


class SharedReads:
    """Reads of a connection that others use as well. Implements `Connection` for reading; for one thread at a time."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded
        self._held: SqliteConnection | None = None
        """The connection itself while it is locked, or the copy of a moment."""
        self._moments = 0

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> FoundRows:
        """Run one statement and fetch all that it finds."""
        if self._held is not None:
            return FoundRows(self._held.execute(statement, parameters).fetchall())
        with self._guarded.lock:
            return FoundRows(self._guarded.connection.execute(statement, parameters).fetchall())

    def scan(self, statement: str, *, sizes: str) -> Iterator[Any]:  # noqa: ARG002 - the cursor reads row by row
        """Yield the rows of a query as of one moment, which other reads meanwhile see too."""
        with self.moment():
            assert self._held is not None
            yield from self._held.execute(statement)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every read inside see one moment: nobody else has the connection meanwhile."""
        if self._held is not None:
            yield
            return
        with self._guarded.lock:
            self._held = self._guarded.connection
            try:
                yield
            finally:
                self._held = None

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Let every read inside see this moment, of which a copy is kept; inside another one, that one's."""
        if not self._moments:
            assert self._held is None, "a snapshot is short, and no walk begins in it"
            self._held = self._copy()
        self._moments += 1
        try:
            yield
        finally:
            self._moments -= 1
            if not self._moments:
                copy, self._held = self._held, None
                assert copy is not None
                copy.close()

    def _copy(self) -> SqliteConnection:
        copy = connect_memory()
        try:
            with self._guarded.lock:
                self._guarded.connection.backup(copy)
        except BaseException:
            copy.close()
            raise
        return copy

    def damage(self) -> Iterator[str]:
        """Yield how the tables differ from what they should be; memory has no pages that a disk could damage."""
        yield from schema.differences(self)

    def insert_rows(self, _table: str, _columns: Sequence[str], _rows: Iterable[Sequence[Any]], /) -> NoReturn:
        """Refuse: this only reads."""
        raise AssertionError("whoever looks at a log doesn't write it")

    def note_head(self, _position: int, _chained: bytes, /) -> NoReturn:
        """Refuse: this only reads."""
        raise AssertionError("whoever looks at a log doesn't write it")

    def close(self) -> None:
        """Nothing: the connection is the log's."""
