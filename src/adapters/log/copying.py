"""A whole log copied to another place: its events as they are, byte for byte, and the chain that goes on there.

All of it is one transaction at the other place, ended by the events that say where it came from. So there is either
nothing there, or a log that knows its origin.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from adapters.log import statements
from adapters.log.chain import link
from adapters.log.database import Connection, Database
from adapters.log.reader import LogReader
from adapters.log.submission import NewRow
from codespace_es.ports.fault_points import no_faults
from codespace_es.ports.log import StoreUnavailableError

_EVENT_COLUMNS = ("position", "stream_id", "version", "topic", "state", "hash")
_BODY_COLUMNS = ("stream_id", "digest", "content", "kind", "size_bytes", "stored_at_ms")
_OPEN_COLUMNS = ("stream_id", "kind", "workspace_key", "instance_id", "position")
_LOCK_SECONDS = 30.0


class CopyRefusedError(Exception):
    """The copy can't be made; nothing was written."""


def copy_log(source: LogReader, target: Database, last: Sequence[NewRow]) -> int:
    """Copy the log that `source` reads into `target`, which is empty, and append `last` to it; return the new head.

    Args:
        source: Nobody writes it meanwhile.
        target: Where to.
        last: The events that end the copy; they open nothing.

    Raises:
        CopyRefusedError: there is a log at the target already, or the source's chain is broken.
        StoreUnavailableError: something can't be read or written; nothing was stored.
    """
    committer = target.committer(faults=no_faults, lock_timeout_seconds=_LOCK_SECONDS)
    return committer.run_alone(partial(_copy, source, last))


def _copy(source: LogReader, last: Sequence[NewRow], connection: Connection) -> int:
    if connection.execute(statements.HEAD).fetchone() is not None:
        msg = "there is a log already, with events; a copy needs an empty place"
        raise CopyRefusedError(msg)
    broken = next(source.find_breaks(), None)
    if broken is not None:
        msg = f"the log is damaged at position {broken.position}: {broken.problem}"
        raise CopyRefusedError(msg)
    head, previous = source.head()
    connection.insert_rows("events", _EVENT_COLUMNS, source.raw_rows())
    connection.insert_rows("bodies", _BODY_COLUMNS, source.stored_contents())
    connection.insert_rows("open_items", _OPEN_COLUMNS, (
        (item.stream_id, item.kind, item.workspace_key, item.instance_id, item.position)
        for item in source.open_items()))
    rows = list(_linked(last, head, previous))
    connection.insert_rows("events", _EVENT_COLUMNS, rows)
    position, chained = rows[-1][0], rows[-1][5]
    connection.note_head(position, chained)
    written = connection.execute(statements.HEAD).fetchone()
    if tuple(written) != (position, chained) or head != position - len(rows):
        msg = "the log was written while it was copied; nothing was stored"
        raise StoreUnavailableError(msg)
    return int(position)


def _linked(last: Sequence[NewRow], position: int, previous: bytes) -> Iterator[tuple[Any, ...]]:
    for row in last:
        position += 1
        previous = link(previous, position, row.stream, row.version, row.topic_bytes, row.state)
        yield (position, row.stream_id, row.version, row.topic, row.state, previous)

