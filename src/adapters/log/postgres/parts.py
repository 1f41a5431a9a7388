"""Which parts of a log stand in a schema: all of them, none, or some, as after a restore that was cut short."""

from collections.abc import Sequence

from adapters.log.database import Connection
from codespace_es.ports.log import LogMissingError, StoreUnavailableError

_TABLES = ("log_format", "log_head", "events", "bodies", "open_items", "writer_sessions")
_FUNCTIONS = ("refuse_change", "refusal_of", "append_batch", "open_session")

_MISSING = """
    SELECT 'table ' || wanted.name FROM unnest(?::text[]) AS wanted(name) WHERE NOT EXISTS (
        SELECT FROM pg_class WHERE relname = wanted.name AND relnamespace = current_schema()::regnamespace)
    UNION ALL
    SELECT 'function ' || wanted.name FROM unnest(?::text[]) AS wanted(name) WHERE NOT EXISTS (
        SELECT FROM pg_proc WHERE proname = wanted.name AND pronamespace = current_schema()::regnamespace)"""
_HEAD = "SELECT 1 FROM log_head"

HEAD_ROW = "the row of log_head"


def is_log_missing(connection: Connection) -> bool:
    """Tell whether no log was made in this schema."""
    return _is_none(missing_things(connection))


def require_made(connection: Connection) -> None:
    """Do nothing if a log was made in this schema, and its format can be asked for; other parts may be missing.

    Raises:
        LogMissingError: none was made.
        StoreUnavailableError: one was, and where its format stood is gone.
    """
    missing = missing_things(connection)
    if _is_none(missing):
        msg = "there is no event log in this database"
        raise LogMissingError(msg)
    if "table log_format" in missing:
        raise StoreUnavailableError(incomplete(missing))


def require_whole(connection: Connection) -> None:
    """Do nothing if every part of the log is there.

    Raises:
        StoreUnavailableError: some are missing. They aren't made anew: what had stood there would be gone in silence.
    """
    missing = missing_things(connection)
    if "table log_head" not in missing and connection.execute(_HEAD).fetchone() is None:
        missing.append(HEAD_ROW)
    if missing:
        raise StoreUnavailableError(incomplete(missing))


def missing_things(connection: Connection) -> list[str]:
    """Return the tables and functions that a log in this schema lacks, such as `table bodies`; no row is read."""
    return [told for (told,) in connection.execute(_MISSING, (_TABLES, _FUNCTIONS))]


def incomplete(missing: Sequence[str]) -> str:
    """Return what is said of a log without these parts, and what to do."""
    return (f"a part of the event log is missing: {', '.join(missing)}. See `When a part is missing` in "
            "docs/postgresql.md")


def _is_none(missing: Sequence[str]) -> bool:
    """Neither of the tables is there whose names only a log has."""
    return {"table log_format", "table log_head"} <= set(missing)
