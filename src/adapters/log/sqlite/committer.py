"""The transaction: a batch of appends becomes durable together, each of them wholly or not at all.

1. `BEGIN IMMEDIATE`, in this process' turn if others write too.
2. The chain's head, read again if another process has written since.
3. Each append under a savepoint of its own: a version conflict of one leaves the others alone.
4. `COMMIT`. Nobody is answered before it, neither yes nor no; if it fails, every outcome of the batch is void.
5. Where the commit's fate isn't plain, the log is asked whether the append stands there: its last event's hash covers
   its `append_id`.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from adapters.log import bodies, open_rows, statements
from adapters.log.chain import GENESIS, link
from adapters.log.sqlite.connecting import Guarded, SqliteConnection, driver, is_broken, is_busy
from adapters.log.sqlite.turnstile import Turnstile, TurnTimeoutError
from adapters.log.submission import BodyRow, NewRow, Submission
from codespace_es.ports.fault_points import FaultHook, FaultPoint
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, VersionConflictError

_T = TypeVar("_T")

_BUSY_POLL_SECONDS = 0.001

_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"
_HASH_AT = "SELECT hash FROM events WHERE position = ?"


class LogReplacedError(OSError):
    """The files that are open aren't those that the log's path names any more."""


class Written(Protocol):
    """What is written on: the opened log, or memory."""

    path: Path | None
    writing: Guarded
    turnstile: Turnstile | None
    """None where nobody else can write."""

    def reader(self) -> AbstractContextManager[SqliteConnection]:
        """Give a connection of its own, which sees what is committed."""
        ...

    def require_in_place(self) -> None:
        """Do nothing if the path still names the files that are open. Raises LogReplacedError."""
        ...


class SqliteCommitter:
    """Runs the writing connection's transactions. Implements `Committer`."""

    def __init__(self, database: Written, *, faults: FaultHook, lock_timeout_seconds: float) -> None:
        self._database = database
        self._connection = database.writing.connection
        self._execute = self._connection.execute
        self._faults = faults
        self._lock_timeout_seconds = lock_timeout_seconds
        self._head: tuple[int, bytes] | None = None
        self._instance_open: str | None = None
        """The instance known to be open while nobody else has written."""
        self._data_version = -1
        self.failure: str | None = None
        """Why this log may never be written again by this process; None while all is well."""

    def commit(self, batch: list[Submission]) -> None:
        """Settle every submission of `batch`. Never raises: what goes wrong is their error."""
        with self._database.writing.lock:
            try:
                self._commit(batch)
            finally:
                if self._database.turnstile is not None:
                    self._database.turnstile.leave()

    def store_large_body(self, row: BodyRow) -> None:
        """Store one body durably, in a transaction of its own.

        Raises:
            StoreUnavailableError: it wasn't stored.
        """
        self.run_alone(lambda connection: bodies.insert(connection, (row,)))

    def run_alone(self, change: Callable[[SqliteConnection], _T]) -> _T:
        """Make a change to what isn't an event, durably, in a transaction of its own. May be called in any thread.

        Raises:
            StoreUnavailableError: nothing was changed.
        """
        with self._database.writing.lock:
            try:
                self._begin()
                result = change(self._connection)
                self._execute("COMMIT")
                self._database.require_in_place()
            except BaseException as error:
                self._roll_back(error)
                if isinstance(error, driver.Error | TurnTimeoutError | LogReplacedError):
                    raise self._unavailable(error) from error
                raise
            finally:
                if self._database.turnstile is not None:
                    self._database.turnstile.leave()
        return result

    def tidy(self) -> None:
        """Copy what is committed into the main file, as far as no reader is in the way."""
        with self._database.writing.lock:
            try:
                self._execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except driver.Error as error:
                self._note(error)

    def _commit(self, batch: list[Submission]) -> None:
        is_alone = len(batch) == 1
        is_commit_tried = False
        try:
            self._faults(FaultPoint.APPEND_BEGIN)
            self._begin()
            self._refresh()
            for submission in batch:
                self._try_store(submission, is_alone=is_alone)
            self._faults(FaultPoint.APPEND_IN_TRANSACTION)
            is_commit_tried = True
            if self._connection.in_transaction:
                self._execute("COMMIT")
                self._database.require_in_place()
            self._faults(FaultPoint.APPEND_COMMITTED)
        except BaseException as error:
            self._roll_back(error)
            self._settle_failed(batch, error, is_commit_tried=is_commit_tried)

    def _begin(self) -> None:
        turnstile = self._database.turnstile
        deadline = time.monotonic() + self._lock_timeout_seconds
        if turnstile is not None and turnstile.is_crowded:
            turnstile.take(deadline)
        while True:
            try:
                self._execute("BEGIN IMMEDIATE")
            except driver.OperationalError as error:
                if not is_busy(error):
                    raise
            else:
                self._database.require_in_place()
                return
            if turnstile is not None:
                turnstile.take(deadline)
            if time.monotonic() > deadline:
                raise TurnTimeoutError
            time.sleep(_BUSY_POLL_SECONDS)

    def _refresh(self) -> None:
        data_version = self._execute("PRAGMA data_version").fetchone()[0]
        if self._head is None or data_version != self._data_version:
            self._data_version = data_version
            self._head = self._execute(statements.HEAD).fetchone() or (0, GENESIS)
            self._instance_open = None

    def _try_store(self, submission: Submission, *, is_alone: bool) -> None:
        if not is_alone:
            self._execute("SAVEPOINT append")
        try:
            self._store(submission)
        except (VersionConflictError, InstanceClosedError, driver.IntegrityError, driver.DataError) as error:
            submission.refuse(_refusal(error))
            self._instance_open = None
            self._execute("ROLLBACK" if is_alone else "ROLLBACK TO append")
        if not is_alone:
            self._execute("RELEASE append")

    def _store(self, submission: Submission) -> None:
        assert self._head is not None
        position, previous = self._head
        instance_id = submission.instance_id
        if instance_id is not None and instance_id != self._instance_open and not submission.starts_instance:
            if not open_rows.is_instance_open(self._connection, instance_id):
                msg = f"{instance_id} isn't open: it has not started, has stopped, or was recovered by another"
                raise InstanceClosedError(msg)
            self._instance_open = instance_id
        first = position + 1
        execute = self._execute
        versions: dict[str, int] = {}
        for row in submission.rows:
            stream_id, stream, version, topic, topic_bytes, state, change = row
            position += 1
            if submission.is_gapless:
                self._check_version(row, versions)
            previous = link(previous, position, stream, version, topic_bytes, state)
            execute(_INSERT, (position, stream_id, version, topic, state, previous))
            if change is not None:
                open_rows.apply(self._connection, stream_id, change, instance_id or "", position)
        if submission.scrubbed:
            bodies.remove(self._connection, submission.scrubbed)
        if submission.bodies:
            bodies.insert(self._connection, submission.bodies)
        if submission.touches_instance:
            self._instance_open = None
        self._head = (position, previous)
        submission.positions = (first, position)
        submission.last_hash = previous

    def _check_version(self, row: NewRow, versions: dict[str, int]) -> None:
        """Refuse a version that would leave a gap; one that is taken is refused by the table itself."""
        before = row.version - 1
        if before < 0:
            msg = f"{row.stream_id}: versions begin at 1"
            raise VersionConflictError(msg)
        if before and versions.get(row.stream_id) != before and (
            self._execute(statements.HAS_VERSION, (row.stream_id, before)).fetchone() is None
        ):
            msg = f"{row.stream_id} has no version {before} that version {row.version} could follow"
            raise VersionConflictError(msg)
        versions[row.stream_id] = row.version

    def _roll_back(self, error: BaseException) -> None:
        self._head = None
        self._instance_open = None
        self._note(error)
        if self._connection.in_transaction:
            try:
                self._execute("ROLLBACK")
            except driver.Error as second:
                self.failure = f"a failed transaction can't be rolled back: {second}"

    def _note(self, error: BaseException) -> None:
        # After a failed flush nobody knows what the disk holds; writing on would build on sand.
        if is_broken(error) or (isinstance(error, OSError) and not isinstance(error, TimeoutError)):
            self.failure = f"the event log's disk or file failed: {error}"

    def _settle_failed(self, batch: list[Submission], error: BaseException, *, is_commit_tried: bool) -> None:
        for submission in batch:
            told = str(self._unavailable(error))
            if is_commit_tried and submission.positions is not None:
                is_stored = self._is_stored(submission)
                if is_stored:
                    continue
                if is_stored is None:
                    told = str(self.failure)
            refusal = StoreUnavailableError(told, is_final=self.failure is not None)
            refusal.__cause__ = error
            submission.refuse(refusal)

    def _is_stored(self, submission: Submission) -> bool | None:
        """Tell whether an append with an unanswered commit stands in the log; None if that can't be established."""
        assert submission.positions is not None
        last = submission.positions[1]
        try:
            if self._database.path is None:
                row = self._execute(_HASH_AT, (last,)).fetchone()
            else:
                with self._database.reader() as connection:
                    row = connection.execute(_HASH_AT, (last,)).fetchone()
        except (driver.Error, StoreUnavailableError) as error:
            self.failure = f"whether an append was stored can't be established: {error}"
            return None
        return row is not None and row[0] == submission.last_hash

    def _unavailable(self, error: BaseException) -> StoreUnavailableError:
        if isinstance(error, TurnTimeoutError):
            text = f"the event log was locked by another process for {self._lock_timeout_seconds:g} s"
        else:
            text = f"the event log can't be written: {error}"
        return StoreUnavailableError(f"{text}; nothing was stored", is_final=self.failure is not None)


def _refusal(error: Exception) -> Exception:
    """Return what the caller of one append is told; the others of its batch aren't concerned."""
    refusal: Exception
    if isinstance(error, driver.IntegrityError):
        refusal = VersionConflictError(f"somebody else has appended first: {error}")
    elif isinstance(error, driver.DataError):
        refusal = StoreUnavailableError(f"a value is too large for the event log: {error}; nothing was stored")
    else:
        return error
    refusal.__cause__ = error
    return refusal
