"""Making a log in PostgreSQL, once, before any gateway starts."""

from adapters.log.postgres import schema
from adapters.log.postgres.database import opening
from adapters.log.postgres.link import Link
from adapters.log.postgres.loop_thread import LoopThread
from adapters.settings.postgres_address import PostgresAddress


def make_log(address: PostgresAddress) -> bool:
    """Make the tables of a log at `address` if they aren't there; return whether they were made now.

    Raises:
        LogFormatError: what is there is another program's, or of a newer format.
        StoreUnavailableError: it can't be reached, can't hold a log, or this user may not make one.
    """
    with opening(address), LoopThread() as portal:
        link = Link(portal, address, settings={})
        try:
            return schema.create_if_missing(link)
        finally:
            link.close()
