"""The log as a recorder of the `eventsourcing` library: its tests run on our store, its applications can use it.

Everything that a recorder does goes through our writer and readers, on either database. The library's versions may
begin at 0 and leave gaps; nothing here checks instances or keeps the open index.
"""

import threading
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    OperationalError,
    StoredEvent,
)

from adapters.log.database import Database
from adapters.log.submission import NewRow, Submission
from adapters.log.writer import Writer
from codespace_es.ports.fault_points import no_faults
from codespace_es.ports.log import StoreUnavailableError, VersionConflictError

_LOCK_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.05

_EVENTS = "SELECT version, topic, state FROM events WHERE stream_id = ?"
_NOTIFICATIONS = "SELECT position, stream_id, version, topic, state FROM events WHERE position >= ?"


class LogRecorder(ApplicationRecorder):
    """An application recorder over one of our logs, safe for several threads. The caller closes it."""

    def __init__(self, database: Database, *, originator_id_type: str = "text") -> None:
        """Start writing `database`, which stays the caller's.

        Args:
            database: An opened log.
            originator_id_type: `text`, or `uuid` for streams that are named by the hex digits of a UUID.
        """
        self._database = database
        self._is_named_by_uuid = originator_id_type == "uuid"
        self._subscriptions: set[RecorderSubscription] = set()
        self._writer = Writer(database, faults=no_faults, announce=self._announce, on_failure=lambda _reason: None,
                              lock_timeout_seconds=_LOCK_TIMEOUT_SECONDS)

    def close(self) -> None:
        """End the writer and every subscription."""
        for subscription in tuple(self._subscriptions):
            subscription.stop()
        self._writer.close()

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int] | None:
        """Store the events durably, all or none; return their positions.

        Raises:
            IntegrityError: a version is taken.
            OperationalError: the log can't be written now.
        """
        if not stored_events:
            return []
        done = threading.Event()
        rows = [_row(event) for event in stored_events]
        submission = Submission(rows, done.set, is_gapless=False)
        try:
            self._writer.submit(submission)
        except StoreUnavailableError as error:
            raise OperationalError(str(error)) from error
        done.wait()
        if isinstance(submission.error, VersionConflictError):
            raise IntegrityError(str(submission.error)) from submission.error
        if submission.positions is None:
            raise OperationalError(str(submission.error)) from submission.error
        first, last = submission.positions
        return list(range(first, last + 1))

    def select_events(
        self, originator_id: UUID | str, *, gt: int | None = None, lte: int | None = None, desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the stream's events in order of version, backwards with `desc`."""
        statement = _EVENTS
        parameters: list[Any] = [_stream_of(originator_id)]
        for condition, value in ((" AND version > ?", gt), (" AND version <= ?", lte)):
            if value is not None:
                statement += condition
                parameters.append(value)
        statement += " ORDER BY version" + (" DESC" if desc else "")
        if limit is not None:
            statement += " LIMIT ?"
            parameters.append(limit)
        return [StoredEvent(originator_id=originator_id, originator_version=version, topic=topic, state=state)
                for version, topic, state in self._rows(statement, parameters)]

    def select_notifications(
        self, start: int | None, limit: int, stop: int | None = None, topics: Sequence[str] = (), *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return at most `limit` events from position `start` to `stop`, in order of position."""
        statement = _NOTIFICATIONS
        parameters: list[Any] = [(start or 0) + (0 if inclusive_of_start or start is None else 1)]
        if stop is not None:
            statement += " AND position <= ?"
            parameters.append(stop)
        if topics:
            statement += f" AND topic IN ({', '.join('?' * len(topics))})"
            parameters += topics
        parameters.append(limit)
        found = self._rows(statement + " ORDER BY position LIMIT ?", parameters)
        return [
            Notification(originator_id=UUID(stream_id) if self._is_named_by_uuid else stream_id,
                         originator_version=version, topic=topic, state=state, id=position)
            for position, stream_id, version, topic, state in found
        ]

    def max_notification_id(self) -> int | None:
        """Return the position of the newest event, None in an empty log."""
        newest: int | None = self._rows("SELECT max(position) FROM events", ())[0][0]
        return newest

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> "RecorderSubscription":
        """Return an iterator of the events with position > `gt` that goes on for ever."""
        return RecorderSubscription(self, gt=gt, topics=topics)

    def newest(self) -> int:
        """Return the position of the newest event, 0 in an empty log."""
        return self.max_notification_id() or 0

    def listen(self, subscription: "RecorderSubscription") -> None:
        """Wake `subscription` after each commit of this recorder."""
        self._subscriptions.add(subscription)

    def unlisten(self, subscription: "RecorderSubscription") -> None:
        """Wake it no more."""
        self._subscriptions.discard(subscription)

    def _announce(self, batch: Sequence[Submission]) -> None:
        for submission in batch:
            submission.wake()
        for subscription in tuple(self._subscriptions):
            subscription.wake()

    def _rows(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        with self._database.point_reader() as connection:
            return connection.execute(statement, parameters).fetchall()


class RecorderSubscription(ListenNotifySubscription[LogRecorder]):
    """Notifications as they are committed: this recorder's at once, other processes' soon."""

    def __init__(self, recorder: LogRecorder, gt: int | None = None, topics: Sequence[str] = ()) -> None:
        """Begin behind position `gt`."""
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        recorder.listen(self)

    def wake(self) -> None:
        """Look for new events now."""
        self._has_been_notified.set()

    def stop(self) -> None:
        """End the iteration."""
        self._recorder.unlisten(self)
        super().stop()

    def _loop_on_pull(self) -> None:
        seen = -1
        try:
            while not self._has_been_stopped:
                now = self._recorder.newest()
                if self._has_been_notified.is_set() or now != seen:
                    seen = now
                    self._pull()
                self._has_been_notified.wait(_POLL_SECONDS)
        except BaseException as error:
            self._thread_error = self._thread_error or error
            self.stop()


def _stream_of(originator_id: UUID | str) -> str:
    return originator_id.hex if isinstance(originator_id, UUID) else originator_id


def _row(event: StoredEvent) -> NewRow:
    stream_id = _stream_of(event.originator_id)
    return NewRow(stream_id, stream_id.encode(), event.originator_version, event.topic, event.topic.encode(),
                  event.state)
