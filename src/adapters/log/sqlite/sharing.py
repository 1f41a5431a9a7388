"""A log in memory, seen by one more reader: it has but one connection, which is locked for each read alone.

So writing goes on while somebody walks through the log: what a read finds is fetched under the lock, and large contents
one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn

from adapters.log.found_rows import FoundRows
from adapters.log.sqlite import schema
from adapters.log.sqlite.connecting import Guarded


class SharedReads:
    """Reads of a connection that others use as well. Implements `Connection` for reading; for one thread at a time."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded
        self._is_held = False

    def _turn(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._is_held else self._guarded.lock

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> FoundRows:
        """Run one statement and fetch all that it finds."""
        with self._turn():
            return FoundRows(self._guarded.connection.execute(statement, parameters).fetchall())

    def scan(self, statement: str, *, sizes: str) -> Iterator[Any]:  # noqa: ARG002 - each row has a turn of its own
        """Yield the rows of a query, each fetched under the lock as it is asked for.

        What is stored meanwhile may be among them, and is seen by other reads: here no moment can be kept for long.
        """
        with self._turn():
            cursor = self._guarded.connection.execute(statement)
            row = cursor.fetchone()
        while row is not None:
            yield row
            with self._turn():
                row = cursor.fetchone()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every read inside see one moment: nobody else has the connection meanwhile."""
        with self._guarded.lock:
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    def moment(self) -> AbstractContextManager[None]:
        """Nothing: whoever writes would wait for as long as a walk takes."""
        return nullcontext()

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
