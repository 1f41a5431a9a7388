"""A connection for threads: the driver's event loop runs in a thread of its own, and whoever asks waits for it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import BlockingPortal

from adapters.log.postgres.connecting import PostgresConnection, PostgresError, connect
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.vocabulary.limits import MIB

_ROWS_AT_ONCE = 1_000
_BYTES_AT_ONCE = 8 * MIB
_CURSOR = "rows_in_order"


class FoundRows:
    """Rows that are here already. Implements `Rows`."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        """Return the next row, None behind the last."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


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

        async def open_() -> PostgresConnection:
            return await connect(address, settings=settings)

        self._connection: PostgresConnection = portal.call(open_)

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> FoundRows:
        """Run one statement.

        Raises:
            PostgresError: it failed, or its answer is missing.
        """
        return FoundRows(self._portal.call(self._fetch, statement, parameters))

    async def _fetch(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        rows = await self._connection.fetch(statement, parameters, seconds=self._seconds)
        return [tuple(row) for row in rows]

    def scan(
        self, statement: str, parameters: Sequence[Any] = (), /, *, rows_at_once: int = 1_000
    ) -> Iterator[Any]:
        """Yield the rows of a query as of one moment, about so many at a time; nothing else goes on meanwhile."""
        with self.snapshot():
            self.execute(f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR {statement}", parameters)
            while rows := self.execute(f"FETCH {rows_at_once} FROM {_CURSOR}").fetchall():
                yield from rows

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], /) -> None:
        """Store many rows, inside the caller's transaction."""
        for some in _portions(rows):
            self._portal.call(self._connection.copy_in, table, columns, some)

    def note_head(self, position: int, chained: bytes, /) -> None:
        """Say which event is the newest; inside the caller's transaction."""
        self.execute("UPDATE log_head SET position = ?, hash = ?", (position, chained))

    def damage(self) -> Iterator[str]:
        """Yield what is wrong with the tables themselves, beneath the rows: a sentence each."""
        from adapters.log.postgres import schema  # which is written over links

        yield from schema.damage(self)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every read inside see one moment."""
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        with self._ending("ROLLBACK"):
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, or none of it."""
        self.execute("BEGIN")
        with self._ending("COMMIT"):
            yield

    @contextmanager
    def _ending(self, statement: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if not (isinstance(error, PostgresError) and error.is_unanswered):  # else there is nothing to roll back on
                self.execute("ROLLBACK")
            raise
        self.execute(statement)

    @property
    def is_closed(self) -> bool:
        """Whether it is known to be gone, so that nothing can be sent on it."""
        return self._connection.is_closed

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
