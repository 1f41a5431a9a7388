"""A connection for threads: the driver's event loop runs in a thread of its own, and whoever asks waits for it."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal

from adapters.log.found_rows import FoundRows
from adapters.log.postgres import schema
from adapters.log.postgres.connecting import PostgresConnection, connect
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.vocabulary.limits import MIB

_T = TypeVar("_T")

_ROWS_AT_ONCE = 1_000
_BYTES_AT_ONCE = 8 * MIB
_CONTENT_BYTES_AT_ONCE = MIB // 4
"""Of one answer with contents, unless a single one is larger. More isn't faster."""


class Link:
    """A connection, for one thread at a time. Implements `Connection`."""

    def __init__(
        self, portal: BlockingPortal, address: PostgresAddress, *, settings: dict[str, str],
        seconds: float | None = None,
    ) -> None:
        """Connect.

        Args:
            portal: Where the driver's event loop runs.
            address: Whereto.
            settings: The server's settings for this session.
            seconds: How long a statement may take; None: as long as it takes.

        Raises:
            PostgresError: it can't be done.
        """
        self._portal = portal
        self._seconds = seconds
        self._is_given_up = False
        self._cursors = 0
        self._snapshots = 0

        async def open_() -> PostgresConnection:
            return await connect(address, settings=settings)

        self._connection: PostgresConnection = portal.call(open_)

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> FoundRows:
        """Run one statement.

        Raises:
            PostgresError: it failed, or its answer is missing.
        """
        return FoundRows(self._wait_for(self._fetch, statement, parameters))

    def _wait_for(self, function: Callable[..., Awaitable[_T]], /, *arguments: Any) -> _T:
        """Return what `function` does with the connection; if that isn't waited for to its end, drop the connection."""
        try:
            return self._portal.call(function, *arguments)
        except Exception:
            raise
        except BaseException:  # interrupted: what it was doing goes on, and nothing else can be done with it
            self._is_given_up = True
            self._portal.start_task_soon(self._connection.terminate)
            raise

    async def _fetch(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        rows = await self._connection.fetch(statement, parameters, seconds=self._seconds)
        return [tuple(row) for row in rows]

    def scan(self, statement: str, *, sizes: str) -> Iterator[Any]:
        """Yield the rows of a query as of one moment, some at a time; every other read meanwhile sees that moment too.

        Each answer is whole in memory, with the contents in it: `sizes` says how many of them are few enough.
        """
        with self.snapshot():
            rows, bytes_in_each = self._open_cursor(statement), self._open_cursor(sizes)
            for count in self._counts(bytes_in_each):
                yield from self.execute(f"FETCH {count} FROM {rows}")

    def _open_cursor(self, statement: str) -> str:
        self._cursors += 1
        name = f"rows_{self._cursors}"
        self.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}")
        return name

    def _counts(self, sizes: str) -> Iterator[int]:
        """Yield how many of the next rows are few enough, by a cursor over the bytes in each."""
        while some := self.execute(f"FETCH {_ROWS_AT_ONCE} FROM {sizes}").fetchall():
            count = size_bytes = 0
            for (row_bytes,) in some:
                if count and size_bytes + row_bytes > _CONTENT_BYTES_AT_ONCE:
                    yield count
                    count = size_bytes = 0
                count += 1
                size_bytes += row_bytes
            yield count

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], /) -> None:
        """Store many rows, inside the caller's transaction."""
        for some in _portions(rows):
            self._wait_for(self._connection.copy_in, table, columns, some)

    def note_head(self, position: int, chained: bytes, /) -> None:
        """Say which event is the newest; inside the caller's transaction."""
        self.execute("UPDATE log_head SET position = ?, hash = ?", (position, chained))

    def damage(self) -> Iterator[str]:
        """Yield what is wrong with the tables themselves, beneath the rows: a sentence each."""
        yield from schema.damage(self)

    def moment(self) -> AbstractContextManager[None]:
        """Let every read inside see one moment, for as long as a walk takes."""
        return self.snapshot()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every read inside see one moment; inside another one, that one's, up to the end of both."""
        if not self._snapshots:
            self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._snapshots += 1
        try:
            yield
        finally:
            self._snapshots -= 1
            if not self._snapshots and not self.is_closed:
                self.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, or none of it."""
        self.execute("BEGIN")
        try:
            yield
        except BaseException:
            if not self.is_closed:  # else there is nothing to roll back on
                self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    @property
    def is_closed(self) -> bool:
        """Whether it is known to be gone, so that nothing can be sent on it."""
        return self._is_given_up or self._connection.is_closed

    def terminate(self) -> None:
        """Drop it without a word."""
        self._portal.call(self._connection.terminate)

    def close(self) -> None:
        """Close it."""
        self._portal.call(self._connection.close)


def _portions(rows: Iterable[Sequence[Any]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield `rows` in lists that are neither long nor large, unless one row is."""
    some: list[tuple[Any, ...]] = []
    size_bytes = 0
    for row in rows:
        some.append(tuple(row))
        size_bytes += sum(len(value) for value in row if isinstance(value, bytes))
        if len(some) >= _ROWS_AT_ONCE or size_bytes >= _BYTES_AT_ONCE:
            yield some
            some, size_bytes = [], 0
    if some:
        yield some
