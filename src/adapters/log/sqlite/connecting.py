"""SQLite itself: how connections are opened, from which version on, and what the driver's errors mean."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adapters.log.sqlite import schema
from adapters.log.sqlite.binding import driver
from codespace_es.ports.log import LogMissingError, StoreUnavailableError

__all__ = [
    "Guarded",
    "SqliteConnection",
    "connect_memory",
    "connect_reader",
    "connect_writer",
    "driver",
    "guard_version",
    "is_broken",
    "is_busy",
    "make_private_file",
]

VERSION_MIN = (3, 51, 3)
"""Older ones may corrupt a file that several connections write. Source: SQLite, WAL-reset bug."""

AUTOCHECKPOINT_PAGES = 4_000
WAL_BYTES_KEPT = 64 * 1024 * 1024
READ_BUSY_MS = 2_000
_DAMAGE_TOLD_MAX = 20

_BUSY, _LOCKED, _IO_ERROR, _CORRUPT, _NOT_A_DATABASE = 5, 6, 10, 11, 26


class SqliteConnection(driver.Connection):
    """A connection of the driver, as the log sees one. Implements `Connection`."""

    def scan(self, statement: str, *, sizes: str) -> Iterator[Any]:  # noqa: ARG002 - the cursor reads row by row
        """Yield the rows of a query, read as they are asked for."""
        return self.execute(statement)

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], /) -> None:
        """Store many rows, inside the caller's transaction."""
        places = ", ".join("?" * len(columns))
        self.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)  # noqa: S608 - our own names

    def note_head(self, position: int, chained: bytes, /) -> None:
        """Nothing: the newest event is the last row."""

    def damage(self) -> Iterator[str]:
        """Yield what is wrong with the file itself, beneath its rows: one sentence each, at most so many."""
        yield from schema.differences(self)
        for (told,) in self.execute(f"PRAGMA integrity_check({_DAMAGE_TOLD_MAX})"):
            if told != "ok":
                yield f"SQLite finds it damaged: {told}"

    def moment(self) -> AbstractContextManager[None]:
        """Let every read inside see one moment, for as long as a walk takes."""
        return self.snapshot()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every read inside see one moment; inside another one, that one's."""
        is_outer = not self.in_transaction
        if is_outer:
            self.execute("BEGIN")
        try:
            yield
        finally:
            if is_outer and self.in_transaction:  # some errors end it
                self.execute("ROLLBACK")


@dataclass(frozen=True, slots=True)
class Guarded:
    """A connection and the lock to hold while using it. In memory, writer and readers share both."""

    connection: "SqliteConnection"
    lock: threading.Lock


def guard_version(version: tuple[int, ...] = driver.sqlite_version_info) -> None:
    """Do nothing if `version` of SQLite may write a log file.

    Raises:
        StoreUnavailableError: it is older than 3.51.3.
    """
    if version < VERSION_MIN:
        found, needed = (".".join(map(str, numbers)) for numbers in (version, VERSION_MIN))
        msg = f"SQLite {found} may corrupt a shared log file; {needed} or newer is needed. Install pysqlite3 >= 0.6.1."
        raise StoreUnavailableError(msg)


def make_private_file(path: Path) -> None:
    """Make `path` and its missing directories for this user alone, whatever the umask; keep what is there.

    An existing file is never opened: closing it would drop the locks that SQLite holds on it in this process.
    """
    for directory in reversed(path.parents):
        if not directory.exists():
            directory.mkdir(mode=0o700, exist_ok=True)
            directory.chmod(0o700)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    else:
        os.fchmod(descriptor, 0o600)
        os.close(descriptor)


def connect_writer(path: Path) -> "SqliteConnection":
    """Return a connection that may write the file at `path`: WAL, full durability, no waiting for locks."""
    connection = driver.connect(path, timeout=READ_BUSY_MS / 1000, isolation_level=None, check_same_thread=False,
                                factory=SqliteConnection)
    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            msg = f"{path}: this file system can't hold a write-ahead log (journal mode stays {mode})"
            raise StoreUnavailableError(msg)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
        connection.execute("PRAGMA secure_delete = ON")  # what is scrubbed is overwritten, not only unlinked
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path, *, is_immutable: bool = False) -> "SqliteConnection":
    """Return a connection that can't write the file at `path` and never checkpoints it.

    Args:
        path: The log file.
        is_immutable: Nobody writes it and its directory can't be written: read it without locks or side files.

    Raises:
        LogMissingError: there is no file.
    """
    if not path.exists():
        msg = f"{path}: there is no event log"
        raise LogMissingError(msg)
    # SQLite's own quoting: `?` and `#` would begin the URI's query.
    uri = "file:" + quote(os.fsencode(path.absolute())) + ("?mode=ro&immutable=1" if is_immutable else "?mode=ro")
    connection = driver.connect(uri, uri=True, timeout=READ_BUSY_MS / 1000, isolation_level=None,
                                check_same_thread=False, factory=SqliteConnection)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def connect_memory() -> "SqliteConnection":
    """Return a connection to a store of its own that ends with it."""
    return driver.connect(":memory:", isolation_level=None, check_same_thread=False, factory=SqliteConnection)


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_busy(error: BaseException) -> bool:
    """Tell whether somebody else holds the lock, so that the same statement may succeed later."""
    return isinstance(error, driver.OperationalError) and _code(error) in {_BUSY, _LOCKED}


def is_broken(error: BaseException) -> bool:
    """Tell whether the file or its disk can't be trusted any more: an I/O error or damage, not just a full disk."""
    return isinstance(error, driver.Error) and _code(error) in {_IO_ERROR, _CORRUPT, _NOT_A_DATABASE}
