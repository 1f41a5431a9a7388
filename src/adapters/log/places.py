"""Where a log can be, and how it is opened there. What one place doesn't need isn't imported for it."""

from pathlib import Path

from adapters.log.database import Connection, Database
from adapters.settings.postgres_address import PostgresAddress

LogPlace = Path | PostgresAddress
"""A file, or a PostgreSQL."""


def open_database(place: LogPlace | None, *, lock_timeout_seconds: float) -> Database:
    """Return the opened log at `place`; None: a new one in memory.

    Raises:
        StoreUnavailableError: it can't be opened; LogFormatError if it is something else; LogMissingError if it is
            to be made first.
    """
    if isinstance(place, PostgresAddress):
        from adapters.log.postgres.database import PostgresDatabase

        return PostgresDatabase(place)
    from adapters.log.sqlite.database import SqliteDatabase

    return SqliteDatabase(place, lock_timeout_seconds=lock_timeout_seconds)


def connect_to_read(place: LogPlace, *, answer_seconds: float | None = None) -> Connection:
    """Return a connection that can only read the log at `place`. Raises as `open_database`, and LogMissingError.

    `answer_seconds`: how long a database may take to answer one query; None: as long as it takes.
    """
    if isinstance(place, PostgresAddress):
        from adapters.log.postgres.reading import ReadingLink

        return ReadingLink(place, answer_seconds=answer_seconds)
    from adapters.log.sqlite.reading import open_read_only

    return open_read_only(place)
