"""Following the log: commits of this process wake a follower at once, those of others are looked for."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import anyio

from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.event import RecordedEvent

POLL_SECONDS = 0.05
"""How often a follower looks whether another process has committed."""

_ROWS_MAX = 256


class News:
    """Wakes every follower of this process after a commit of this process. Belongs to one event loop."""

    def __init__(self) -> None:
        self._next: anyio.Event | None = None

    def expect(self) -> anyio.Event:
        """Return what will be set after the next commit."""
        if self._next is None:
            self._next = anyio.Event()
        return self._next

    def tell(self) -> None:
        """Wake all who expect news."""
        if self._next is not None:
            self._next.set()
            self._next = None


async def follow(
    read: Callable[[int, int], Awaitable[Iterable[RecordedEvent]]],
    changes: Callable[[], Awaitable[int]],
    news: News,
    *,
    after: int,
    is_shared: bool,
) -> AsyncIterator[RecordedEvent]:
    """Yield the events with position > `after` for ever, each once and in order.

    Nothing can be missed: positions are given in the order of commits, news is expected before it is read, and
    changes are asked for before the rows.

    Args:
        read: Returns at most so many events after a position.
        changes: Returns a number that changes when another connection has committed.
        news: Tells of this process' commits.
        after: Position to start behind.
        is_shared: Whether other processes can write.
    """
    while True:
        expected = news.expect()
        seen = await changes()
        is_there_more = False
        for event in await read(after, _ROWS_MAX):
            if event.position != after + 1:
                msg = f"the event log is damaged: {after + 1} is missing before {event.position}"
                raise StoreUnavailableError(msg)
            after = event.position
            is_there_more = True
            yield event
        if is_there_more:
            continue
        while not expected.is_set() and await changes() == seen:
            with anyio.move_on_after(POLL_SECONDS if is_shared else None):
                await expected.wait()
