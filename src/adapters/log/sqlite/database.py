"""The connections of one open log: one that writes, one for the event loop's point reads, more for long reads."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from adapters.log.sqlite import schema
from adapters.log.sqlite.committer import LogReplacedError, SqliteCommitter
from adapters.log.sqlite.connecting import (
    Guarded,
    SqliteConnection,
    connect_memory,
    connect_reader,
    connect_writer,
    driver,
    guard_version,
    make_private_file,
)
from adapters.log.sqlite.sharing import SharedReads
from adapters.log.sqlite.turnstile import Turnstile, TurnTimeoutError
from codespace_es.ports.fault_points import FaultHook
from codespace_es.ports.log import StoreUnavailableError


class SqliteDatabase:
    """An opened log file, or memory when there is no path; the tables are there. Implements `Database`."""

    def __init__(self, path: Path | None, *, lock_timeout_seconds: float) -> None:
        """Open the log, and make it if it isn't there.

        Raises:
            StoreUnavailableError: it can't be opened; LogFormatError if it is something else.
        """
        self.path = path
        self._files: tuple[str, ...] = ()
        self._identities: list[tuple[int, int]] = []
        self.turnstile: Turnstile | None = None
        if path is None:
            connection = connect_memory()
            schema.create_if_empty(connection)
            self.writing = Guarded(connection, threading.Lock())
            self.reading = self.writing
            return
        guard_version()
        try:
            self._open(path, lock_timeout_seconds)
        except (driver.Error, OSError, TurnTimeoutError) as error:
            self._close_turnstile()
            msg = f"{path}: the event log can't be opened: {error or 'it is locked'}"
            raise StoreUnavailableError(msg) from error
        except BaseException:
            self._close_turnstile()
            raise

    def _open(self, path: Path, lock_timeout_seconds: float) -> None:
        make_private_file(path)
        self.turnstile = Turnstile(path)
        # Switching to WAL and making the tables need the whole file: one process at a time.
        self.turnstile.take(time.monotonic() + lock_timeout_seconds)
        try:
            if path.stat().st_size:
                self._check(path)
            writer = connect_writer(path)
            try:
                writer.execute(f"PRAGMA busy_timeout = {int(lock_timeout_seconds * 1000)}")
                schema.create_if_empty(writer)
                writer.execute("PRAGMA busy_timeout = 0")
                reader = connect_reader(path)
            except BaseException:
                writer.close()
                raise
        finally:
            self.turnstile.leave()
        self.writing = Guarded(writer, threading.Lock())
        self.reading = Guarded(reader, threading.Lock())
        self._files = (str(path), f"{path}-wal", f"{path}-shm")
        self._identities = [_identify(file) for file in self._files]

    def require_in_place(self) -> None:
        """Do nothing if the path still names the files that are open.

        A log that was deleted or replaced under a living server is written on and lost with it; whoever opens the
        path next knows nothing of what was promised.

        Raises:
            LogReplacedError: it names others, or none.
        """
        for file, identity in zip(self._files, self._identities, strict=True):
            try:
                is_same = _identify(file) == identity
            except FileNotFoundError:
                is_same = False
            if not is_same:
                msg = f"{file} was removed or replaced while it was in use"
                raise LogReplacedError(msg)

    @staticmethod
    def _check(path: Path) -> None:
        """Refuse a foreign file before anything is written to it."""
        connection = connect_reader(path)
        try:
            if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                schema.check(connection)
        except driver.DatabaseError as error:
            if isinstance(error, driver.OperationalError):
                raise
            schema.check(connection)
        finally:
            connection.close()

    @property
    def is_shared(self) -> bool:
        """Other processes can write a file."""
        return self.path is not None

    def committer(self, *, faults: FaultHook, lock_timeout_seconds: float) -> SqliteCommitter:
        """Return what writes it."""
        return SqliteCommitter(self, faults=faults, lock_timeout_seconds=lock_timeout_seconds)

    async def rows(self, statement: str, parameters: Sequence[Any] = (), /, *, is_large: bool = False) -> list[Any]:
        """Return all rows of a short read: on the loop itself, since a hop to a thread costs more than the read."""
        if not is_large:
            with self.point_reader() as connection:
                return connection.execute(statement, parameters).fetchall()

        def read() -> list[Any]:
            with self.reader() as connection:
                return connection.execute(statement, parameters).fetchall()

        return await anyio.to_thread.run_sync(read)

    async def changes(self) -> int:
        """Return what changes when another connection has committed: some microseconds."""
        with self.point_reader() as connection:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def point_reader(self) -> Iterator[SqliteConnection]:
        """Give the connection that short reads share, locked."""
        with _readable(), self.reading.lock:
            yield self.reading.connection

    @contextmanager
    def reader(self) -> Iterator[SqliteConnection]:
        """Give a connection for a long read in a thread of its own; in memory the shared one, locked."""
        if self.path is None:
            with self.point_reader() as connection:
                yield connection
            return
        with _readable():
            connection = connect_reader(self.path)
            try:
                yield connection
            finally:
                connection.close()

    def shared_reads(self) -> SharedReads | None:
        """Return a way for another thread to read a log in memory; None for a file, which it opens."""
        return SharedReads(self.writing) if self.path is None else None

    def close(self) -> None:
        """Close every connection; the last one on a file folds its write-ahead log back."""
        if self.reading is not self.writing:
            self.reading.connection.close()
        with self.writing.lock:
            self.writing.connection.close()
        self._close_turnstile()

    async def aclose(self) -> None:
        """Close every connection."""
        await anyio.to_thread.run_sync(self.close)

    def _close_turnstile(self) -> None:
        if self.turnstile is not None:
            self.turnstile.close()
            self.turnstile = None


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except driver.Error as error:
        msg = f"the event log can't be read: {error}"
        raise StoreUnavailableError(msg) from error


def _identify(file: str) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_dev, status.st_ino
