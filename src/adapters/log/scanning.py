"""Reading a whole log, or a stream of any length: in short reads, so that nothing waits while somebody looks at a row.

Events never change, so what was there when the reading began is all there is up to the head of that moment.
"""

from collections.abc import Iterator
from typing import Any

from adapters.log import statements
from adapters.log.database import Connection

_ROWS_AT_FIRST = 8
"""Many want the first few alone."""
_ROWS_AT_ONCE = 1_000


def scan_events(connection: Connection, statement: str = statements.SLICE, *, after: int = 0) -> Iterator[Any]:
    """Yield the rows of every event with position > `after`, in order, up to the head of now.

    Args:
        connection: Where to read.
        statement: A slice: its parameters are a position and how many rows, and position is its first column.
        after: Position to start behind.
    """
    newest = connection.execute(statements.HEAD).fetchone()
    return scan_events_to(0 if newest is None else newest[0], connection, statement, after=after)


def scan_events_to(
    last: int, connection: Connection, statement: str = statements.SLICE, *, after: int = 0
) -> Iterator[Any]:
    """Yield the rows of every event with `after` < position <= `last`, in order."""
    limit = _ROWS_AT_FIRST
    while after < last:
        rows = connection.execute(statement, (after, min(limit, last - after))).fetchall()
        if not rows:
            return
        for row in rows:
            if row[0] > last:
                return
            yield row
        after, limit = rows[-1][0], min(4 * limit, _ROWS_AT_ONCE)


def scan_stream(connection: Connection, stream_id: str, *, after: int = 0) -> Iterator[Any]:
    """Yield the rows of a stream with version > `after`, in order."""
    limit = _ROWS_AT_FIRST
    while rows := connection.execute(statements.STREAM_SLICE, (stream_id, after, limit)).fetchall():
        yield from rows
        if len(rows) < limit:
            return
        after, limit = rows[-1][2], min(4 * limit, _ROWS_AT_ONCE)
