"""Where this server's newest push that isn't over is to be looked for, without reading every stack.

With one client, that push tells which stack a call means. It holds nothing that the log doesn't say: a server has no
push before it starts, and each of its own is noted; whether one is over, the stack itself says each time it is asked.
"""

from heapq import heapify, heappop, heappush

from codespace_es.vocabulary.identifiers import StreamId, WorkspaceKey

_STALE_MAX = 64


class OwnPushes:
    """For each stack that this server has pushed on, the position behind which it has no push that isn't over."""

    def __init__(self) -> None:
        self._latest: dict[StreamId, tuple[WorkspaceKey, int]] = {}
        self._heaps: dict[WorkspaceKey, list[tuple[int, StreamId]]] = {}
        """The same by workspace, the highest position first, as its negative; and what isn't so any more."""

    def note(self, workspace_key: WorkspaceKey, stream_id: StreamId, position: int) -> None:
        """Take in a push."""
        self._latest[stream_id] = workspace_key, position
        heap = self._heaps.setdefault(workspace_key, [])
        heappush(heap, (-position, stream_id))
        if len(heap) > 2 * len(self._latest) + _STALE_MAX:
            heap[:] = [(-latest, each) for each, (key, latest) in self._latest.items() if key == workspace_key]
            heapify(heap)

    def newest(self, workspace_key: WorkspaceKey) -> tuple[StreamId, int] | None:
        """Return the stack of a workspace with the highest position, and that; None where there is no push."""
        heap = self._heaps.get(workspace_key, [])
        while heap:
            position, stream_id = -heap[0][0], heap[0][1]
            if self._latest.get(stream_id) == (workspace_key, position):
                return stream_id, position
            heappop(heap)
        return None

    def correct(self, stream_id: StreamId, noted: int, found: int) -> None:
        """Lower what was `noted` to where the newest push that isn't over was `found`; 0: there is none."""
        known = self._latest.get(stream_id)
        if known is None or known[1] != noted:
            return  # a push has come meanwhile
        del self._latest[stream_id]
        if found:
            self.note(known[0], stream_id, found)

    def forget(self, stream_id: StreamId, position: int) -> None:
        """Let go of a stack on which nothing waited at `position`."""
        known = self._latest.get(stream_id)
        if known is not None and known[1] <= position:
            del self._latest[stream_id]
