"""The lease of a workspace: one flock, a queue in order of arrival inside this process, polling between processes.

A lease that is free is taken without a sleep or a thread. One that is released in this process wakes the head of the
queue at once; one that another process or a spawner lets go is found by the head's next poll.

A server whose own lock was deleted takes no lease any more: others can't see that it lives, and may act on its files.
"""

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from adapters.locks.flock import HeldFlock, LockDirectory
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import WorkspaceKey
from codespace_es.vocabulary.limits import (
    LEASE_POLL_MS_MAX,
    LEASE_POLL_MS_MIN,
    PROGRESS_INTERVAL_SECONDS,
    WAITERS_MAX,
)

_REFUSAL_INTERVAL_SECONDS: Final = 0.25
_LISTENER_SECONDS_MAX: Final = 1.0
"""A listener that doesn't take a notice in this time misses it: it may not hold up the queue behind it."""

Refusal = Callable[[], Awaitable[CodespaceError | None]]
WaitListener = Callable[[float], Awaitable[None]]


class _Ticket:
    """One caller's place in a queue."""

    def __init__(self) -> None:
        self.is_waiting = False
        self.woken = anyio.Event()
        self.thread_id = threading.get_ident()


class _Rhythm:
    """When one waiting caller asks, tells and polls next, in seconds of anyio's clock."""

    def __init__(self, now: float) -> None:
        self.began = now
        self.next_refusal = now + _REFUSAL_INTERVAL_SECONDS
        self.next_notice = now + PROGRESS_INTERVAL_SECONDS
        self.poll_seconds = LEASE_POLL_MS_MIN / 1000

    def pause(self, now: float, *, is_head: bool) -> float:
        """Return how long to sleep unless woken; only the head polls, ever slower."""
        until_due = max(0.0, min(self.next_refusal, self.next_notice) - now)
        if not is_head:
            return until_due
        pause = min(self.poll_seconds, until_due)
        self.poll_seconds = min(self.poll_seconds * 1.5, LEASE_POLL_MS_MAX / 1000)
        return pause


class FlockWorkspaceLeases:
    """Leases over all servers of one user on one machine. Implements `WorkspaceLeases`; for one event loop."""

    def __init__(self, directory: str, *, is_seen: Callable[[], bool] = lambda: True) -> None:
        self._locks = LockDirectory(directory)
        self._is_seen = is_seen
        """Whether others can see by its lock that this server lives."""
        self._queues: dict[WorkspaceKey, deque[_Ticket]] = {}

    async def acquire(self, key: WorkspaceKey, *, refuse: Refusal, on_wait: WaitListener) -> HeldFlock:
        """Return the lease of `key`, in order of arrival.

        Raises:
            CodespaceError: RESOURCE_QUEUE_FULL, what `refuse` returned, or FILE_OPERATION_FAILED.
        """
        queue = self._queues.setdefault(key, deque())
        ticket = _Ticket()
        queue.append(ticket)
        try:
            await _ask(refuse)
            held = self._try_as_head(key, queue, ticket)
            if held is not None:
                return held
            _begin_waiting(key, queue, ticket)
            return await self._wait(key, queue, ticket, refuse, on_wait)
        finally:
            was_head = queue[0] is ticket
            queue.remove(ticket)
            if not queue:
                del self._queues[key]
            elif was_head:
                queue[0].woken.set()

    async def _wait(
        self, key: WorkspaceKey, queue: deque[_Ticket], ticket: _Ticket, refuse: Refusal, on_wait: WaitListener
    ) -> HeldFlock:
        rhythm = _Rhythm(anyio.current_time())
        while True:
            pause = rhythm.pause(anyio.current_time(), is_head=queue[0] is ticket)
            with anyio.move_on_after(pause):
                await ticket.woken.wait()
                ticket.woken = anyio.Event()
                rhythm.poll_seconds = LEASE_POLL_MS_MIN / 1000
            held = self._try_as_head(key, queue, ticket)
            if held is not None:
                return held
            now = anyio.current_time()
            if now >= rhythm.next_refusal:
                await _ask(refuse)
                rhythm.next_refusal = anyio.current_time() + _REFUSAL_INTERVAL_SECONDS
            if now >= rhythm.next_notice:
                with anyio.move_on_after(_LISTENER_SECONDS_MAX):
                    await on_wait(now - rhythm.began)
                rhythm.next_notice = now + PROGRESS_INTERVAL_SECONDS

    def _try_as_head(self, key: WorkspaceKey, queue: deque[_Ticket], ticket: _Ticket) -> HeldFlock | None:
        if queue[0] is not ticket:
            return None
        thread_id = ticket.thread_id
        held = self._locks.try_lock(key, on_release=lambda: self._wake_head(key, thread_id))
        if held is not None and not self._is_seen():
            held.release()
            raise CodespaceError(
                ErrorCode.FILE_OPERATION_FAILED,
                "The lock of this server was deleted, so other servers can't see that it lives. Restart it.",
            )
        return held

    def _wake_head(self, key: WorkspaceKey, thread_id: int) -> None:
        # Events aren't to be set from another thread; the head then finds out by its next poll.
        if threading.get_ident() == thread_id and key in self._queues:
            self._queues[key][0].woken.set()


def _begin_waiting(key: WorkspaceKey, queue: deque[_Ticket], ticket: _Ticket) -> None:
    if sum(other.is_waiting for other in queue) >= WAITERS_MAX:
        raise CodespaceError(
            ErrorCode.RESOURCE_QUEUE_FULL, f"{WAITERS_MAX} calls are waiting for this workspace already.",
            detail={"workspace_key": key},
        )
    ticket.is_waiting = True


async def _ask(refuse: Refusal) -> None:
    error = await refuse()
    if error is not None:
        raise error
