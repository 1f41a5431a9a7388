"""Removing stored contents: which may go, and the append that removes them and says so.

Events stay, so the chain stays whole: what is removed is named by one `store.bodies_removed` in the same transaction.
Never removed is what belongs to a stream that is open, what the store's own story needs, and a held call's arguments,
which are removed with their hold. It goes in portions: neither memory nor a transaction grows with what is removed.
Source: decision 10; event catalogue, section 1.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import get_args

from adapters.log.bodies import StoredBody
from adapters.log.reader import LogReader
from codespace_es.aggregates.store import STORE, RemoveBodies, StoreBodiesRemoved
from codespace_es.folding import fold
from codespace_es.ports.log import Append, BodyKind, EventLog, NewBody, VersionConflictError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import STORE_STREAM

KINDS_BY_DEFAULT: tuple[str, ...] = ("image", "request", "output", "text")
"""A `result` goes only when it is asked for by name: without it a repeated call can't be answered as before."""
KINDS_THAT_MAY_GO: tuple[str, ...] = tuple(kind for kind in get_args(BodyKind) if kind != "arguments")

REMOVED_AT_ONCE_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Rule:
    """Which contents are to go: all that is given has to hold."""

    kinds: frozenset[str]
    before: datetime | None
    """Stored earlier than this."""
    size_bytes_min: int
    """At least so large."""

    def takes(self, body: StoredBody) -> bool:
        """Return whether `body` is to go, as far as the rule is concerned."""
        is_old = self.before is None or body.stored_at_ms < self.before.timestamp() * 1000
        return body.kind in self.kinds and is_old and body.size_bytes >= self.size_bytes_min


def choose(source: LogReader, rule: Rule) -> Iterator[StoredBody]:
    """Yield what may go under `rule`, stream by stream, as it is read. Raises StoreUnavailableError."""
    kept = {str(item.stream_id) for item in source.open_items()} | {str(STORE_STREAM)}
    return (body for body in source.stored_bodies() if body.stream_id not in kept and rule.takes(body))


@dataclass(slots=True)
class Tally:
    """What passed by, counted; `passing` once, then the numbers."""

    streams: int = 0
    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many of each kind, and their bytes."""

    def passing(self, chosen: Iterable[StoredBody]) -> Iterator[StoredBody]:
        """Yield `chosen`, which comes stream by stream."""
        stream_id = None
        for body in chosen:
            self.streams += body.stream_id != stream_id
            stream_id = body.stream_id
            count, total_bytes = self.kinds.get(body.kind, (0, 0))
            self.kinds[body.kind] = count + 1, total_bytes + body.size_bytes
            yield body

    @property
    def count(self) -> int:
        """How many."""
        return sum(count for count, _ in self.kinds.values())

    @property
    def total_bytes(self) -> int:
        """How large they are together."""
        return sum(total_bytes for _, total_bytes in self.kinds.values())


async def remove(log: EventLog, chosen: Iterable[StoredBody], caller: Caller) -> int:
    """Remove `chosen`, an append a portion as they come; return how many of them were removed here.

    What somebody else has removed meanwhile is left out, and so is what belongs to a stream that was opened meanwhile.

    Raises:
        StoreUnavailableError: the rest wasn't removed.
    """
    removed = 0
    left = iter(chosen)
    while some := list(islice(left, REMOVED_AT_ONCE_MAX)):
        removed += await _remove_some(log, some, caller)
    return removed


async def _remove_some(log: EventLog, chosen: Sequence[StoredBody], caller: Caller) -> int:
    while True:
        store = await fold(log, STORE, STORE_STREAM)
        opened = {item.stream_id for item in await log.open_items()}
        there = [body for body in chosen
                 if body.stream_id not in opened and await log.read_body(body.stream_id, body.digest) is not None]
        if not there:
            return 0
        listed = NewBody(STORE_STREAM, "result", _list(there))
        event = StoreBodiesRemoved(
            reason="pruned", count=len(there), total_bytes=sum(body.size_bytes for body in there), digests=listed.body
        )
        scrubbed = tuple((body.digest, body.stream_id) for body in there)
        try:
            await log.append(Append(store.decide(RemoveBodies(event)), (listed,), scrubbed), caller)
        except VersionConflictError:
            continue  # somebody else has removed contents meanwhile, maybe these
        return len(there)


def _list(bodies: Iterable[StoredBody]) -> bytes:
    return json.dumps([[body.stream_id, body.digest] for body in bodies], separators=(",", ":")).encode()
