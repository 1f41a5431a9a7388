"""`verify` finds steering that no rule would have allowed: an intent is claimed once between two releases (law 7)."""

import anyio
import pytest
from tampering import Tamperer

from adapters.log.reader import LogReader
from codespace_es.aggregates.steering.events import IntentClaimed, IntentReleased, WorkClosed
from codespace_es.command_handlers import inbox, steering
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.identifiers import IntentId, StreamId, WorkId, steering_stream
from replay.finding import Law
from replay.verify import verify
from support.holds import ask
from support.server import Server


@pytest.fixture
def story(tmp_path):
    """A work with one claimed intent: its log, stream and ids."""

    async def live():
        (tmp_path / "ws").mkdir()
        async with Server(tmp_path, {"ws": tmp_path / "ws"}) as server:
            work_id = (await ask(server, steering.OpenWorkCommand(workspace_id="ws")))["work_id"]
            written = await ask(server, inbox.WriteIntent(work_id=work_id, body="x", delivery="next_checkpoint"), "cli")
            intent_id = written["intent_id"]
            await ask(server, inbox.QueueIntentCommand(intent_id=intent_id, revision=1), "cli")
            await ask(server, steering.ClaimNextCommand(work_id=work_id))
            return steering_stream(server.world.workspaces["ws"].key), WorkId(work_id), IntentId(intent_id)

    return tmp_path / "data" / "codespace.db", *anyio.run(live)


def places(path):
    with LogReader(path, CATALOGUE) as reader:
        return {finding.law: finding.position for finding in verify(reader).findings}


def forge(path, stream_id: StreamId, *events) -> list[int]:
    """Append events to a stream, each with the envelope of its first; return their positions."""
    with Tamperer(path) as tamperer:
        rows = tamperer.execute("SELECT position, version FROM events WHERE stream_id = ? ORDER BY version", stream_id)
        return [
            tamperer.append(stream_id, rows[-1][1] + number, event, like=rows[0][0])
            for number, event in enumerate(events, start=1)
        ]


def test_an_intent_that_is_claimed_twice_is_found(story):
    path, stream_id, _, intent_id = story
    position, = forge(path, stream_id, IntentClaimed(intent_id=intent_id))
    assert places(path)[Law.FOLDS] == position


def test_a_work_that_was_closed_with_a_claimed_intent_detached_is_found(story):
    path, stream_id, work_id, intent_id = story
    position, = forge(path, stream_id, WorkClosed(work_id=work_id, detached=(intent_id,)))
    assert places(path)[Law.FOLDS] == position


def test_a_claim_after_a_release_can_follow(story):
    path, stream_id, _, intent_id = story
    forge(path, stream_id, IntentReleased(intent_id=intent_id), IntentClaimed(intent_id=intent_id))
    assert Law.FOLDS not in places(path)
