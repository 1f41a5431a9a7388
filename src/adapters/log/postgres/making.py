"""Making a log in PostgreSQL, once, before any gateway starts."""

from adapters.log.database import Connection
from adapters.log.postgres import schema
from adapters.log.postgres.connecting import PostgresError
from adapters.log.postgres.database import opening
from adapters.log.postgres.link import Link
from adapters.log.postgres.loop_thread import LoopThread
from adapters.log.postgres.parts import is_log_missing, require_whole
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.log import LogFormatError, StoreUnavailableError

_MAKING = 0x43534553
"""Advisory lock under which the tables are made: `CREATE` of one thing by two sessions at once fails in odd ways."""

_INSUFFICIENT_PRIVILEGE = "42501"


def make_log(address: PostgresAddress) -> bool:
    """Make the tables of a log at `address` if they aren't there; return whether they were made now.

    Raises:
        LogFormatError: what is there is another program's, or of a newer format.
        StoreUnavailableError: it can't be reached, can't hold a log, or this user may not make one.
    """
    with opening(address), LoopThread() as portal:
        link = Link(portal, address, settings={})
        try:
            return _create_if_missing(link)
        finally:
            link.close()


def _create_if_missing(link: Link) -> bool:
    """Make the tables if they aren't there; return whether they were made now. Safe when several do it at once.

    Raises:
        LogFormatError: what is there is another program's, or of a newer format.
        StoreUnavailableError: this server or database can't hold a log, or this user may not make one; or a part of
            the log is missing.
    """
    _require_fit(link)
    try:
        with link.transaction():
            link.execute("SELECT pg_advisory_xact_lock(?)", (_MAKING,))
            is_new = is_log_missing(link)
            if is_new:
                for statement in schema.STATEMENTS:
                    link.execute(statement)
            schema.check(link)
            require_whole(link)
    except PostgresError as error:
        if error.sqlstate is None or not error.sqlstate.startswith("42") or error.sqlstate == _INSUFFICIENT_PRIVILEGE:
            raise
        msg = f"this schema holds other things than an event log: {error}"
        raise LogFormatError(msg) from error
    return is_new


def _require_fit(connection: Connection) -> None:
    number, encoding, own_schema = connection.execute(
        "SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'), current_schema()"
    ).fetchone()
    if number < schema.SERVER_VERSION_MIN:
        msg = f"PostgreSQL {schema.SERVER_VERSION_MIN // 10_000} or newer is needed"
        raise StoreUnavailableError(msg)
    if encoding != "UTF8":
        msg = f"the database has to be encoded in UTF8, not {encoding}"
        raise StoreUnavailableError(msg)
    if own_schema is None:
        msg = "no schema of the search path is there; make it first (CREATE SCHEMA)"
        raise StoreUnavailableError(msg)
