"""The transaction on PostgreSQL: one statement a batch (`append_function`), and the truth about it afterwards.

A connection can be lost while its answer is on the way: then a new session is opened, behind the lock and in place of
the former one, so that whatever that has sent is done by then or never. Only then the log is asked which appends stand
in it, each by the state of its first event, which names its `append_id`; the others are sent again. So a server that
is restarted, or a line that is cut, costs time and nothing else.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from anyio.from_thread import BlockingPortal

from adapters.log import bodies
from adapters.log.postgres.batch import columns_of
from adapters.log.postgres.connecting import PostgresError
from adapters.log.postgres.link import Link
from adapters.log.postgres.parts import HEAD_ROW, incomplete
from adapters.log.submission import BodyRow, Submission
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.fault_points import FaultHook, FaultPoint
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, VersionConflictError

_T = TypeVar("_T")

_PAUSE_SECONDS = 0.1
_PATIENCE_WHEN_AWAY_SECONDS = 2.0
"""How long appends wait for a server that was found away before."""

_FENCED, _UNIQUE_VIOLATION, _LOCK_NOT_AVAILABLE, _NO_HEAD = "CS001", "23505", "55P03", "P0002"
_BROKEN = frozenset({"XX001", "XX002", "58030"})
"""Damage and I/O errors: data corrupted, index corrupted, io_error."""

_APPEND = """SELECT number, first_position, problem, stream, refused_version
    FROM append_batch(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_OPEN_SESSION = "SELECT open_session(?)"
_CLOSE_SESSION = "DELETE FROM writer_sessions WHERE id = ?"
_POSITION_OF = "SELECT position FROM events WHERE stream_id = ? AND version = ? AND state = ?"
_LOCK_HEAD = "SELECT position FROM log_head FOR UPDATE"


class UncertainError(StoreUnavailableError):
    """Whether an append was stored can't be established."""


class PostgresCommitter:
    """Runs the writing session's statements. Implements `Committer`; `run_alone` may be called in other threads."""

    def __init__(
        self, portal: BlockingPortal, address: PostgresAddress, *, faults: FaultHook, lock_timeout_seconds: float
    ) -> None:
        self._portal = portal
        self._address = address
        self._faults = faults
        self._lock_timeout_seconds = lock_timeout_seconds
        self._link: Link | None = None
        self._session: UUID | None = None
        self._is_away = False
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """Why this log may never be written again by this process; None while all is well."""
        return self._failure

    def commit(self, batch: list[Submission]) -> None:
        """Settle every submission of `batch`."""
        deadline = self._deadline()
        left = batch
        try:
            while left:
                left = self._try_commit(left, deadline)
        except BaseException as error:
            self._refuse(left, error)

    def _try_commit(self, batch: list[Submission], deadline: float) -> list[Submission]:
        """Send `batch` once; return what has to be sent again."""
        self._faults(FaultPoint.APPEND_BEGIN)
        link = self._open(deadline)
        self._faults(FaultPoint.APPEND_IN_TRANSACTION)
        try:
            outcomes = link.execute(_APPEND, (self._session, *columns_of(batch))).fetchall()
            self._faults(FaultPoint.APPEND_COMMITTED)
        except PostgresError as error:
            if error.sqlstate == _FENCED:
                self._drop()
                return batch
            if not error.is_unanswered:
                if len(batch) == 1:
                    raise
                for submission in batch:  # the one that it is about is refused, and the others are stored
                    self.commit([submission])
                return []
            self._drop()
            return self._find(batch, self._deadline())
        except BaseException as error:
            self._drop()
            left = self._find(batch, self._deadline())
            for submission in left:
                submission.refuse(self._told(error))
            return []
        for number, first_position, problem, stream, version in outcomes:
            submission = batch[number - 1]
            if problem is None:
                submission.positions = (first_position, first_position + len(submission.rows) - 1)
            else:
                submission.refuse(_refusal(problem, stream, version, submission))
        return []

    def _find(self, batch: list[Submission], deadline: float) -> list[Submission]:
        """Settle those of `batch` that stand in the log; return the others, which can't come any more.

        Raises:
            UncertainError: the log can't be asked.
        """
        left: list[Submission] = []
        try:
            while True:
                link = self._open(deadline)
                try:
                    for submission in batch:
                        row = submission.rows[0]
                        found = link.execute(_POSITION_OF, (row.stream_id, row.version, row.state)).fetchone()
                        if found is None:
                            left.append(submission)
                        else:
                            submission.positions = (found[0], found[0] + len(submission.rows) - 1)
                except PostgresError as error:
                    if not error.is_unanswered:
                        raise
                    self._drop()
                    left.clear()
                else:
                    return left
        except PostgresError as error:
            self._failure = f"whether an append was stored can't be established: {error}"
            raise UncertainError(self._failure) from error

    def _open(self, deadline: float) -> Link:
        """Return the link with an open session, made anew if it was lost.

        Raises:
            PostgresError: it can't be made before the deadline (monotonic seconds).
        """
        if self._link is not None and self._link.is_closed:
            self._drop()  # nothing was sent on it yet, so nothing is uncertain
        while self._link is None:
            try:
                link = Link(self._portal, self._address, settings=self._settings(),
                            seconds=self._lock_timeout_seconds + 2)
                (fresh,) = link.execute(_OPEN_SESSION, (self._session,)).fetchone()
                link.execute(_REQUIRE_SYNCHRONOUS)
            except PostgresError as error:
                if not error.is_passing or time.monotonic() > deadline:
                    self._is_away = True
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                self._link, self._session, self._is_away = link, fresh, False
        return self._link

    def _settings(self) -> dict[str, str]:
        """Return the session's: what is waited for is the lock; a statement that takes longer than that is stuck."""
        milliseconds = max(1, int(self._lock_timeout_seconds * 1000))
        return {"lock_timeout": str(milliseconds), "statement_timeout": str(milliseconds + 1_000)}

    def _drop(self) -> None:
        if self._link is not None:
            self._link.terminate()
            self._link = None

    def _deadline(self) -> float:
        patience = self._lock_timeout_seconds
        if self._is_away:
            patience = min(patience, _PATIENCE_WHEN_AWAY_SECONDS)
        return time.monotonic() + patience

    def store_large_body(self, row: BodyRow) -> None:
        """Store one body durably, in a transaction of its own; again after a lost answer, since once is as good."""
        deadline = self._deadline()
        while True:
            try:
                bodies.insert(self._open(deadline), (row,))
            except PostgresError as error:
                if error.is_unanswered:
                    self._drop()
                    continue
                raise self._told(error) from error
            else:
                return

    def run_alone(self, change: Callable[[Any], _T]) -> _T:
        """Make a change to what isn't an event, durably, in a transaction of its own, on a connection of its own."""
        try:
            link = Link(self._portal, self._address, settings={"lock_timeout": self._settings()["lock_timeout"]})
            try:
                with link.transaction():
                    link.execute(_LOCK_HEAD)
                    return change(link)
            finally:
                link.close()
        except PostgresError as error:
            raise self._told(error) from error

    def tidy(self) -> None:
        """Nothing: the server tidies up by itself."""

    def close(self) -> None:
        """End the session."""
        if self._link is not None:
            try:
                self._link.execute(_CLOSE_SESSION, (self._session,))
            except PostgresError:
                self._link.terminate()  # its row goes when it is old
            else:
                self._link.close()
            self._link = None

    def _refuse(self, batch: Sequence[Submission], error: BaseException) -> None:
        told = self._told(error)
        for submission in batch:
            refusal = VersionConflictError(str(told)) if isinstance(told, VersionConflictError) else \
                StoreUnavailableError(str(told), is_final=self._failure is not None)
            refusal.__cause__ = error
            submission.refuse(refusal)

    def _told(self, error: BaseException) -> Exception:
        """Return what callers are told of `error`; note what ends this log's writing."""
        if isinstance(error, UncertainError | VersionConflictError):
            return error
        if isinstance(error, PostgresError):
            if error.sqlstate == _UNIQUE_VIOLATION:
                return VersionConflictError(f"somebody else has appended first: {error}")
            if error.sqlstate in _BROKEN:
                self._failure = f"the event log's disk or tables failed: {error}"
            if error.sqlstate == _NO_HEAD:
                return StoreUnavailableError(
                    f"the event log can't be written: {incomplete([HEAD_ROW])}; nothing was stored")
            if error.sqlstate == _LOCK_NOT_AVAILABLE:
                return StoreUnavailableError(
                    f"the event log was locked by another process for {self._lock_timeout_seconds:g} s; "
                    "nothing was stored")
        elif isinstance(error, OSError) and not isinstance(error, TimeoutError):
            self._failure = f"the event log failed: {error}"
        return StoreUnavailableError(f"the event log can't be written: {error}; nothing was stored",
                                     is_final=self._failure is not None)


def _refusal(problem: str, stream: str, version: int, submission: Submission) -> Exception:
    match problem:
        case "instance":
            return InstanceClosedError(
                f"{submission.instance_id} isn't open: it has not started, has stopped, or was recovered by another")
        case "first":
            return VersionConflictError(f"{stream}: versions begin at 1")
        case "gap":
            return VersionConflictError(f"{stream} has no version {version - 1} that version {version} could follow")
        case _:
            return VersionConflictError(f"somebody else has appended first: {stream} has a version {version}")


_REQUIRE_SYNCHRONOUS = """SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local')"""
"""A commit that is answered has to be on disk, whatever this user's sessions do otherwise."""
