"""What an audit reads grows no faster than the log: no stream is read again for each event, or content, of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay import memory, stored_contents
from replay.verify import verify
from support.holds import addition, create, deny
from support.pending import push_edits, resolve
from support.server import Server

pytestmark = pytest.mark.anyio

ROUNDS = 60


class CountingReader(LogReader):
    """Counts the events of streams that were read by themselves, beside the walk."""

    read_again = 0

    def walk_stream(self, stream_id: StreamId, *, after: int = 0) -> Iterator[RecordedEvent]:
        for recorded in super().walk_stream(stream_id, after=after):
            self.read_again += 1
            yield recorded


async def test_stacks_that_empty_and_holds_that_are_scrubbed_have_nothing_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes are previewed again and again, so their content is named often and stored once."""
    for name, size in (("_AHEAD_ROWS_MAX", 8), ("_WAITING_TAKES_MAX", 32)):
        assert getattr(stored_contents, name) > size
        monkeypatch.setattr(stored_contents, name, size)
    root = tmp_path / "ws"
    root.mkdir()
    async with Server(tmp_path, {"demo": root}) as server:
        for number in range(ROUNDS):
            pushed = await push_edits(server, root, {"same.txt": b"same\n"})
            await resolve(server, "discard", id=pushed.action_id)
            held = await create(server, addition(f"{number}.txt"))
            await deny(server, str(held["approval_id"]))
    with CountingReader(tmp_path / "data" / "codespace.db", CATALOGUE) as reader:
        report = verify(reader)
    assert report.findings == ()
    assert reader.read_again < report.events


async def test_a_claim_and_a_stack_that_come_again_and_again_are_known_by_their_last_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request is held and denied over and over, and one stack fills and empties, more of them than may rest."""
    monkeypatch.setattr(memory, "_RESTING_MAX", 0)
    root = tmp_path / "ws"
    root.mkdir()
    async with Server(tmp_path, {"demo": root}) as server:
        for number in range(ROUNDS):
            held = await create(server, addition("same.txt"))
            await deny(server, str(held["approval_id"]))
            pushed = await push_edits(server, root, {f"{number}.txt": b"new\n"})
            await resolve(server, "discard", id=pushed.action_id)
    with CountingReader(tmp_path / "data" / "codespace.db", CATALOGUE) as reader:
        report = verify(reader)
        claims = list(reader.walk_stream(reader.streams_beginning("claim-")[0]))
    assert len(claims) == 2 * ROUNDS
    assert report.findings == ()
    assert 2 * ROUNDS <= reader.read_again - len(claims) <= 4 * ROUNDS
