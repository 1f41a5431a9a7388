"""Each audit of a log with long streams reads as much more as the log is longer, and holds no more of it at a time.

Counted: the rows that are asked for, and the events that are held at once.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from long_streams_log import PROCESS_STREAM, WORK, write_long_streams

from adapters.cli.pruning import KINDS_BY_DEFAULT, Rule, choose
from adapters.log.database import Connection
from adapters.log.reader import LogReader
from adapters.log.sqlite.connecting import driver
from adapters.log.sqlite.reading import open_read_only
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay import doubts, memory, stored_contents, story
from replay.compare import compare
from replay.difference import difference
from replay.files_at import files_at
from replay.in_force import work_done
from replay.moments import event_at, position_of
from replay.report import gather
from replay.source import first_of
from replay.spans import otlp_lines
from replay.state_at import aggregates_at, state_at
from replay.stepping import Stepper
from replay.story import tell
from replay.timeline import Timeline, Wanted
from replay.verify import verify

SIZE = 120
TWICE = 2.4
"""A log that is twice as long, and the slices that are read a little ahead."""
HELD_MORE_MAX = 40
"""Events that may be held at once beyond those held of a log half as long: one slice begins where another ends."""


class Counted(RecordedEvent):
    """Counts how many of it are held."""

    __slots__ = ()
    held = most_held = 0

    def __init__(self, *fields: Any) -> None:
        super().__init__(*fields)
        Counted.held += 1
        Counted.most_held = max(Counted.most_held, Counted.held)

    def __del__(self) -> None:
        Counted.held -= 1


class Rows:
    """Counts the rows that a statement gives."""

    def __init__(self, counter: "CountingConnection", rows: Any) -> None:
        self._counter, self._rows = counter, rows

    def fetchone(self) -> Any:
        self._counter.rows += 1
        return self._rows.fetchone()

    def fetchall(self) -> list[Any]:
        found: list[Any] = self._rows.fetchall()
        self._counter.rows += len(found)
        return found

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows:
            self._counter.rows += 1
            yield row


class CountingConnection:
    """A connection whose rows are counted."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Rows:
        return Rows(self, self._connection.execute(statement, parameters))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One log, and one that is twice as long."""
    made = tmp_path_factory.mktemp("long")
    paths = made / "one.db", made / "two.db"
    for number, path in enumerate(paths, start=1):
        anyio.run(write_long_streams, path, number * SIZE)
    return paths


def spent(path: Path, work: Callable[[LogReader], object]) -> tuple[int, int]:
    """Return how many rows `work` asks for, and how many events are held at once."""
    connection = CountingConnection(open_read_only(path))
    with LogReader(cast("Connection", connection), CATALOGUE) as reader:
        Counted.most_held = Counted.held
        before = Counted.held
        work(reader)
        return connection.rows, Counted.most_held - before


def drained(events: Iterator[object]) -> int:
    return sum(1 for _ in events)


def stepped_back(reader: LogReader) -> None:
    stepper, head = Stepper(reader), reader.head()[0]
    for position in range(head, head - 50, -1):
        stepper.frame(position)


AUDITS: dict[str, Callable[[LogReader], object]] = {
    "verify": verify,
    "spans": lambda reader: drained(otlp_lines(reader)),
    "spans of the second half": lambda reader: drained(otlp_lines(reader, after=reader.head()[0] // 2)),
    "report": lambda reader: gather(reader, 0, reader.head()[0]),
    "diff": lambda reader: difference(reader, reader.head()[0] // 2, reader.head()[0]),
    "files": lambda reader: files_at(reader, reader.head()[0]),
    "compare": compare,
    "state": lambda reader: state_at(reader, reader.head()[0]),
    "aggregates": lambda reader: drained(aggregates_at(reader, reader.head()[0])),
    "prune": lambda reader: drained(choose(reader, Rule(frozenset(KINDS_BY_DEFAULT), None, 0))),
    "undo of a work": lambda reader: work_done(reader, WORK),
    "show a work": lambda reader: tell(reader, WORK),
    "show a process": lambda reader: tell(reader, PROCESS_STREAM),
    "show an instance": lambda reader: tell(reader, _a_stream(reader, "inst-")),
    "show steering": lambda reader: tell(reader, _a_stream(reader, "steer-")),
    "show an action": lambda reader: tell(reader, _a_stream(reader, "act-")),
    "log of a work": lambda reader: Timeline(reader).read(Wanted(things=(WORK,)), limit=10_000),
    "log of a workspace": lambda reader: Timeline(reader).read(Wanted(workspace="nowhere"), limit=10),
    "steps back": stepped_back,
}


def _a_stream(reader: LogReader, beginning: str) -> str:
    return reader.streams_beginning(beginning)[0]


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_reads_in_proportion_and_holds_no_more(
    logs: tuple[Path, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that what is bounded is bounded here too.
    monkeypatch.setattr("adapters.log.rows.RecordedEvent", Counted)
    monkeypatch.setattr("adapters.log.scanning._ROWS_AT_ONCE", 32)
    monkeypatch.setattr(story, "_EVENTS_SHOWN_EACH_MAX", 10)
    monkeypatch.setattr("replay.spans._MOMENTS_MAX", 10)
    monkeypatch.setattr(memory, "_RESTING_MAX", 0)
    (rows, held), (twice_rows, twice_held) = (spent(path, AUDITS[name]) for path in logs)
    assert twice_rows <= TWICE * rows
    assert twice_held <= held + HELD_MORE_MAX


def test_contents_in_any_order_have_a_long_stream_read_once_for_many(
    logs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a file whose table was written anew: nearly every content is met where no event is that names it."""
    made = []
    for path in logs:
        mixed = tmp_path / path.name
        mixed.write_bytes(path.read_bytes())
        _mix_contents(mixed)
        made.append(mixed)
    monkeypatch.setattr("adapters.log.rows.RecordedEvent", Counted)
    monkeypatch.setattr("adapters.log.scanning._ROWS_AT_ONCE", 32)
    monkeypatch.setattr(stored_contents, "_AHEAD_ROWS_MAX", 8)
    monkeypatch.setattr(stored_contents, "_WAITING_TAKES_MAX", 32)
    (rows, held), (twice_rows, twice_held) = (spent(path, _verified) for path in made)
    assert twice_rows <= TWICE * rows
    assert twice_held <= held + HELD_MORE_MAX
    gathered: list[int] = []
    settle = doubts.Doubts.settle

    def watched(self: doubts.Doubts) -> None:
        gathered.append(self._count)
        settle(self)

    monkeypatch.setattr(doubts.Doubts, "settle", watched)
    monkeypatch.setattr(doubts, "_GATHERED_MAX", 50)
    assert spent(made[1], _verified)[0] > twice_rows
    assert max(gathered) == 50
    assert len(gathered) > 3


