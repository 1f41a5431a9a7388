"""What is the log's own in PostgreSQL: the same bytes as in a file, tables made once, and a session's fate."""

import gc
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.log import bodies
from adapters.log.places import LogPlace
from adapters.log.postgres.link import FoundRows
from adapters.log.postgres.making import make_log as make_tables
from adapters.log.postgres.reading import ReadingLink
from adapters.log.reader import LogReader
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.log import (
    Append,
    LogFormatError,
    LogMissingError,
    NewBody,
    NewEvent,
    StoreUnavailableError,
    VersionConflictError,
)
from codespace_es.vocabulary.identifiers import StreamId
from support.postgres import PostgresServer, schema_of
from unit.log.sample_events import (
    CALLER,
    CATALOGUE,
    ME,
    OTHER,
    CounterIncreased,
    FromTheFuture,
    finished,
    increased,
    make_log,
    minted,
    open_rule,
    operation,
    started,
)
from unit.log.sample_events import fill as fill_log

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(postgres: PostgresServer) -> PostgresAddress:
    return postgres.new_log()


class CountingIds:
    """The same ids in each log."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = iter(range(1, 1_000_000))

    def uuid(self) -> UUID:
        return UUID(int=next(self._numbers))


async def fill(place: LogPlace, count: int = 3) -> None:
    """Leave the same log in either store."""
    await fill_log(place, count, text="é\n☃ \\u0000", ids=CountingIds())


def execute(postgres: PostgresServer, place: PostgresAddress, *statements: str) -> list[str]:
    return postgres.query(f"SET search_path = {schema_of(place)}; " + "; ".join(statements))


def tamper(postgres: PostgresServer, place: PostgresAddress, *statements: str) -> None:
    """Change the tables as somebody would who means it: without the trigger."""
    execute(postgres, place, "ALTER TABLE events DISABLE TRIGGER ALL", *statements)


async def test_the_same_events_have_the_same_bytes_and_hashes_as_in_a_file(
    postgres: PostgresServer, place: PostgresAddress, tmp_path: Path
) -> None:
    await fill(tmp_path / "log.db")
    await fill(place)
    with LogReader(tmp_path / "log.db", CATALOGUE) as file, LogReader(place, CATALOGUE) as tables:
        rows = list(tables.raw_rows())
        assert rows == list(file.raw_rows())
        assert list(tables.find_breaks()) == []
        assert tables.head() == file.head() == (5, rows[-1][5])
        assert sorted(tables.stored_contents()) == sorted(file.stored_contents())
        assert list(tables.stored_bodies()) == list(file.stored_bodies())
        assert tables.open_items() == file.open_items()
        assert tables.compare_open_index(open_rule) == []
    assert execute(postgres, place, "SELECT position, encode(hash, 'hex') FROM log_head") == [f"5|{rows[-1][5].hex()}"]


@settings(max_examples=12)
@given(plan=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 2)), min_size=1, max_size=4),
                     min_size=1, max_size=12))
def test_a_batch_is_judged_as_in_a_file(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory, plan: list[list[tuple[int, int]]]
) -> None:
    """Appends with right, taken and gapping versions, all at once: the same are stored, and the same refused."""

    async def outcomes(place: LogPlace) -> tuple[list[str], bytes]:
        told = ["?"] * len(plan)

        async def append(number: int, events: tuple[NewEvent, ...]) -> None:
            try:
                receipt = await log.append(Append(events), CALLER)
                told[number] = str(receipt.first_position)
            except VersionConflictError:
                told[number] = "conflict"

        async with make_log(place, ids=CountingIds()) as log:
            await log.append(started(), CALLER)
            async with anyio.create_task_group() as group:
                seen: dict[int, int] = {}
                for number, places in enumerate(plan):
                    events = []
                    for stream, step in places:
                        seen[stream] = max(seen.get(stream, 0) + step, 0)
                        events.append(NewEvent(StreamId(f"stream-{stream}"), seen[stream], CounterIncreased()))
                    group.start_soon(append, number, tuple(events))
            return told, (await log.head())[1]

    file = anyio.run(outcomes, tmp_path_factory.mktemp("log") / "log.db")
    assert anyio.run(outcomes, postgres.new_log()) == file


@pytest.mark.parametrize("statement", [
    "UPDATE events SET topic = 'x' WHERE position = 1", "DELETE FROM events WHERE position = 5", "TRUNCATE events",
])
async def test_the_tables_refuse_to_change_or_drop_an_event(
    postgres: PostgresServer, place: PostgresAddress, statement: str
) -> None:
    await fill(place)
    with pytest.raises(AssertionError, match="append-only"):
        execute(postgres, place, statement)
    with LogReader(place, CATALOGUE) as reader:
        assert len(list(reader.raw_rows())) == 5


@pytest.mark.parametrize(("statement", "position"), [
    ("UPDATE events SET state = state || 'x'::bytea WHERE position = 3", 3),
    ("DELETE FROM events WHERE position = 2", 2),
    ("UPDATE events SET hash = sha256('x') WHERE position = 4", 4),
])
async def test_a_tampered_row_is_named_by_its_position(
    postgres: PostgresServer, place: PostgresAddress, statement: str, position: int
) -> None:
    await fill(place)
    tamper(postgres, place, statement)
    with LogReader(place, CATALOGUE) as reader:
        assert next(reader.find_breaks()).position == position
        assert list(reader.damage()) == ["the trigger that refuses to change or remove events is off or gone"]


async def test_an_end_that_was_cut_off_differs_from_the_head_on_record(
    postgres: PostgresServer, place: PostgresAddress
) -> None:
    await fill(place)
    with LogReader(place, CATALOGUE) as reader:
        assert list(reader.damage()) == []
    tamper(postgres, place, "DELETE FROM events WHERE position = 5", "ALTER TABLE events ENABLE TRIGGER ALL")
    with LogReader(place, CATALOGUE) as reader:
        assert list(reader.find_breaks()) == []
        assert list(reader.damage()) == ["the newest event is 4, but the head on record is 5"]


def test_the_tables_are_made_once_however_many_make_them(postgres: PostgresServer) -> None:
    address = postgres.new_schema()
    together = threading.Barrier(8)

    def make() -> bool:
        together.wait()
        return make_tables(address)

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _number: make(), range(8)))
    assert sorted(made) == [False] * 7 + [True]


async def test_a_log_that_was_not_made_is_missing(postgres: PostgresServer) -> None:
    address = postgres.new_schema()
    with pytest.raises(LogMissingError, match="no event log"):
        async with make_log(address):
            pass
    with pytest.raises(LogMissingError, match="no event log"):
        LogReader(address, CATALOGUE)


async def test_a_newer_format_and_another_program_s_tables_are_refused(
    postgres: PostgresServer, place: PostgresAddress
) -> None:
    execute(postgres, place, "UPDATE log_format SET format = 99")
    with pytest.raises(LogFormatError, match="format 99"):
        async with make_log(place):
            pass
    with pytest.raises(LogFormatError, match="format 99"):
        make_tables(place)
    foreign = postgres.new_schema()
    execute(postgres, foreign, "CREATE TABLE events (id integer)")
    with pytest.raises(LogFormatError, match="other things"):
        make_tables(foreign)


async def test_a_server_that_may_lose_commits_is_refused(postgres: PostgresServer, place: PostgresAddress) -> None:
    postgres.configure("full_page_writes", "off")
    try:
        with pytest.raises(StoreUnavailableError, match="full_page_writes is off"):
            await make_log(place).open()
    finally:
        postgres.configure("full_page_writes", None)


async def test_a_commit_is_on_disk_whatever_the_user_s_sessions_do(
    postgres: PostgresServer, place: PostgresAddress
) -> None:
    async with make_log(PostgresAddress(place.url + "&synchronous_commit=off")) as log:
        await log.append(started(), CALLER)
        assert log._writer is not None
        link = log._writer._committer._open(0)  # type: ignore[attr-defined]
        assert link.execute("SHOW synchronous_commit").fetchone() == ("on",)


async def test_what_cannot_be_reached_says_so_without_its_password() -> None:
    address = PostgresAddress("postgresql://me:s3cret@127.0.0.1:1/postgres")
    with pytest.raises(StoreUnavailableError, match="can't be opened") as caught:
        async with make_log(address):
            pass
    assert "s3cret" not in str(caught.value)
    assert "postgresql://me@127.0.0.1:1/postgres" in str(caught.value)


async def test_the_open_index_is_compared_with_the_log_and_made_anew(
    postgres: PostgresServer, place: PostgresAddress
) -> None:
    await fill(place)
    execute(postgres, place,
            f"DELETE FROM open_items WHERE stream_id = '{operation(2)}'",
            f"INSERT INTO open_items VALUES ('{operation(1)}', 'operation', NULL, '{ME}', 2)",
            f"UPDATE open_items SET position = 1 WHERE stream_id = '{operation(3)}'")
    async with make_log(place) as log:
        wrong = await log.compare_open_index()
        assert [(difference.stored is None, difference.folded is None) for difference in wrong] == [
            (False, True), (True, False), (False, False)]
        assert await log.reindex() == wrong
        assert await log.compare_open_index() == []
        await log.append(finished(2), CALLER)


async def test_a_log_locked_for_long_refuses_and_then_works_again(place: PostgresAddress) -> None:
    async with make_log(place, lock_timeout_seconds=0.3) as log, make_log(place, instance_id=OTHER) as other:
        await log.append(started(), CALLER)
        await other.append(started(OTHER), CALLER)
        release = threading.Event()
        locked = threading.Event()

        def hold(_connection: object) -> None:
            locked.set()
            release.wait()

        async with anyio.create_task_group() as group:
            assert other._writer is not None
            group.start_soon(anyio.to_thread.run_sync, other._writer.run_alone, hold)
            await anyio.to_thread.run_sync(locked.wait)
            try:
                with pytest.raises(StoreUnavailableError, match=r"locked by another process.*nothing was stored"):
                    await log.append(minted(1), CALLER)
            finally:
                release.set()
        await log.append(minted(1), CALLER)
        assert (await log.head())[0] == 3


async def test_a_session_that_was_replaced_stores_nothing_and_is_opened_anew(
    postgres: PostgresServer, place: PostgresAddress
) -> None:
    async with make_log(place) as log:
        await log.append(started(), CALLER)
        execute(postgres, place, "DELETE FROM writer_sessions")
        await log.append(minted(1), CALLER)
        assert [event.position async for event in log.read_log()] == [1, 2]
    assert execute(postgres, place, "SELECT count(*) FROM writer_sessions") == ["0"]


async def test_sessions_ended_by_the_operator_cost_nothing_but_time(
    postgres: PostgresServer, place: PostgresAddress
) -> None:
    async with make_log(place) as log, aclosing(log.follow()) as followed:
        await log.append(started(), CALLER)
        assert (await anext(followed)).position == 1
        for number in range(1, 6):
            postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                           "WHERE application_name = 'codespace-es'")
            await log.append(minted(number), CALLER)
            assert len(await log.read_stream(operation(number))) == 1
            assert (await anext(followed)).position == number + 1  # a live timeline goes on as well
        assert (await log.head())[0] == 6


async def test_one_value_that_the_database_refuses_leaves_the_other_appends_of_its_batch_alone(
    place: PostgresAddress,
) -> None:
    async with make_log(place) as log:
        await log.append(started(), CALLER)
        outcomes: list[str] = []

        async def append(name: str) -> None:
            try:
                await log.append(increased(name, 1), CALLER)
                outcomes.append("stored")
            except StoreUnavailableError as error:
                outcomes.append(str(error).rpartition("; ")[2])

        async with anyio.create_task_group() as group:
            for name in ("one", "with\0a zero", "two"):
                group.start_soon(append, name)
        assert sorted(outcomes) == ["nothing was stored", "stored", "stored"]
        await log.append(Append((NewEvent(StreamId("three"), 1, FromTheFuture()),)), CALLER)
        assert (await log.head())[0] == 4


SIZES = (1, 0, 200_000, 100_000, 40_000, 600_000, 2, 3, 4, 262_144, 262_145)


async def test_contents_come_in_answers_that_are_few_and_small(place: PostgresAddress) -> None:
    async with make_log(place) as log:
        await log.append(started(), CALLER)
        for number, size in enumerate(SIZES):
            await log.append(minted(number, bodies=(NewBody(operation(number), "image", b"x" * size),)), CALLER)
        many = tuple(NewBody(operation(99), "image", b"%d" % number) for number in range(1_500))
        await log.append(minted(99, bodies=many), CALLER)

    answers: list[list[int]] = []

    class Watched(ReadingLink):
        def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> FoundRows:
            rows = super().execute(statement, parameters).fetchall()
            if rows and len(rows[0]) == 6:
                answers.append([len(row[2]) for row in rows])
            return FoundRows(rows)

    link = Watched(place)
    told = [len(content[2]) for content in bodies.scan(link)]
    link.close()
    assert told[:len(SIZES)] == list(SIZES)
    assert len(told) == len(SIZES) + 1_500
    assert list(chain(*answers)) == told
    assert all(len(answer) == 1 or sum(answer) <= 262_144 for answer in answers)
    assert len(answers) < 12


async def test_two_long_reads_at_once_see_one_moment(place: PostgresAddress) -> None:
    await fill(place, 5)
    with LogReader(place, CATALOGUE) as reader:
        first, second = reader.stored_contents(), reader.stored_contents()
        heads = [next(first)[0], next(second)[0]]
        async with make_log(place, instance_id=OTHER) as log:
            await log.append(started(OTHER), CALLER)
            await log.append(minted(7, bodies=(NewBody(operation(7), "request", b"later"),)), CALLER)
        assert len(list(first)) == len(list(second)) == 4
        assert heads == [operation(1)] * 2
        assert reader.head()[0] == 9, "the moment is over with the last of them"
        assert len(list(reader.stored_contents())) == 6
        given_up = reader.stored_contents()
        next(given_up)
    given_up.close()


async def test_a_name_that_no_text_can_be_disturbs_no_long_read(place: PostgresAddress) -> None:
    await fill(place)
    with LogReader(place, CATALOGUE) as reader:
        contents = reader.stored_contents()
        next(contents)
        for name in ("op-\0", "op-\udcff"):
            assert reader.read_stream(StreamId(name)) == []
            assert reader.read_body(StreamId(name), "sha256:" + "0" * 64) is None
        assert len(list(contents)) == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a connection that is just being made
def test_an_interrupt_during_any_wait_ends_a_long_read(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C does: where a thread waits for another there is nobody else to wake it."""
    place = postgres.new_log()
    anyio.run(fill, place)
    wait = threading.Condition.wait
    left = 0

    def interrupted(condition: threading.Condition, timeout: float | None = None) -> bool:
        nonlocal left
        if threading.current_thread() is threading.main_thread():
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return wait(condition, timeout)

    monkeypatch.setattr(threading.Condition, "wait", interrupted)
    for number in range(1, 100):
        left = number
        try:
            with LogReader(place, CATALOGUE) as reader:
                assert len(list(zip(reader.read_log(), reader.stored_contents(), strict=False))) == 3
        except KeyboardInterrupt:
            continue
        break
    assert 6 < number < 99
    gc.collect()
