"""Folds that a server keeps between two calls: a cache, which is brought up to date from the log before each use.

For streams that never end, such as a workspace's steering: every call needs what is open in them, and none may pay for
all that is over. It holds nothing that folding the stream anew wouldn't give.
"""

from dataclasses import dataclass
from typing import Any

from codespace_es.vocabulary.identifiers import StreamId

_KEPT_MAX = 64


@dataclass(frozen=True, slots=True)
class KeptFold:
    """A stream's state after the event at `position`, which is its `version`."""

    position: int
    version: int
    state: Any


class KeptFolds:
    """The newest fold of each stream that was asked for lately; those that nobody asks for go when they are many."""

    def __init__(self) -> None:
        self._kept: dict[StreamId, KeptFold] = {}

    def get(self, stream_id: StreamId) -> KeptFold | None:
        """Return what was kept of a stream."""
        known = self._kept.pop(stream_id, None)
        if known is not None:
            self._kept[stream_id] = known  # asked for last, so the last to go
        return known

    def keep(self, stream_id: StreamId, fold: KeptFold) -> None:
        """Keep a fold in the place of an older one."""
        known = self._kept.pop(stream_id, fold)
        self._kept[stream_id] = fold if fold.version >= known.version else known
        while len(self._kept) > _KEPT_MAX:
            del self._kept[next(iter(self._kept))]
