"""Turns by locks that serve whoever asked first; a lock lives as long as somebody holds it or waits for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import Lock

from codespace_es.vocabulary.identifiers import StreamId


class FairTurns:
    """`Turns` by anyio's locks, which are fair."""

    def __init__(self) -> None:
        self._queues: dict[StreamId, tuple[Lock, int]] = {}

    @asynccontextmanager
    async def of(self, stream_id: StreamId) -> AsyncIterator[None]:
        """Wait for the turn. See the port."""
        lock, users = self._queues.get(stream_id, (Lock(), 0))
        self._queues[stream_id] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._queues.pop(stream_id)
            if users > 1:
                self._queues[stream_id] = (lock, users - 1)
