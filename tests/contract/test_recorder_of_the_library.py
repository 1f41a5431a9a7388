"""The `eventsourcing` library's own recorder tests, run on our recorder over our log."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.tests.persistence import ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase

from adapters.log.chain import find_breaks
from adapters.log.database import Database
from adapters.log.recorder import SqliteRecorder
from adapters.log.statements import RAW_ROWS


class _OnOurLog:
    """Gives the library's cases a recorder over a new log, with its ids as text or UUIDs."""

    originator_id_type = "uuid"

    def create_recorder(self) -> SqliteRecorder:
        directory = tempfile.TemporaryDirectory()
        database = Database(Path(directory.name) / "log.db", lock_timeout_seconds=5)
        recorder = SqliteRecorder(database, originator_id_type=self.originator_id_type)
        self.addCleanup(directory.cleanup)  # type: ignore[attr-defined]  # of the case that this is mixed into
        self.addCleanup(database.close)  # type: ignore[attr-defined]  # as above
        self.addCleanup(recorder.close)  # type: ignore[attr-defined]  # as above
        return recorder


class LibraryCasesWithUuids(_OnOurLog, ApplicationRecorderTestCase[SqliteRecorder]):
    def test_subscription(self) -> None:
        self.optional_test_insert_subscribe()


class LibraryCasesWithText(LibraryCasesWithUuids):
    originator_id_type = "text"

    def new_originator_id(self) -> str:
        return f"stream-{uuid4()}"


class LibraryCaseOfOrder(_OnOurLog, NonInterleavingNotificationIDsBaseCase):
    pass


del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "log.db", lock_timeout_seconds=5)
    yield opened
    opened.close()


def test_what_the_recorder_writes_is_chained(database: Database) -> None:
    recorder = SqliteRecorder(database)
    events = [StoredEvent("stream", version, "topic", b"state") for version in (1, 2)]
    assert list(recorder.insert_events(events) or ()) == [1, 2]
    with pytest.raises(IntegrityError):
        recorder.insert_events(events[1:])
    recorder.close()
    assert list(find_breaks(database.reading.connection.execute(RAW_ROWS, (0,)))) == []


def test_a_subscription_sees_the_commits_of_another_recorder(database: Database) -> None:
    assert database.path is not None
    other = Database(database.path, lock_timeout_seconds=5)
    here, there = SqliteRecorder(database), SqliteRecorder(other)
    with here.subscribe(gt=0) as subscription:
        for version in range(1, 4):
            there.insert_events([StoredEvent("stream", version, "topic", b"state")])
        assert [next(subscription).id for _ in range(3)] == [1, 2, 3]
    here.close()
    there.close()
    other.close()
