"""The open index's table: changed with each append, queried, folded again from the log, and compared with that fold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adapters.log import statements
from adapters.log.database import Connection
from adapters.log.rows import Decoder, StoredRow
from adapters.log.scanning import scan_events, scan_events_to
from codespace_es.ports.log import OpenChange, OpenIndexRule, OpenItem, UnknownTopicError
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId

_CLOSE = "DELETE FROM open_items WHERE stream_id = ?"
_CLOSE_ONE = "DELETE FROM open_items WHERE stream_id = ? AND kind = ?"
_OPEN = "INSERT INTO open_items VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
IS_INSTANCE_OPEN = "SELECT 1 FROM open_items WHERE stream_id = ? AND kind = 'instance'"
_ALL = "SELECT stream_id, kind, workspace_key, instance_id, position FROM open_items"


class _Key(NamedTuple):
    stream_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class OpenIndexDifference:
    """A row that the table and the fold of the log don't agree about."""

    stored: OpenItem | None
    folded: OpenItem | None


def apply(connection: Connection, stream_id: str, change: OpenChange, instance_id: str, position: int) -> None:
    """Do to the table what the event at `position` does to the open index."""
    if change.closes:
        connection.execute(_CLOSE, (stream_id,))
    for kind, workspace_key in change.opens:
        connection.execute(_OPEN, (stream_id, kind, workspace_key, instance_id, position))


def is_instance_open(connection: Connection, instance_id: str) -> bool:
    """Tell whether the instance has started and was neither stopped nor recovered."""
    return connection.execute(IS_INSTANCE_OPEN, (instance_id,)).fetchone() is not None


def selection(limit: int | None = None, **wanted: str | Sequence[str] | None) -> tuple[str, tuple[str | int, ...]]:
    """Return statement and parameters that find the rows whose columns equal the `wanted` values that aren't None.

    Of several values, any. Oldest first, at most `limit`; each row is an `OpenItem`'s fields.
    """
    conditions: list[str] = []
    parameters: list[str | int] = []
    for column, value in wanted.items():
        if isinstance(value, str):
            conditions.append(f"{column} = ?")
            parameters.append(value)
        elif value is not None:
            conditions.append(f"{column} IN ({', '.join('?' * len(value))})" if value else "1 = 0")
            parameters.extend(value)
    where = " WHERE " + " AND ".join(conditions) if conditions else ""
    if limit is not None:
        parameters.append(limit)
    return f"{_ALL}{where} ORDER BY position, kind{'' if limit is None else ' LIMIT ?'}", tuple(parameters)


def select(connection: Connection, *, kind: str | None = None) -> list[OpenItem]:
    """Return the rows of this kind (None: any), oldest first."""
    return [OpenItem(*row) for row in connection.execute(*selection(kind=kind))]


def fold(rows: Iterable[StoredRow], decoder: Decoder, rule: OpenIndexRule) -> tuple[dict[_Key, OpenItem], set[str]]:
    """Return the open index that `rows`, the whole log, give; and the streams with topics unknown here.

    What a stream with an unknown topic has open can't be said, so none of its rows are in the result.
    """
    items: dict[_Key, OpenItem] = {}
    unknown: set[str] = set()
    for recorded in _known(rows, decoder, unknown):
        change = rule(recorded.stream_id, recorded.event)
        if change is None:
            continue
        if change.closes:
            for key in [key for key in _keys_of(recorded.stream_id) if key in items]:
                del items[key]
        for kind, workspace_key in change.opens:
            items.setdefault(_Key(recorded.stream_id, kind), OpenItem(
                recorded.stream_id, kind, workspace_key, recorded.envelope.instance_id, recorded.position))
    return {key: item for key, item in items.items() if key.stream_id not in unknown}, unknown


def _keys_of(stream_id: StreamId) -> Iterator[_Key]:
    for kind in ("instance", "operation", "approval", "process", "pending", "steering"):
        yield _Key(stream_id, kind)


def _known(rows: Iterable[StoredRow], decoder: Decoder, unknown: set[str]) -> Iterator[RecordedEvent]:
    for row in rows:
        try:
            yield from decoder.decode((row,))
        except UnknownTopicError:
            unknown.add(row[1])


def compare(connection: Connection, decoder: Decoder, rule: OpenIndexRule) -> list[OpenIndexDifference]:
    """Return every row in which the table and the fold of the log differ, as of one moment; empty when it is right."""
    with connection.snapshot():
        stored = select(connection)
        newest = connection.execute(statements.HEAD).fetchone()
    return _differences(stored, scan_events_to(0 if newest is None else newest[0], connection), decoder, rule)


def rebuild(connection: Connection, decoder: Decoder, rule: OpenIndexRule) -> list[OpenIndexDifference]:
    """Make the table equal to the fold of the log, inside the caller's transaction; return what was wrong."""
    found = _differences(select(connection), scan_events(connection), decoder, rule)
    for difference in found:
        if difference.stored is not None:
            connection.execute(_CLOSE_ONE, (difference.stored.stream_id, difference.stored.kind))
        if (item := difference.folded) is not None:
            connection.execute(_OPEN, (item.stream_id, item.kind, item.workspace_key, item.instance_id, item.position))
    return found


def _differences(
    items: Iterable[OpenItem], rows: Iterable[StoredRow], decoder: Decoder, rule: OpenIndexRule
) -> list[OpenIndexDifference]:
    folded, unknown = fold(rows, decoder, rule)
    stored = {_Key(item.stream_id, item.kind): item for item in items if item.stream_id not in unknown}
    return [OpenIndexDifference(stored.get(key), folded.get(key))
            for key in sorted({*stored, *folded}) if stored.get(key) != folded.get(key)]
