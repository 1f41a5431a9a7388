"""The queue of processes that want to write one log: a turn each, so that none of them starves.

SQLite's own busy handler sleeps longer and longer, so a saturated file makes one writer wait for seconds. Here a
writer that met a busy file queues on two flock files: whoever holds `turn` may write; whoever holds `next` is the one
to follow. A writer that gives up its turn can't take it again while another holds `next`. Locks fall with their
process, whatever kills it.
"""

import fcntl
import os
import time
from pathlib import Path

from adapters.log.sqlite.connecting import make_private_file

_APPENDS_QUEUED = 64
"""How long a writer keeps queueing after it last met another."""

_POLL_SECONDS_MIN = 0.000_1
_POLL_SECONDS_MAX = 0.002


class TurnTimeoutError(Exception):
    """The turn didn't come before the deadline."""


class _FileLock:
    def __init__(self, path: Path) -> None:
        make_private_file(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def take(self, deadline: float) -> bool:
        """Take the lock; return whether it had to be waited for."""
        pause = _POLL_SECONDS_MIN
        is_waited_for = False
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_waited_for = True
                if time.monotonic() > deadline:
                    raise TurnTimeoutError from None
                time.sleep(pause)
                pause = min(pause * 1.5, _POLL_SECONDS_MAX)
            else:
                return is_waited_for

    def release(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._descriptor)


class Turnstile:
    """One process' place in the queue of writers. Not thread-safe: the writer thread's own."""

    def __init__(self, path: Path) -> None:
        self._turn = _FileLock(path.with_name(path.name + "-turn"))
        self._next = _FileLock(path.with_name(path.name + "-next"))
        self._appends_left = 0
        self._has_turn = False

    @property
    def is_crowded(self) -> bool:
        """Others wrote lately, so the turn is to be taken before trying."""
        return self._appends_left > 0

    def take(self, deadline: float) -> None:
        """Wait for this process' turn; nothing to do if it is there.

        Raises:
            TurnTimeoutError: it didn't come before `deadline` (monotonic seconds).
        """
        if self._has_turn:
            return
        is_waited_for = self._next.take(deadline)
        try:
            is_waited_for |= self._turn.take(deadline)
        finally:
            self._next.release()
        self._has_turn = True
        self._appends_left = _APPENDS_QUEUED if is_waited_for or not self._appends_left else self._appends_left - 1

    def leave(self) -> None:
        """Let the next one write."""
        if self._has_turn:
            self._turn.release()
            self._has_turn = False

    def close(self) -> None:
        """Give up the place in the queue, for good."""
        self._turn.close()
        self._next.close()
