"""Waiting for signals and descriptors at once, without a race between the two."""

from __future__ import annotations

import contextlib
import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_REQUESTS_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Waiter:
    """Wakes up for readable descriptors, for ended children and for requests to end. One a process."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self.is_end_requested = False
        """SIGTERM, SIGINT or SIGHUP came."""
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in _REQUESTS_TO_END:
            signal.signal(number, self._request_end)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _REQUESTS_TO_END)

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
    signal.pthread_sigmask(signal.SIG_BLOCK, _REQUESTS_TO_END)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _REQUESTS_TO_END)


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
