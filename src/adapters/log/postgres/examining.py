"""What a PostgreSQL and a user of it are, seen by somebody who asks before trusting them with a log."""

from dataclasses import dataclass

from adapters.log.postgres import schema
from adapters.log.postgres.database import opening
from adapters.log.postgres.link import Link
from adapters.log.postgres.loop_thread import LoopThread
from adapters.log.postgres.parts import incomplete, is_log_missing, missing_things
from adapters.log.postgres.reading_pool import READING
from adapters.settings.postgres_address import PostgresAddress

_SERVER = """SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
    current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'),
    pg_is_in_recovery(), current_user, current_schema()"""
_OWNER = "SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = 'events'::regclass"
_RIGHTS = """SELECT wanted.name, wanted.privilege, has_table_privilege(wanted.name, wanted.privilege)
    FROM unnest(?::text[], ?::text[]) AS wanted(name, privilege)"""

_NEEDED = {
    "log_format": ("SELECT",),
    "log_head": ("SELECT", "UPDATE"),
    "events": ("SELECT", "INSERT"),
    "bodies": ("SELECT", "INSERT", "DELETE"),
    "open_items": ("SELECT", "INSERT", "DELETE"),
    "writer_sessions": ("SELECT", "INSERT", "DELETE"),
}
"""What a gateway does, and nothing else: docs/postgresql.md grants exactly these."""

_CHANGING = ("UPDATE", "DELETE", "TRUNCATE")


@dataclass(frozen=True, slots=True)
class Tables:
    """The log at an address, of a format that this version reads, and what this user may do to it."""

    damage: tuple[str, ...]
    """What is wrong with the tables themselves: a sentence each."""
    missing_rights: tuple[str, ...]
    """What a gateway needs and this user lacks, such as `INSERT on events`."""
    changing_rights: tuple[str, ...]
    """By which this user could change or remove events, were it not for the trigger: such as `UPDATE on events`."""


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL as this user's sessions find it."""

    version: str
    is_supported: bool
    is_fsync_on: bool
    is_full_page_writes_on: bool
    synchronous_commit: str
    is_standby: bool
    user: str
    schema: str | None
    """None: no schema of the search path is there."""
    tables: Tables | None
    """None: no log was made here."""


def examine(address: PostgresAddress) -> Server:
    """Return what stands at `address`.

    Raises:
        LogFormatError: another program's tables, or a log of a newer format.
        StoreUnavailableError: it can't be reached, or doesn't let this user look.
    """
    with opening(address), LoopThread() as portal:
        link = Link(portal, address, settings=READING)
        try:
            version, number, has_fsync, has_full_pages, commit, is_standby, user, name = link.execute(
                _SERVER).fetchone()
            tables = None if name is None or is_log_missing(link) else _tables(link)
        finally:
            link.close()
    return Server(
        version, number >= schema.SERVER_VERSION_MIN, has_fsync, has_full_pages, commit, is_standby, user, name, tables)


def _tables(link: Link) -> Tables:
    missing = missing_things(link)
    if missing:
        return Tables((incomplete(missing),), missing_rights=(), changing_rights=())
    lacking = [told for told, is_had in _rights(link, _NEEDED).items() if not is_had]
    is_owner = bool(link.execute(_OWNER).fetchone()[0])
    changing = ["ownership of events"] if is_owner else [
        told for told, is_had in _rights(link, {"events": _CHANGING}).items() if is_had]
    may_look = not any(told.startswith("SELECT") for told in lacking)
    if may_look:
        schema.check(link)
    return Tables(
        damage=tuple(schema.damage(link)) if may_look else (),
        missing_rights=tuple(lacking),
        changing_rights=tuple(changing),
    )


def _rights(link: Link, wanted: dict[str, tuple[str, ...]]) -> dict[str, bool]:
    pairs = [(name, privilege) for name, privileges in wanted.items() for privilege in privileges]
    rows = link.execute(_RIGHTS, ([name for name, _ in pairs], [privilege for _, privilege in pairs]))
    return {f"{privilege} on {name}": is_had for name, privilege, is_had in rows}
