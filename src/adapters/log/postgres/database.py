"""The connections of one open log in PostgreSQL: a session that writes, some that read on the server's event loop."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio.to_thread

from adapters.log import statements
from adapters.log.postgres import schema
from adapters.log.postgres.committer import PostgresCommitter
from adapters.log.postgres.connecting import PostgresError
from adapters.log.postgres.link import Link
from adapters.log.postgres.loop_thread import LoopThread
from adapters.log.postgres.parts import require_whole
from adapters.log.postgres.reading_pool import READING, ReadingPool
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.fault_points import FaultHook
from codespace_es.ports.log import LogFormatError, LogMissingError, StoreUnavailableError


class PostgresDatabase:
    """An opened log; its tables are there. Implements `Database`."""

    is_shared = True

    def __init__(self, address: PostgresAddress) -> None:
        """Open the log.

        Raises:
            LogMissingError: there is none: its tables are made by an explicit step.
            LogFormatError: it has a newer format.
            StoreUnavailableError: it can't be opened, a part of it is missing, or it may lose what it acknowledges.
        """
        self._address = address
        self._thread = LoopThread()
        self._portal = self._thread.portal
        self._lock = threading.Lock()
        self._shared: Link | None = None
        self._committer: PostgresCommitter | None = None
        self._pool: ReadingPool | None = None
        try:
            with opening(address), self.reader() as link:
                schema.check(link)
                require_whole(link)
                schema.require_durable(link)
        except BaseException:
            self.close()
            raise

    def committer(self, *, faults: FaultHook, lock_timeout_seconds: float) -> PostgresCommitter:
        """Return what writes it."""
        self._committer = PostgresCommitter(
            self._portal, self._address, faults=faults, lock_timeout_seconds=lock_timeout_seconds)
        return self._committer

    async def rows(self, statement: str, parameters: Sequence[Any] = (), /, *, is_large: bool = False) -> list[Any]:  # noqa: ARG002 - no read holds up the loop
        """Return all rows of a short read."""
        if self._pool is None:
            self._pool = ReadingPool(self._address)
        with _readable():
            return await self._pool.fetch(statement, parameters)

    async def changes(self) -> int:
        """Return what changes with each commit: the position of the newest event."""
        rows = await self.rows(statements.HEAD)
        return rows[0][0] if rows else 0

    @contextmanager
    def point_reader(self) -> Iterator[Link]:
        """Give the connection that short reads of threads share, locked."""
        with _readable(), self._lock:
            if self._shared is None:
                self._shared = Link(self._portal, self._address, settings=READING)
            yield self._shared

    @contextmanager
    def reader(self) -> Iterator[Link]:
        """Give a connection of its own for a long read in a thread."""
        with _readable():
            link = Link(self._portal, self._address, settings=READING)
            try:
                yield link
            finally:
                link.close()

    def shared_reads(self) -> None:
        """Nothing: whoever looks connects."""

    def close(self) -> None:
        """Close every connection of threads."""
        if self._committer is not None:
            self._committer.close()
        if self._shared is not None:
            self._shared.close()
        self._thread.stop()

    async def aclose(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.aclose()
        await anyio.to_thread.run_sync(self.close)


@contextmanager
def opening(address: PostgresAddress) -> Iterator[None]:
    """Say which log it is that can't be opened."""
    try:
        yield
    except (LogMissingError, LogFormatError) as error:
        msg = f"{address}: {error}"
        raise type(error)(msg) from error
    except StoreUnavailableError as error:
        msg = f"{address}: the event log can't be opened: {error}"
        raise StoreUnavailableError(msg) from error


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except PostgresError as error:
        msg = f"the event log can't be read: {error}"
        raise StoreUnavailableError(msg) from error
