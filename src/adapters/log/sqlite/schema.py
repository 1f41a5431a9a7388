"""The tables of a log file, how they are made once, and how a file is recognised as a log.

`stored_events` shows the events under the names of the `eventsourcing` library, so that its own recorder reads our
file (with ORIGINATOR_ID_TYPE=text); it can't write through the view, which would break the chain.
"""

import re
from collections.abc import Iterator

from adapters.log.database import Connection
from adapters.log.sqlite.binding import driver
from codespace_es.ports.log import LogFormatError, StoreUnavailableError

APPLICATION_ID = 0x43534553
"""`CSES`: marks a SQLite file as one of ours."""

FORMAT = 1
"""Raised when an older server could no longer read the file."""

STATEMENTS = (
    """CREATE TABLE events (
        position INTEGER PRIMARY KEY,
        stream_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        topic TEXT NOT NULL,
        state BLOB NOT NULL,
        hash BLOB NOT NULL,
        UNIQUE (stream_id, version))""",
    """CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END""",
    """CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END""",
    """CREATE VIEW stored_events AS SELECT position AS rowid, stream_id AS originator_id,
        version AS originator_version, topic, state FROM events""",
    """CREATE TABLE bodies (
        stream_id TEXT NOT NULL,
        digest BLOB NOT NULL,
        kind TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        stored_at_ms INTEGER NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (stream_id, digest))""",
    """CREATE TABLE open_items (
        stream_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        workspace_key TEXT,
        instance_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (stream_id, kind)) WITHOUT ROWID""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)

_NAME = re.compile(r"CREATE (?:TABLE|INDEX|TRIGGER|VIEW) (\w+)")


def differences(connection: Connection) -> Iterator[str]:
    """Yield what of the tables, views and triggers of a log file isn't as this product makes it.

    Whoever may write the file can plant a trigger that acts on every later append, or take those away that keep the
    log append-only.
    """
    expected = {named[1]: statement for statement in STATEMENTS if (named := _NAME.match(statement)) is not None}
    found = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    for name in sorted({*expected, *found}):
        if name not in found:
            yield f"{name} is missing from the file"
        elif name not in expected:
            yield f"{name} stands in the file, and isn't of this product"
        elif found[name] != expected[name]:
            yield f"{name} isn't made as this product makes it"


def create_if_empty(connection: driver.Connection) -> None:
    """Leave `connection` on a log of this format: make the tables in an empty store, else check what is there.

    Safe when several processes do it at once. The caller makes sure that a lock is waited for.

    Raises:
        LogFormatError: another program's database, or a log of a newer format.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            for statement in STATEMENTS:
                connection.execute(statement)
        check(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check(connection: driver.Connection) -> None:
    """Do nothing if `connection` is on a log that this version reads.

    Raises:
        LogFormatError: it isn't a log, or one of a newer format.
        StoreUnavailableError: it can't be read.
    """
    try:
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        number = connection.execute("PRAGMA user_version").fetchone()[0]
    except driver.DatabaseError as error:
        if isinstance(error, driver.OperationalError):
            msg = f"the event log can't be read: {error}"
            raise StoreUnavailableError(msg) from error
        msg = f"this file is not an event log: {error}"
        raise LogFormatError(msg) from error
    if application_id != APPLICATION_ID:
        msg = "this file is a SQLite database, but not an event log"
        raise LogFormatError(msg)
    if number > FORMAT:
        msg = f"this event log has format {number}; this version reads up to {FORMAT}. Use a newer version."
        raise LogFormatError(msg)
