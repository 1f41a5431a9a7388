"""What `doctor` looks at in a PostgreSQL that holds the log: is what it acknowledges there for good?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adapters.cli.check import Check
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.log import StoreUnavailableError

if TYPE_CHECKING:
    from adapters.log.postgres.examining import Server, Tables

_RIGHTS_PAGE = "see `Rights` in docs/postgresql.md"


def examine_postgres(address: PostgresAddress) -> Iterator[Check]:
    """Yield a check for the server, its durability, the tables and this user's rights. Nothing is written."""
    from adapters.log.postgres.examining import examine  # whose driver is an extra

    try:
        server = examine(address)
    except StoreUnavailableError as error:
        yield Check("postgresql", "bad", str(error))
        return
    yield _version(server)
    yield _durability(server)
    if server.schema is None:
        yield Check("tables", "bad", "No schema of the search path is there: make it first (CREATE SCHEMA).")
    elif server.tables is None:
        yield Check("tables", "bad", f"There is no log in schema {server.schema}. Make one, once: codespace-es store "
                                     "init")
    else:
        yield _tables(server.schema, server.tables)
        yield from _rights(server.user, server.tables)


def _version(server: "Server") -> Check:
    if not server.is_supported:
        return Check("postgresql", "bad", f"{server.version} is too old: 13 or newer is needed.")
    if server.is_standby:
        return Check("postgresql", "bad", f"{server.version}, a standby, which can't be written: name the primary, or "
                                          "several hosts with ?target_session_attrs=primary.")
    return Check("postgresql", "ok", f"{server.version}")


def _durability(server: "Server") -> Check:
    off = [name for name, is_on in (
        ("fsync", server.is_fsync_on), ("full_page_writes", server.is_full_page_writes_on)) if not is_on]
    if off:
        names = " and ".join(off) + (" are off" if len(off) > 1 else " is off")
        return Check("durability", "bad", f"{names}: after a crash of its machine the server may have lost or torn "
                                          "what it had acknowledged, so gateways refuse it. Set to on in "
                                          "postgresql.conf, SELECT pg_reload_conf(), and verify the log.")
    if server.synchronous_commit in ("off", "local"):
        return Check("durability", "warning", f"synchronous_commit is {server.synchronous_commit} for this user. "
                                              "Gateways raise it to on for what they write; set it to on (ALTER ROLE "
                                              f"{server.user} SET synchronous_commit = on) so that it holds for all.")
    return Check("durability", "ok", f"fsync and full_page_writes are on, synchronous_commit is "
                                     f"{server.synchronous_commit}.")


def _tables(schema: str, tables: "Tables") -> Check:
    if tables.damage:
        return Check("tables", "bad", f"In schema {schema}: {'; '.join(tables.damage)}. `verify` tells what has become "
                                      "of the events.")
    return Check("tables", "ok", f"In schema {schema}, of a format that this version reads; the trigger refuses to "
                                 "change or remove events.")


def _rights(user: str, tables: "Tables") -> Iterator[Check]:
    if tables.missing_rights:
        yield Check("rights", "bad", f"User {user} lacks {', '.join(tables.missing_rights)}: {_RIGHTS_PAGE}.")
    elif tables.changing_rights:
        had = ", ".join(tables.changing_rights)
        yield Check("rights", "warning", f"User {user} has {had}, by which the past could be changed. Let gateways be "
                                         f"another user: {_RIGHTS_PAGE}.")
    else:
        yield Check("rights", "ok", f"User {user} can append events, and neither change nor remove them.")
