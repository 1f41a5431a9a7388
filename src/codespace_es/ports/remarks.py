"""What the next answer of a session has to say beside its own: told once, by the server that found it out.

That something happened is in the log; that somebody was told isn't, since answers aren't recorded.
"""

from collections.abc import Iterator

from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.identifiers import StreamId, WorkspaceKey

_KEPT_MAX = 1_000


class Remarks:
    """Notices that wait for the next answer, by the stack that they are about; the oldest go when they are many."""

    def __init__(self) -> None:
        self._waiting: list[tuple[WorkspaceKey, StreamId, Notice]] = []

    def add(self, workspace_key: WorkspaceKey, stream_id: StreamId, notice: Notice) -> None:
        """Keep a notice for the next answer."""
        self._waiting = [*self._waiting[1 - _KEPT_MAX :], (workspace_key, stream_id, notice)]

    def take(self, *, workspace_key: WorkspaceKey | None, stream_id: StreamId | None) -> tuple[Notice, ...]:
        """Return, and forget, what waits for this stack; without a stack, for this workspace; without both, all."""
        if not self._waiting:
            return ()
        taken = tuple(self._matching(workspace_key, stream_id))
        self._waiting = [each for each in self._waiting if each not in taken]
        return tuple(notice for _, _, notice in taken)

    def _matching(
        self, workspace_key: WorkspaceKey | None, stream_id: StreamId | None
    ) -> Iterator[tuple[WorkspaceKey, StreamId, Notice]]:
        for each in self._waiting:
            if workspace_key in (None, each[0]) and stream_id in (None, each[1]):
                yield each
