"""Folds that a server keeps between two calls: a cache, which is brought up to date from the log before each use.

For streams that never end, such as a workspace's steering: every call needs what is open in them, and none may pay for
all that is over. It holds nothing that folding the stream anew wouldn't give.
"""

from dataclasses import dataclass
from typing import Any

from codespace_es.vocabulary.identifiers import StreamId

_KEPT_MAX = 64
"""Of one kind of stream, which is what its name begins with: many stacks don't push out what every call needs."""


@dataclass(frozen=True, slots=True)
class KeptFold:
    """A stream's state after the event at `position`, which is its `version`."""

    position: int
    version: int
    state: Any


class KeptFolds:
    """The newest fold of each stream that was asked for lately; those that nobody asks for go when they are many."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[StreamId, KeptFold]] = {}

    def get(self, stream_id: StreamId) -> KeptFold | None:
        """Return what was kept of a stream."""
        kept = self._of_kind(stream_id)
        known = kept.pop(stream_id, None)
        if known is not None:
            kept[stream_id] = known  # asked for last, so the last to go
        return known

    def keep(self, stream_id: StreamId, fold: KeptFold, *, is_passing: bool = False) -> None:
        """Keep a fold in the place of an older one; `is_passing`: it takes no other stream's place."""
        kept = self._of_kind(stream_id)
        if is_passing and stream_id not in kept and len(kept) >= _KEPT_MAX:
            return
        known = kept.pop(stream_id, fold)
        kept[stream_id] = fold if fold.version >= known.version else known
        while len(kept) > _KEPT_MAX:
            del kept[next(iter(kept))]

    def _of_kind(self, stream_id: StreamId) -> dict[StreamId, KeptFold]:
        return self._kept.setdefault(stream_id.partition("-")[0], {})
