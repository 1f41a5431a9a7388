"""The `eventsourcing` library's own recorder tests, run on our recorder over our log, on each database."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.tests.persistence import ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase

from adapters.log.chain import find_breaks
from adapters.log.database import Database
from adapters.log.places import LogPlace, open_database
from adapters.log.recorder import LogRecorder
from adapters.log.scanning import scan_events
from adapters.log.statements import RAW_SLICE
from support.postgres import PostgresServer


class _OnOurLog:
    """Gives the library's cases a recorder over a new log, with its ids as text or UUIDs."""

    originator_id_type = "uuid"

    def new_place(self) -> LogPlace:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)  # type: ignore[attr-defined]  # of the case that this is mixed into
        return Path(directory.name) / "log.db"

    def create_recorder(self) -> LogRecorder:
        database = open_database(self.new_place(), lock_timeout_seconds=5)
        recorder = LogRecorder(database, originator_id_type=self.originator_id_type)
        self.addCleanup(database.close)  # type: ignore[attr-defined]  # as above
        self.addCleanup(recorder.close)  # type: ignore[attr-defined]  # as above
        return recorder


class _OnPostgres(_OnOurLog):
    """The same in PostgreSQL."""

    server: PostgresServer

    @pytest.fixture(autouse=True)
    def _has_server(self, postgres: PostgresServer) -> None:
        self.server = postgres

    def new_place(self) -> LogPlace:
        return self.server.new_log()


class LibraryCasesWithUuids(_OnOurLog, ApplicationRecorderTestCase[LogRecorder]):
    def test_subscription(self) -> None:
        self.optional_test_insert_subscribe()


class LibraryCasesWithText(LibraryCasesWithUuids):
    originator_id_type = "text"

    def new_originator_id(self) -> str:
        return f"stream-{uuid4()}"


class LibraryCaseOfOrder(_OnOurLog, NonInterleavingNotificationIDsBaseCase):
    pass


class LibraryCasesOnPostgresWithUuids(_OnPostgres, LibraryCasesWithUuids):
    pass


class LibraryCasesOnPostgresWithText(_OnPostgres, LibraryCasesWithText):
    pass


class LibraryCaseOfOrderOnPostgres(_OnPostgres, LibraryCaseOfOrder):
    pass


del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> LogPlace:
    if request.param == "file":
        return tmp_path / "log.db"
    address: LogPlace = request.getfixturevalue("postgres").new_log()
    return address


@pytest.fixture
def database(place: LogPlace) -> Iterator[Database]:
    opened = open_database(place, lock_timeout_seconds=5)
    yield opened
    opened.close()


def test_what_the_recorder_writes_is_chained(database: Database) -> None:
    recorder = LogRecorder(database)
    events = [StoredEvent("stream", version, "topic", b"state") for version in (1, 2)]
    assert list(recorder.insert_events(events) or ()) == [1, 2]
    with pytest.raises(IntegrityError):
        recorder.insert_events(events[1:])
    recorder.close()
    with database.reader() as connection:
        assert list(find_breaks(scan_events(connection, RAW_SLICE))) == []


def test_a_subscription_sees_the_commits_of_another_recorder(place: LogPlace, database: Database) -> None:
    other = open_database(place, lock_timeout_seconds=5)
    here, there = LogRecorder(database), LogRecorder(other)
    with here.subscribe(gt=0) as subscription:
        for version in range(1, 4):
            there.insert_events([StoredEvent("stream", version, "topic", b"state")])
        assert [next(subscription).id for _ in range(3)] == [1, 2, 3]
    here.close()
    there.close()
    other.close()
