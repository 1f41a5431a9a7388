"""The tables and functions of a log in PostgreSQL, made once by an explicit step, and how a log is recognised.

They stand in the first schema of the session's search path: one schema holds one log.
"""

from collections.abc import Iterator

from adapters.log import statements
from adapters.log.chain import GENESIS
from adapters.log.database import Connection
from adapters.log.postgres.append_function import APPEND, OPEN_SESSION, REFUSAL
from adapters.log.postgres.parts import HEAD_ROW, incomplete, require_made
from codespace_es.ports.log import LogFormatError, StoreUnavailableError

FORMAT = 1
"""Raised when an older server could no longer read the tables."""

SERVER_VERSION_MIN = 130_000

STATEMENTS = (
    "CREATE TABLE log_format (application text NOT NULL, format integer NOT NULL)",
    "INSERT INTO log_format VALUES ('codespace-es', 1)",
    # Every append updates the one row in place: room for its versions on the page, and no index that they touch.
    """CREATE TABLE log_head (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        position bigint NOT NULL,
        hash bytea NOT NULL) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000)""",
    "INSERT INTO log_head (position, hash) VALUES (0, decode(repeat('00', 32), 'hex'))",
    """CREATE TABLE events (
        position bigint PRIMARY KEY,
        stream_id text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        topic text COLLATE "C" NOT NULL,
        state bytea NOT NULL,
        hash bytea NOT NULL,
        UNIQUE (stream_id, version))""",
    """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the event log is append-only'; END $$""",
    """CREATE TRIGGER events_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()""",
    """CREATE TABLE bodies (
        rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
        stream_id text COLLATE "C" NOT NULL,
        digest bytea NOT NULL,
        kind text NOT NULL,
        size_bytes bigint NOT NULL,
        stored_at_ms bigint NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (stream_id, digest))""",
    # What is stored is compressed or random already as often as not, and is read whole.
    "ALTER TABLE bodies ALTER COLUMN content SET STORAGE EXTERNAL",
    """CREATE TABLE open_items (
        stream_id text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL,
        workspace_key text COLLATE "C",
        instance_id text COLLATE "C" NOT NULL,
        position bigint NOT NULL,
        PRIMARY KEY (stream_id, kind))""",
    """CREATE TABLE writer_sessions (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        opened_at timestamptz NOT NULL DEFAULT now())""",
    REFUSAL,
    APPEND,
    OPEN_SESSION,
)


def check(connection: Connection) -> None:
    """Do nothing if `connection` is on a log that this version reads.

    Raises:
        LogMissingError: there is none.
        LogFormatError: one of a newer format.
        StoreUnavailableError: its format can't be told.
    """
    require_made(connection)
    row = connection.execute("SELECT application, format FROM log_format").fetchone()
    if row is None or row[0] != "codespace-es":
        msg = "this schema holds tables of an event log's names, but no event log"
        raise LogFormatError(msg)
    if row[1] > FORMAT:
        msg = f"this event log has format {row[1]}; this version reads up to {FORMAT}. Use a newer version."
        raise LogFormatError(msg)


def require_durable(connection: Connection) -> None:
    """Do nothing if a commit on this server outlives its crash.

    Raises:
        StoreUnavailableError: it doesn't, as the server is set.
    """
    unsafe = connection.execute(
        "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name"
    ).fetchall()
    if unsafe:
        names = " and ".join(name for (name,) in unsafe)
        msg = f"this PostgreSQL may lose what it has acknowledged: {names} is off. Set it to on"
        raise StoreUnavailableError(msg)


def damage(connection: Connection) -> Iterator[str]:
    """Yield what is wrong with the tables themselves: events can be changed, or the head on record is another."""
    guards = connection.execute("""SELECT tgenabled IN ('O', 'A') FROM pg_trigger
        WHERE tgrelid = 'events'::regclass AND tgname = 'events_refuse_change'""").fetchall()
    if guards != [(True,)]:
        yield "the trigger that refuses to change or remove events is off or gone"
    with connection.snapshot():
        told = connection.execute("SELECT position, hash FROM log_head").fetchall()
        newest = connection.execute(statements.HEAD).fetchall() or [(0, GENESIS)]
    if not told:
        yield incomplete([HEAD_ROW])
    elif told != newest:
        yield f"the newest event is {newest[0][0]}, but the head on record is {told[0][0]}"
