"""What a database has to give so that the event log can stand on it: the seam between the log and what keeps it.

The log is written once, over these; `sqlite` and `postgres` are two of them. Statements are shared: both speak the
same SQL here, with `?` for a parameter. Every problem leaves a connection as a `StoreUnavailableError`, but for the
errors of SQLite's own driver, which who holds such a connection translates.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from adapters.log.submission import BodyRow, Submission
from codespace_es.ports.fault_points import FaultHook

_T = TypeVar("_T")


class Rows(Protocol):
    """What a statement has found."""

    def fetchone(self) -> Any:
        """Return the next row, None behind the last."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """One connection, for one thread at a time."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Run one statement."""
        ...

    def scan(self, statement: str, *, sizes: str) -> Iterator[Any]:
        """Yield the rows of a query that finds contents, as of one moment, which other reads meanwhile see too.

        Args:
            statement: The query, without parameters.
            sizes: A query for the bytes in each row, in the same order.
        """
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Let every read inside see one moment. Short: what it keeps alive, nobody can tidy up."""
        ...

    def moment(self) -> AbstractContextManager[None]:
        """The same for as long as a walk takes; where others use this connection, in a copy: none waits so long."""
        ...

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], /) -> None:
        """Store many rows, inside the caller's transaction."""
        ...

    def note_head(self, position: int, chained: bytes, /) -> None:
        """Say which event is the newest, where that is on record of its own; inside the caller's transaction."""
        ...

    def damage(self) -> Iterator[str]:
        """Yield what is wrong with the file or the tables themselves, beneath the rows: a sentence each."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class Committer(Protocol):
    """Makes appends durable. Used by the writer's thread alone, but for `run_alone`."""

    @property
    def failure(self) -> str | None:
        """Why this log may never be written again by this process; None while all is well."""
        ...

    def commit(self, batch: list[Submission]) -> None:
        """Settle every submission of `batch`, each wholly or not at all. Never raises: what goes wrong is theirs.

        Nobody is answered before the commit, neither yes nor no. Where its fate isn't plain, the log is asked whether
        the append stands there.
        """
        ...

    def store_large_body(self, row: BodyRow) -> None:
        """Store one body durably, in a transaction of its own.

        Raises:
            StoreUnavailableError: it wasn't stored.
        """
        ...

    def run_alone(self, change: Callable[[Connection], _T]) -> _T:
        """Make a change to what isn't an event, durably, in a transaction of its own. May be called in any thread.

        Raises:
            StoreUnavailableError: nothing was changed.
        """
        ...

    def tidy(self) -> None:
        """Do what is better done in a quiet moment."""
        ...


class Database(Protocol):
    """An opened log, with its tables."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes can write it."""
        ...

    def committer(self, *, faults: FaultHook, lock_timeout_seconds: float) -> Committer:
        """Return what writes it. Only one at a time."""
        ...

    async def rows(self, statement: str, parameters: Sequence[Any] = (), /, *, is_large: bool = False) -> list[Any]:
        """Return all rows of a short read, on the event loop that uses the log; `is_large`: they hold many bytes.

        Raises:
            StoreUnavailableError: it can't be read now.
        """
        ...

    async def changes(self) -> int:
        """Return a number that changes when another connection has committed."""
        ...

    def point_reader(self) -> AbstractContextManager[Connection]:
        """Give a thread the connection that short reads share, locked."""
        ...

    def reader(self) -> AbstractContextManager[Connection]:
        """Give a thread a connection of its own for a long read; in memory the shared one, locked."""
        ...

    def shared_reads(self) -> Connection | None:
        """Return a way for another thread to read a log in memory; None: whoever looks opens its place."""
        ...

    def close(self) -> None:
        """Close every connection. May block."""
        ...

    async def aclose(self) -> None:
        """Close every connection, on the event loop that used it."""
        ...
