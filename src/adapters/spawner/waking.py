"""Waiting for signals and descriptors at once, without a race between the two."""

from __future__ import annotations

import contextlib
import os
import select
import signal

from adapters.spawner.tree import end_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_REQUESTS_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_OF_PARENTS_END = signal.SIGCONT
"""It makes one go on that is stopped, who would never hear of another, and hold its locks for ever."""
_HELD = (*_REQUESTS_TO_END, _OF_PARENTS_END)


class Waiter:
    """Wakes up for readable descriptors, for ended children and for requests to end. One a process.

    The end of the process `parent`, which has started this one, is such a request.
    """

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self.is_end_requested = False
        """SIGTERM, SIGINT or SIGHUP came, or the parent has ended."""
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in _REQUESTS_TO_END:
            signal.signal(number, self._request_end)
        signal.signal(_OF_PARENTS_END, self._look_for_parent)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        end_with_parent(_OF_PARENTS_END)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
        self._look_for_parent(_OF_PARENTS_END, None)

    def _look_for_parent(self, _number: int, _frame: object) -> None:
        self.is_end_requested = self.is_end_requested or os.getppid() != self._parent

    def _request_end(self, _number: int, _frame: object) -> None:
        self.is_end_requested = True

    def wait(self, readable: Iterable[int], writable: Iterable[int], seconds: float | None) -> set[int]:
        """Return those descriptors that are ready or broken; none when a signal came or the time is over."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        interest: dict[int, int] = {}
        for descriptor in readable:
            interest[descriptor] = select.POLLIN
        for descriptor in writable:
            interest[descriptor] = interest.get(descriptor, 0) | select.POLLOUT
        for descriptor, events in interest.items():
            poll.register(descriptor, events)
        ready = {descriptor for descriptor, _ in poll.poll(None if seconds is None else max(0, seconds) * 1000)}
        if self._read in ready:
            ready.discard(self._read)
            with contextlib.suppress(BlockingIOError):  # emptied already
                while len(os.read(self._read, 4096)) == 4096:
                    pass
        return ready


@contextlib.contextmanager
def holding_requests_to_end() -> Iterator[None]:
    """Have requests to end wait, in a child that is forked meanwhile too: there until it has a `Waiter` of its own."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)


def reap_ended_children() -> tuple[list[tuple[int, int]], bool]:
    """Return (pid, wait status) of each child that has ended, and whether there are others. No zombie is left."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended.append((pid, status))
