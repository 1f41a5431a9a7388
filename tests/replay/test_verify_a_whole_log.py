"""`verify` has nothing to say of a log that only this product has written, wherever and whenever it is read."""

from functools import partial
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from scripted_log import open_server

from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import StreamId
from replay.attended import Attended
from replay.finding import Findings
from replay.memory import DECIDERS, Memory, SeenAppend
from replay.naming import KIND_OF_FIELD, body_fields
from replay.verify import Anchor, VerifyReport, verify

pytestmark = pytest.mark.anyio


def read(path: Path, **options) -> VerifyReport:
    with LogReader(path, CATALOGUE) as reader:
        return verify(reader, **options)


def test_a_log_with_every_kind_of_event_keeps_every_law(life):
    report = read(life.path)
    assert report.findings == ()
    assert report.is_ok
    assert (report.events, report.head_position, report.open_items) == (30, 30, 2)
    assert report.bodies > 0
    with LogReader(life.path, CATALOGUE) as reader:
        assert report.head_hash == reader.head()[1].hex()


def test_an_empty_log_keeps_every_law(tmp_path):
    async def make() -> None:
        async with open_server(tmp_path / "log.db"):
            pass

    anyio.run(make)
    report = read(tmp_path / "log.db")
    assert (report.is_ok, report.events, report.head_hash) == (True, 0, "00" * 32)


def test_a_head_written_down_earlier_is_found_again(life):
    with LogReader(life.path, CATALOGUE) as reader:
        earlier = next(row for row in reader.raw_rows() if row[0] == 12)
    assert read(life.path, anchor=Anchor(12, earlier[5].hex())).is_ok


def test_a_log_without_its_directory_being_writable_is_verified(life):
    life.path.chmod(0o400)
    life.path.parent.chmod(0o500)
    try:
        assert read(life.path).is_ok
    finally:
        life.path.parent.chmod(0o700)


async def test_a_log_is_verified_while_a_server_writes_it(tmp_path):
    path = tmp_path / "log.db"
    async with open_server(path) as server:
        await server.start()
        await server.apply({"first.txt": (None, b"first")}, key="first")
        reports: list[VerifyReport] = []
        is_read = anyio.Event()

        async def write() -> None:
            number = 0
            while not is_read.is_set():
                number += 1
                await server.apply({f"{number}.txt": (None, b"%d" % number)}, key=f"key-{number}")

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                while len(reports) < 5 or reports[-1].events == reports[0].events:
                    reports.append(await anyio.to_thread.run_sync(read, path))
                is_read.set()
        assert {report.findings for report in reports} == {()}
        assert reports[-1].events > reports[0].events


@pytest.mark.parametrize("kind", ["file", "memory", "postgres"])
async def test_what_is_removed_while_a_log_is_verified_is_not_missed(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
):
    """Holds that end take their arguments away, and `prune` takes what is old."""
    place: LogPlace | None = None if kind == "memory" else tmp_path / "log.db"
    if kind == "postgres":
        place = request.getfixturevalue("postgres").new_log()
    async with open_server(place) as server:
        await server.start()
        operation = StreamId(await server.apply({"a.txt": (None, b"one\n")}))
        looks: list[int] = []

        def remove_once(position: int) -> None:
            looks.append(position)
            if len(looks) == 1:
                anyio.from_thread.run(partial(
                    server.remove_bodies, [(operation, digest_of(b"one\n"))], total_bytes=4))

        def verified() -> VerifyReport:
            with server.log.open_reader() as reader:
                return verify(Attended(reader, remove_once))

        before = await anyio.to_thread.run_sync(verified)
        after = await anyio.to_thread.run_sync(verified)
    assert (before.findings, after.findings) == ((), ())
    assert (after.events - before.events, after.bodies - before.bodies) == (1, 0)  # one less, and the list of it


def test_only_what_is_open_is_remembered(life):
    with LogReader(life.path, CATALOGUE) as reader:
        memory = Memory(reader, Findings())
        for recorded in reader.read_log():
            seen = memory.fold(recorded, recorded.envelope)
            assert seen is not None
            memory.forget(SeenAppend(recorded.envelope, (seen,), is_whole=True))
            store_and_workspace = 2
            assert memory.stream_count <= len(memory.open) + store_and_workspace
        assert {stream_id for stream_id, _ in memory.open} == {item.stream_id for item in reader.open_items()}


def test_every_kind_of_stream_in_the_catalogue_can_be_folded():
    kinds = {"instance": "inst", "workspace": "wsp", "operation": "op", "approval": "appr", "process": "proc",
             "pending": "pend", "steering": "steer"}
    named = {topic.partition(".")[0] for topic in CATALOGUE}
    begun = {kinds.get(kind, kind) for kind in named} | {"act"}  # an action's place is a stream of its own
    assert begun == set(DECIDERS), "add the stream's decider to replay.memory"


def test_every_content_that_an_event_can_name_has_its_kind():
    fields = {inner or name for event in CATALOGUE.values() for name, inner in body_fields(event)}
    assert fields == set(KIND_OF_FIELD), "say in replay.naming as what kind it is stored"