def _verified(reader: LogReader) -> None:
    assert verify(reader).findings == ()


def _mix_contents(path: Path) -> None:
    """Write the table of contents anew, in the order of their digests."""
    connection = driver.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("CREATE TEMP TABLE held AS SELECT * FROM bodies ORDER BY digest")
    connection.execute("DELETE FROM bodies")
    connection.execute("INSERT INTO bodies SELECT * FROM held")
    connection.execute("DROP TABLE held")
    connection.execute("COMMIT")
    connection.close()


def test_what_asks_for_one_event_is_given_a_few_rows(logs: tuple[Path, Path]) -> None:
    for work in (
        lambda reader: first_of(reader, PROCESS_STREAM),
        lambda reader: event_at(reader, 100),
        lambda reader: position_of(reader, f"{PROCESS_STREAM}@100"),
    ):
        assert spent(logs[1], work)[0] <= 12


def test_a_stream_is_walked_from_any_version_in_any_slices(logs: tuple[Path, Path]) -> None:
    with LogReader(logs[0], CATALOGUE) as reader:
        whole = [each.position for each in reader.read_stream(PROCESS_STREAM)]
        assert len(whole) == SIZE + 2
        for after in (0, 1, 7, 8, 9, 40, SIZE + 1, SIZE + 2, SIZE + 3):
            assert [each.position for each in reader.walk_stream(PROCESS_STREAM, after=after)] == whole[after:]
        assert list(reader.walk_stream(StreamId("proc-\0"))) == []
        assert list(reader.walk_stream(StreamId("proc-nobody"))) == []


def test_a_long_story_is_told_by_its_two_ends(logs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "_EVENTS_SHOWN_EACH_MAX", 10)
    with LogReader(logs[0], CATALOGUE) as reader:
        told = tell(reader, PROCESS_STREAM)
        assert told.event_count == SIZE + 2
        assert [each.version for each in told.events] == [*range(1, 11), *range(SIZE - 7, SIZE + 3)]
        assert told.process is not None
        assert told.process.report is not None
        assert told.process.report.state == "exited"
        assert tell(reader, WORK).event_count == 1 + 4 * SIZE
