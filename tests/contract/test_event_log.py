"""Every guarantee and error of the `EventLog` port, on each adapter."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.log.event_log import StoredEventLog
from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.log import (
    Append,
    InstanceClosedError,
    NewBody,
    NewEvent,
    OpenItem,
    StoreUnavailableError,
    UnknownTopicError,
    VersionConflictError,
)
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId, StreamId, WorkspaceKey
from codespace_es.vocabulary.limits import LARGE_BODY_BYTES
from unit.log.sample_events import (
    CALLER,
    CATALOGUE,
    ME,
    OTHER,
    WORKSPACE,
    CounterIncreased,
    FromTheFuture,
    InstanceRecovered,
    InstanceStarted,
    OperationMinted,
    finished,
    increased,
    make_log,
    minted,
    operation,
    started,
)

pytestmark = pytest.mark.anyio

OpenLog = Callable[..., Any]


@pytest.fixture(params=["file", "memory", "postgres"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> OpenLog:
    """Return what opens a log of this adapter, with its instance started. A further adapter is a further parameter."""
    numbers = iter(range(1000))

    @asynccontextmanager
    async def open_(*, is_started: bool = True, **options: Any) -> AsyncIterator[StoredEventLog]:
        place: LogPlace | None = None
        if request.param == "file":
            place = tmp_path / f"{next(numbers)}" / "log.db"
        elif request.param == "postgres":
            place = request.getfixturevalue("postgres").new_log()
        async with make_log(place, **options) as log:
            if is_started:
                await log.append(started(), CALLER)
            yield log

    return open_


@asynccontextmanager
async def at_most_five_seconds() -> AsyncIterator[None]:
    with anyio.fail_after(5):
        yield


async def test_a_receipt_names_the_positions_and_the_append(open_log: OpenLog) -> None:
    async with open_log() as log:
        receipt = await log.append(Append((*minted(1).events, *finished(1).events)), CALLER)
        events = await log.read_stream(operation(1))
        assert (receipt.first_position, receipt.last_position) == (2, 3)
        assert [event.position for event in events] == [2, 3]
        assert {event.envelope.append_id for event in events} == {receipt.append_id}


async def test_what_was_appended_is_read_back_with_its_envelope(open_log: OpenLog) -> None:
    async with open_log() as log:
        await log.append(minted(1, text="é\n☃ \\u0000"), Caller("cli", RequestId("req-x"), "a\ud800b"))
        (recorded,) = await log.read_stream(operation(1))
        assert recorded.event == OperationMinted(text="é\n☃ \\u0000")
        assert (recorded.stream_id, recorded.version, recorded.topic) == (operation(1), 1, "operation.minted.v1")
        envelope = recorded.envelope
        assert (envelope.instance_id, envelope.request_id, envelope.channel) == (ME, "req-x", "cli")
        assert envelope.client == "a\\ud800b"
        assert envelope.recorded_at.isoformat() == "2026-01-02T03:04:05.680000+00:00"


async def test_a_second_append_at_the_same_version_conflicts_and_stores_nothing(open_log: OpenLog) -> None:
    async with open_log() as log:
        await log.append(minted(1), CALLER)
        body = NewBody(operation(2), "request", b"never stored")
        with pytest.raises(VersionConflictError):
            await log.append(Append((*minted(2).events, *minted(1).events), (body,)), CALLER)
        assert await log.head() == ((await log.read_stream(operation(1)))[0].position, (await log.head())[1])
        assert await log.read_stream(operation(2)) == []
        assert await log.read_body(operation(2), body.body.digest) is None
        assert [item.stream_id for item in await log.open_items(kind="operation")] == [operation(1)]


@pytest.mark.parametrize("version", [0, 2, 7])
async def test_a_version_that_would_leave_a_gap_conflicts(open_log: OpenLog, version: int) -> None:
    async with open_log() as log:
        with pytest.raises(VersionConflictError):
            await log.append(increased("counter", version), CALLER)
        assert (await log.head())[0] == 1


async def test_a_conflict_leaves_the_other_appends_of_its_batch_alone(open_log: OpenLog) -> None:
    async with open_log() as log:
        outcomes: list[str] = []

        async def append(number: int) -> None:
            try:
                await log.append(increased(f"stream-{number // 2}", 1), CALLER)
                outcomes.append("stored")
            except VersionConflictError:
                outcomes.append("conflict")

        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(append, number)
        assert sorted(outcomes) == ["conflict"] * 20 + ["stored"] * 20
        assert [event.position async for event in log.read_log()] == list(range(1, 22))


async def test_an_empty_append_is_a_mistake(open_log: OpenLog) -> None:
    async with open_log() as log:
        with pytest.raises(ValueError, match="needs an event"):
            await log.append(Append(()), CALLER)


async def test_an_instance_appends_only_after_it_has_started(open_log: OpenLog) -> None:
    async with open_log(is_started=False) as log:
        with pytest.raises(InstanceClosedError):
            await log.append(minted(1), CALLER)
        assert await log.head() == (0, bytes(32))
        await log.append(Append((*started().events, *minted(1).events)), CALLER)
        await log.append(finished(1), CALLER)
        assert (await log.head())[0] == 3


async def test_a_recovered_instance_never_appends_again(open_log: OpenLog) -> None:
    async with open_log() as log:
        await log.append(Append((NewEvent(StreamId(ME), 2, InstanceRecovered()),)), CALLER)
        with pytest.raises(InstanceClosedError):
            await log.append(minted(1), CALLER)
        with pytest.raises(VersionConflictError):
            await log.append(started(), CALLER)
        assert (await log.head())[0] == 2


async def test_recovering_another_instance_leaves_this_one_open(open_log: OpenLog) -> None:
    async with open_log() as log:
        await log.append(Append((NewEvent(StreamId(OTHER), 1, InstanceStarted()),)), CALLER)
        await log.append(Append((NewEvent(StreamId(OTHER), 2, InstanceRecovered()),)), CALLER)
        await log.append(minted(1), CALLER)
        assert [item.stream_id for item in await log.open_items(kind="instance")] == [ME]


async def test_the_open_index_follows_the_events(open_log: OpenLog) -> None:
    async with open_log() as log:
        await log.append(minted(1), CALLER)
        await log.append(minted(2), CALLER)
        await log.append(finished(1), CALLER)
        two = OpenItem(operation(2), "operation", WORKSPACE, ME, 3)
        assert await log.open_items() == [OpenItem(StreamId(ME), "instance", None, ME, 1), two]
        assert await log.open_items(kind="operation", workspace_key=WORKSPACE, instance_id=ME) == [two]
        assert await log.open_items(instance_id=OTHER) == []
        other = WorkspaceKey("wsp-other")
        assert await log.open_items(workspace_key=(other, WORKSPACE)) == [two]
        assert await log.open_items(workspace_key=(other,)) == await log.open_items(workspace_key=()) == []
        assert await log.open_items(kind=("operation", "instance")) == await log.open_items()
        assert await log.open_items(limit=1) == (await log.open_items())[:1]
        assert await log.open_items(kind="operation", limit=5) == [two]
        assert await log.compare_open_index() == []


async def test_a_stream_with_an_unknown_topic_is_unreadable_alone(open_log: OpenLog) -> None:
    async with open_log() as log:
        await log.append(minted(1), CALLER)
        await log.append(Append((NewEvent(operation(2), 1, FromTheFuture()),)), CALLER)
        with pytest.raises(UnknownTopicError, match=r"future\.arrived\.v9"):
            await log.read_stream(operation(2))
        with pytest.raises(UnknownTopicError):
            [event async for event in log.read_log()]
        assert len(await log.read_stream(operation(1))) == 1
        await log.append(finished(1), CALLER)
        assert await log.compare_open_index() == []


async def test_a_body_is_stored_with_its_event_for_its_stream(open_log: OpenLog) -> None:
    async with open_log() as log:
        body = NewBody(operation(1), "image", b"\0bytes")
        await log.append(minted(1, bodies=(body, body)), CALLER)
        assert await log.read_body(operation(1), body.body.digest) == b"\0bytes"
        assert await log.read_body(operation(2), body.body.digest) is None
        with log.open_reader() as reader:
            (stored,) = reader.stored_bodies()
        assert (stored.stream_id, stored.digest, stored.kind, stored.size_bytes) == (
            operation(1), body.body.digest, "image", 6)


async def test_whoever_looks_at_the_log_reads_on_while_it_is_written(open_log: OpenLog) -> None:
    async with open_log() as log:
        body = NewBody(operation(1), "image", b"bytes")
        await log.append(minted(1, bodies=(body,)), CALLER)
        with log.open_reader() as reader:
            events, contents = reader.read_log(), reader.stored_contents()
            first, content = next(events), next(contents)
            await log.append(minted(2, bodies=(NewBody(operation(2), "image", b"more"),)), CALLER)
            await log.append(finished(2), CALLER)
            with pytest.raises(VersionConflictError):  # what is rolled back ends nobody's reading
                await log.append(minted(2), CALLER)
            assert [first.position, *(each.position for each in events)] == [1, 2]
            assert bytes(content[2]) == b"bytes"
            assert list(contents) == []  # as of the moment of the first
            assert reader.open_items_at_head() == (4, await log.open_items())
            assert [each.position for each in reader.read_log()] == [1, 2, 3, 4]
            assert list(reader.find_breaks()) == []
            assert list(reader.damage()) == []


async def test_whoever_keeps_a_moment_sees_nothing_of_what_is_written_or_removed_meanwhile(open_log: OpenLog) -> None:
    async with open_log() as log:
        body = NewBody(operation(1), "arguments", b"secret")
        await log.append(minted(1, bodies=(body,)), CALLER)
        with log.open_reader() as reader:
            def told() -> tuple[object, ...]:
                return (reader.head(), len(list(reader.read_log())), reader.read_body(operation(1), body.body.digest),
                        len(list(reader.stored_contents())), reader.open_items_at_head(), list(reader.damage()))

            with reader.moment():
                before = told()
                await log.append(Append(finished(1).events, scrubbed=((body.body.digest, operation(1)),)), CALLER)
                await log.append(minted(2), CALLER)
                with reader.moment():  # inside another one it is that one's
                    assert told() == before
                assert told() == before
            assert told() == ((4, (await log.head())[1]), 4, None, 0, (4, await log.open_items()), [])


async def test_scrubbing_removes_the_bytes_of_one_stream(open_log: OpenLog) -> None:
    async with open_log() as log:
        first, second = (NewBody(operation(number), "arguments", b"secret") for number in (1, 2))
        await log.append(minted(1, bodies=(first,)), CALLER)
        await log.append(minted(2, bodies=(second,)), CALLER)
        await log.append(Append(finished(1).events, scrubbed=((first.body.digest, operation(1)),)), CALLER)
        assert await log.read_body(operation(1), first.body.digest) is None
        assert await log.read_body(operation(2), second.body.digest) == b"secret"


async def test_large_bodies_are_there_when_the_append_returns(open_log: OpenLog) -> None:
    async with open_log() as log:
        images = tuple(NewBody(operation(1), "image", os.urandom(LARGE_BODY_BYTES + size)) for size in (1, 2, 3))
        async with anyio.create_task_group() as group:
            group.start_soon(log.append, minted(1, bodies=images), CALLER)
            for number in range(2, 20):
                group.start_soon(log.append, minted(number), CALLER)
        for image in images:
            assert await log.read_body(operation(1), image.body.digest) == image.content
        assert (await log.head())[0] == 20


async def test_reading_the_log_goes_on_after_a_position_and_up_to_a_limit(open_log: OpenLog) -> None:
    async with open_log() as log:
        events = tuple(NewEvent(StreamId("counter"), version, CounterIncreased()) for version in range(1, 701))
        await log.append(Append(events), CALLER)
        assert [event.position async for event in log.read_log()] == list(range(1, 702))
        assert [event.position async for event in log.read_log(after=300, limit=300)] == list(range(301, 601))
        assert [event.position async for event in log.read_log(after=701)] == []


async def test_a_cancelled_caller_leaves_all_of_its_append(open_log: OpenLog) -> None:
    async with open_log() as log:
        with anyio.CancelScope() as scope:
            scope.cancel()
            receipt = await log.append(minted(1), CALLER)
            assert receipt.first_position == 2
            await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert len(await log.read_stream(operation(1))) == 1


async def test_a_follower_sees_what_is_there_and_what_comes(open_log: OpenLog) -> None:
    async with open_log() as log, at_most_five_seconds():
        await log.append(minted(1), CALLER)
        seen: list[int] = []

        async def follow() -> None:
            async for event in log.follow(after=1):
                seen.append(event.position)
                if len(seen) == 101:
                    return

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            group.start_soon(follow_until, log, 102)
            for number in range(2, 102):
                await log.append(minted(number), CALLER)
        assert seen == list(range(2, 103))


async def follow_until(log: StoredEventLog, position: int) -> None:
    """A second follower, from the beginning: it must see the last one too, or the test hangs into its limit."""
    async for event in log.follow():
        if event.position == position:
            return


async def test_a_closed_log_refuses_and_closes_twice(open_log: OpenLog) -> None:
    async with open_log() as log:
        await log.aclose()
        with pytest.raises(StoreUnavailableError, match="nothing was stored"):
            await log.append(minted(1), CALLER)
        with pytest.raises(StoreUnavailableError):
            await log.read_stream(operation(1))
        await log.aclose()


@pytest.mark.parametrize("point", [FaultPoint.APPEND_BEGIN, FaultPoint.APPEND_IN_TRANSACTION])
async def test_a_failure_before_the_commit_stores_nothing_and_the_next_append_works(
    open_log: OpenLog, point: FaultPoint
) -> None:
    armed: list[FaultPoint] = []

    def fail(at: FaultPoint) -> None:
        if at in armed:
            armed.remove(at)
            raise RuntimeError("planted")

    async with open_log(faults=fail) as log:
        armed.append(point)
        with pytest.raises(StoreUnavailableError, match="nothing was stored"):
            await log.append(minted(1), CALLER)
        assert (await log.head())[0] == 1
        receipt = await log.append(minted(1), CALLER)
        assert receipt.first_position == 2, "what was rolled back left a gap"
        assert (await log.head())[0] == 2
        assert log.failure is None


async def test_an_append_whose_commit_was_not_answered_is_found_by_its_own_mark(open_log: OpenLog) -> None:
    armed: list[FaultPoint] = []

    def fail(at: FaultPoint) -> None:
        if at in armed:
            armed.remove(at)
            raise RuntimeError("planted")

    async with open_log(faults=fail) as log:
        armed.append(FaultPoint.APPEND_COMMITTED)
        receipt = await log.append(minted(1), CALLER)
        (recorded,) = await log.read_stream(operation(1))
        assert recorded.envelope.append_id == receipt.append_id
        await log.append(finished(1), CALLER)


@pytest.mark.parametrize("point", [FaultPoint.APPEND_BEGIN, FaultPoint.APPEND_IN_TRANSACTION])
async def test_after_an_io_error_nothing_is_acknowledged_any_more(open_log: OpenLog, point: FaultPoint) -> None:
    armed: list[FaultPoint] = []
    reasons: list[str] = []
    told = anyio.Event()

    def fail(at: FaultPoint) -> None:
        if at in armed:
            raise OSError(5, "Input/output error")

    def on_failure(reason: str) -> None:
        reasons.append(reason)
        told.set()

    async with open_log(faults=fail, on_failure=on_failure) as log, at_most_five_seconds():
        armed.append(point)
        with pytest.raises(StoreUnavailableError):
            await log.append(minted(1), CALLER)
        armed.clear()
        await told.wait()
        with pytest.raises(StoreUnavailableError, match="Input/output error"):
            await log.append(minted(2), CALLER)
        assert reasons == [log.failure]
        assert (await log.head())[0] == 1


@given(plan=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=40))
async def test_concurrent_appends_leave_gapless_positions_versions_and_an_unbroken_chain(
    tmp_path_factory: pytest.TempPathFactory, plan: list[list[int]]
) -> None:
    """Each append goes one further on some streams than its caller saw; whoever is late conflicts, nobody tears."""
    path = tmp_path_factory.mktemp("log") / "log.db"
    async with make_log(path) as log:
        await log.append(started(), CALLER)
        stored: list[list[tuple[str, int]]] = []

        async def append(streams: list[int]) -> None:
            events: list[NewEvent] = []
            for stream in streams:
                stream_id = StreamId(f"stream-{stream}")
                version = len(await log.read_stream(stream_id)) + 1
                version += sum(event.stream_id == stream_id for event in events)
                events.append(NewEvent(stream_id, version, CounterIncreased()))
            try:
                await log.append(Append(tuple(events)), CALLER)
            except VersionConflictError:
                return
            stored.append([(event.stream_id, event.version) for event in events])

        async with anyio.create_task_group() as group:
            for streams in plan:
                group.start_soon(append, streams)

        found = [(event.stream_id, event.version) async for event in log.read_log()]
        assert sorted(found[1:]) == sorted(place for places in stored for place in places)
        for stream in range(5):
            versions = [version for stream_id, version in found if stream_id == f"stream-{stream}"]
            assert versions == list(range(1, len(versions) + 1))
        assert [event.position async for event in log.read_log()] == list(range(1, len(found) + 1))
        assert stored
        with LogReader(path, CATALOGUE) as reader:
            assert list(reader.find_breaks()) == []


@pytest.mark.parametrize("name", ["op-\0", "op-\udcff", "", "op-\u00e9", "%"])
async def test_whatever_name_is_asked_for_it_is_only_not_there(open_log: OpenLog, name: str) -> None:
    async with open_log() as log:
        assert await log.read_stream(StreamId(name)) == []
        assert await log.read_stream(StreamId(name), since=1) == []
        assert await log.read_since_opened(StreamId(name)) == (0, [])
        assert await log.read_body(StreamId(name), "sha256:" + "0" * 64) is None
        assert await log.head() != (0, bytes(32))
