"""Stored contents read once, in the order in which they were stored, beside a walk through the log.

A look-up of each content by itself costs more than hashing it. So the table is read on along with the log, a little
ahead, and what was read is remembered until an event names it. What isn't met that way, since it was stored at another
time or is named twice, is looked up: the order is a matter of speed alone.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.identifiers import StreamId
from replay.source import LogSource, StoredRow

_AHEAD_ROWS_MAX = 256
"""How far to read on for one content. What isn't among so many that wait isn't ahead: named before, or gone."""
_WAITING_TAKES_MAX = 2_048
"""For how many others to wait for the event of a content that was read."""
_KEPT_BYTES_MAX = 4_096
"""Up to this size the bytes themselves are remembered."""


class Label(NamedTuple):
    """What the store says of a content, beside its digest. A damaged table can hold anything."""

    kind: str
    size_bytes: int
    stored_at_ms: int


class Content(NamedTuple):
    """What is stored under a digest."""

    size_bytes: int
    is_right: bool
    """The bytes have the digest they are stored under."""
    content: bytes | None
    """The bytes, of a small one."""
    label: Label | None = None
    """None where it was looked up by itself; it is met once more then, with its label."""


class StoredContents:
    """The contents of a log, for one walk through it. Begin it once the walk has begun: both see the same moment."""

    def __init__(self, source: LogSource, *, on_unmet: Callable[[str, bytes, Content], None]) -> None:
        """Prepare; `on_unmet` is told of each stored content that no `take` has met in the table."""
        self._source = source
        self._on_unmet = on_unmet
        self._rows: Iterator[StoredRow] | None = None
        self._waiting: dict[tuple[str, bytes], tuple[int, Content]] = {}
        """What no event has named yet, in the order in which it was read, and after how many takes that was."""
        self._takes = 0

    def take(self, stream_id: StreamId, digest: Digest) -> Content | None:
        """Return what is stored for `stream_id` under `digest`, None if there is nothing."""
        try:
            key = (stream_id, bytes.fromhex(digest[7:]))
        except ValueError:
            return None  # no digest, so nothing is stored under it
        self._takes += 1
        waiting = self._waiting.pop(key, None)
        found = self._read_on(key) if waiting is None else waiting[1]
        return found or self._look_up(stream_id, digest)

    def read(self, stream_id: StreamId, digest: Digest) -> bytes | None:
        """Return the bytes themselves, whatever their size."""
        return self._source.read_body(stream_id, digest)

    def _read_on(self, key: tuple[str, bytes]) -> Content | None:
        """Read on until `key` is met; give up after a while."""
        if self._rows is None:
            self._rows = self._source.stored_contents()
        self._give_up_old()
        if len(self._waiting) >= _AHEAD_ROWS_MAX:
            return None
        for stream_id, digest, content, kind, size_bytes, stored_at_ms in islice(self._rows, _AHEAD_ROWS_MAX):
            met = _weighed(digest, content, Label(kind, size_bytes, stored_at_ms))
            if (stream_id, digest) == key:
                return met
            self._waiting[stream_id, digest] = self._takes, met
        return None

    def _give_up_old(self) -> None:
        """Tell of what has waited long: it was stored for events that never came, or long before them."""
        while self._waiting and next(iter(self._waiting.values()))[0] < self._takes - _WAITING_TAKES_MAX:
            key = next(iter(self._waiting))
            self._on_unmet(*key, self._waiting.pop(key)[1])

    def finish(self) -> None:
        """Tell of everything that is left."""
        for waiting, (_, met) in self._waiting.items():
            self._on_unmet(*waiting, met)
        rows = self._rows or self._source.stored_contents()
        for stream_id, digest, content, kind, size_bytes, stored_at_ms in rows:
            self._on_unmet(stream_id, digest, _weighed(digest, content, Label(kind, size_bytes, stored_at_ms)))

    def _look_up(self, stream_id: StreamId, digest: Digest) -> Content | None:
        content = self._source.read_body(stream_id, digest)
        if content is None:
            return None
        return _weighed(bytes.fromhex(digest[7:]), content)


def _weighed(digest: object, content: object, label: Label | None = None) -> Content:
    if not isinstance(content, bytes):
        return Content(0, is_right=False, content=None, label=label)  # a damaged table can hold anything
    kept = content if len(content) <= _KEPT_BYTES_MAX else None
    return Content(len(content), sha256(content).digest() == digest, kept, label)
