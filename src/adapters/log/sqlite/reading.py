"""A log file opened by a tool that only reads: while servers write it, after they are gone, or as a copy."""

import os
from pathlib import Path

from adapters.log.sqlite import schema
from adapters.log.sqlite.connecting import SqliteConnection, connect_reader, driver, is_busy
from codespace_es.ports.log import LogFormatError, LogMissingError, StoreUnavailableError


def open_read_only(path: Path) -> SqliteConnection:
    """Return a connection to the log at `path`; without side files only where they can't be written."""
    if not path.is_file():
        msg = f"{path}: there is no event log"
        raise LogMissingError(msg)
    try:
        return _checked(path, is_immutable=False)
    except LogFormatError:
        raise
    except (StoreUnavailableError, driver.Error, UnicodeDecodeError) as error:
        if not _is_on_read_only_media(path, error):
            msg = f"{path}: the event log can't be read: {_reason(error)}"
            raise StoreUnavailableError(msg) from error
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            msg = (f"{path}: it can't be read here ({_reason(error)}), since its write-ahead log must be read too: "
                   "copy both files to a directory that can be written")
            raise StoreUnavailableError(msg) from error
    try:
        return _checked(path, is_immutable=True)
    except (driver.Error, UnicodeDecodeError) as error:
        msg = f"{path}: the event log can't be read: {error}"
        raise StoreUnavailableError(msg) from error


def _reason(error: BaseException) -> str:
    return str(error.__cause__ if isinstance(error, StoreUnavailableError) and error.__cause__ else error)


def _is_on_read_only_media(path: Path, error: BaseException) -> bool:
    """Return whether the side files of a log can't be made or opened, so that nobody can be writing it from here.

    A log that somebody has locked is none of these, however empty its write-ahead log is.
    """
    cause = error.__cause__ if isinstance(error, StoreUnavailableError) else error
    if cause is None or is_busy(cause):
        return False
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return True
    memory = path.with_name(path.name + "-shm")
    return memory.exists() and not os.access(memory, os.R_OK | os.W_OK)


def _checked(path: Path, *, is_immutable: bool) -> SqliteConnection:
    connection = connect_reader(path, is_immutable=is_immutable)
    try:
        schema.check(connection)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
