"""The writer thread: it takes what is queued, commits it together, and tells the callers.

Appends with large bodies wait aside while these are stored, one transaction each; between two of them the small
appends that have come meanwhile are committed, so nobody waits for more than one body of somebody else.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

from adapters.log.database import Connection, Database
from adapters.log.submission import Submission
from codespace_es.ports.fault_points import FaultHook
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.limits import GROUP_COMMIT_APPENDS_MAX

_T = TypeVar("_T")

_GATHER_SECONDS = 0.000_05

_IDLE_SECONDS = 1.0
"""Quiet time after which the database is tidied up."""


class Writer:
    """Serialises all appends of this process on one log."""

    def __init__(
        self,
        database: Database,
        *,
        faults: FaultHook,
        announce: Callable[[Sequence[Submission]], None],
        on_failure: Callable[[str], None],
        lock_timeout_seconds: float,
    ) -> None:
        """Start the thread.

        Args:
            database: Where to write. Its closing is the caller's, after `close`.
            faults: Called at the moments of a transaction.
            announce: Called from the thread with settled submissions; must call `wake` of each, wherever that is due.
            on_failure: Called from the thread, at most once, with the reason why nothing can be written any more.
            lock_timeout_seconds: How long to wait for other processes.
        """
        self._committer = database.committer(faults=faults, lock_timeout_seconds=lock_timeout_seconds)
        self._announce = announce
        self._on_failure = on_failure
        self._queue: SimpleQueue[Submission | None] = SimpleQueue()
        self._with_large_bodies: deque[Submission] = deque()
        self._is_closing = False
        self._is_end_taken = False
        self._has_failed = False
        self._last_batch_size = 1
        self._thread = threading.Thread(target=self._run, name="event-log-writer", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Why nothing can be written any more; None while all is well."""
        return self._committer.failure

    def submit(self, submission: Submission) -> None:
        """Queue it; it will be settled and announced.

        Raises:
            StoreUnavailableError: the log is closed or has failed; nothing was stored.
        """
        if self._is_closing:
            msg = "the event log is closed; nothing was stored"
            raise StoreUnavailableError(msg, is_final=True)
        if self._committer.failure is not None:
            raise StoreUnavailableError(f"{self._committer.failure}; nothing was stored", is_final=True)
        self._queue.put(submission)

    def run_alone(self, change: Callable[[Connection], _T]) -> _T:
        """Make a change to what isn't an event, in a transaction of its own, in the calling thread.

        Raises:
            StoreUnavailableError: nothing was changed.
        """
        return self._committer.run_alone(change)

    def close(self) -> None:
        """Finish what is queued and end the thread. May block for as long as the lock is waited for."""
        self._is_closing = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_dirty = False
        while not self._is_end_taken or self._with_large_bodies:
            batch = self._take(is_dirty=is_dirty)
            if batch:
                self._commit(batch)
                is_dirty = True
            elif self._with_large_bodies:
                self._store_next_large_body()
            elif is_dirty:
                self._committer.tidy()
                is_dirty = False
            if self._committer.failure is not None and not self._has_failed:
                self._has_failed = True
                self._on_failure(self._committer.failure)

    def _take(self, *, is_dirty: bool) -> list[Submission]:
        """Return what can be committed now; nothing after a quiet time when there is something to tidy up.

        Doesn't wait while large bodies are to be stored, nor after the end of the queue.
        """
        batch: list[Submission] = []
        is_waiting = not (self._is_end_taken or self._with_large_bodies)
        try:
            self._sort_in(self._queue.get(is_waiting, _IDLE_SECONDS if is_dirty else None), batch)
        except Empty:
            return batch
        self._drain(batch)
        # Callers that were answered together come back one after the other: a commit for the first of them alone
        # would make all the others wait for the next.
        while len(batch) < self._last_batch_size:
            size = len(batch)
            time.sleep(_GATHER_SECONDS)
            self._drain(batch)
            if len(batch) == size:
                break
        self._last_batch_size = len(batch)
        return batch

    def _drain(self, batch: list[Submission]) -> None:
        """Take what is queued into `batch`, as far as there is room in it."""
        try:
            while len(batch) < GROUP_COMMIT_APPENDS_MAX and not self._is_end_taken:
                self._sort_in(self._queue.get_nowait(), batch)
        except Empty:
            return

    def _sort_in(self, submission: Submission | None, batch: list[Submission]) -> None:
        if submission is None:
            self._is_end_taken = True
        elif submission.large_bodies:
            self._with_large_bodies.append(submission)
        else:
            batch.append(submission)

    def _commit(self, batch: list[Submission]) -> None:
        if self._committer.failure is None:
            self._committer.commit(batch)
        else:
            refusal = f"{self._committer.failure}; nothing was stored"
            for submission in batch:
                submission.refuse(StoreUnavailableError(refusal, is_final=True))
        self._announce(batch)

    def _store_next_large_body(self) -> None:
        """Store one body of the append that waits longest; without any left, the append goes the way of all."""
        submission = self._with_large_bodies.popleft()
        try:
            if self._committer.failure is not None:
                raise StoreUnavailableError(f"{self._committer.failure}; nothing was stored", is_final=True)
            self._committer.store_large_body(submission.large_bodies.pop())
        except StoreUnavailableError as error:
            submission.refuse(error)
            self._announce((submission,))
            return
        if submission.large_bodies:
            self._with_large_bodies.appendleft(submission)
        else:
            self._commit([submission])
