"""The body store: bytes that events name by digest, one row for each (stream, digest)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from adapters.log.database import Connection
from adapters.log.submission import BodyRow
from codespace_es.ports.log import NewBody
from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.identifiers import StreamId

StoredContent = tuple[str, bytes, bytes, str, int, int]
"""Stream, digest (32 bytes), content, kind, size in bytes, stored at (milliseconds since 1970)."""

_INSERT = """INSERT INTO bodies (stream_id, digest, kind, size_bytes, stored_at_ms, content) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING"""
_DELETE = "DELETE FROM bodies WHERE stream_id = ? AND digest = ?"
SIZE = "SELECT size_bytes FROM bodies WHERE stream_id = ? AND digest = ?"
CONTENT = "SELECT content FROM bodies WHERE stream_id = ? AND digest = ?"
_SCAN = "SELECT stream_id, digest, content, kind, size_bytes, stored_at_ms FROM bodies ORDER BY rowid"
_SCAN_SIZES = "SELECT length(content) FROM bodies ORDER BY rowid"
_LIST = """SELECT stream_id, digest, kind, size_bytes, stored_at_ms FROM bodies WHERE (stream_id, digest) > (?, ?)
    ORDER BY stream_id, digest LIMIT ?"""

_LISTED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class StoredBody:
    """What is known of stored bytes without reading them: enough to prune by kind, age and size."""

    stream_id: StreamId
    digest: Digest
    kind: str
    size_bytes: int
    stored_at_ms: int
    """Milliseconds since 1970, by the writer's wall clock."""


def key_of(digest: Digest) -> bytes:
    """Return the 32 bytes of `digest`.

    Raises:
        ValueError: it isn't `sha256:` and 64 hex digits.
    """
    algorithm, _, digits = digest.partition(":")
    if algorithm != "sha256" or len(digits) != 64:
        msg = f"not a digest: {digest!r}"
        raise ValueError(msg)
    return bytes.fromhex(digits)


def row_of(body: NewBody, stored_at_ms: int) -> BodyRow:
    """Return `body` as it is stored."""
    named = body.body
    return (body.stream_id, key_of(named.digest), body.kind, named.size_bytes, stored_at_ms, body.content)


def insert(connection: Connection, rows: Iterable[BodyRow]) -> None:
    """Store `rows`; one that is there already stays."""
    for row in rows:
        connection.execute(_INSERT, row)


def remove(connection: Connection, keys: Iterable[tuple[str, bytes]]) -> None:
    """Remove the bodies with these (stream, digest); one that isn't there is no error."""
    for key in keys:
        connection.execute(_DELETE, key)


def content_of(connection: Connection, stream_id: StreamId, digest: Digest) -> bytes | None:
    """Return the bytes of a stored body, None if it isn't stored."""
    row = connection.execute(CONTENT, (stream_id, key_of(digest))).fetchone()
    return None if row is None else bytes(row[0])


def scan(connection: Connection) -> Iterator[StoredContent]:
    """Yield every stored body with its bytes in the table's own order, which is nearly that of the log."""
    rows = connection.scan(_SCAN, sizes=_SCAN_SIZES)
    for row in rows:  # noqa: UP028 - `yield from` would close the cursor after its connection
        yield row


def list_all(connection: Connection) -> Iterator[StoredBody]:
    """Yield every stored body without its bytes, stream by stream; a row that isn't even of its kinds is left out.

    In short reads, so that nothing keeps the log from being tidied up meanwhile: what is removed behind the row at hand
    doesn't matter, and what is stored before it isn't listed.
    """
    last: tuple[object, object] = ("", b"")
    while rows := connection.execute(_LIST, (*last, _LISTED_AT_ONCE)).fetchall():
        for stream_id, digest, kind, size_bytes, stored_at_ms in rows:
            if not (isinstance(digest, bytes) and isinstance(size_bytes, int) and isinstance(stored_at_ms, int)):
                continue
            if not (isinstance(stream_id, str) and isinstance(kind, str)):
                continue
            yield StoredBody(StreamId(stream_id), "sha256:" + digest.hex(), kind, size_bytes, stored_at_ms)
        last = rows[-1][:2]
