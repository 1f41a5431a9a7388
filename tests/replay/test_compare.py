"""Deciding the past again: the same where nothing has changed, and each place named where something has."""

from pathlib import Path

import anyio
import pytest
from stored_log import load
from tampering import Tamperer
from test_files_at import live

from adapters.log.reader import LogReader
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.identifiers import workspace_key
from replay.compare import Comparison, compare
from replay.deciding_again import _COMMANDS, _TIMED
from replay.deciding_stacks import COMMANDS_BY_STATE

STORED = Path(__file__).parent / "logs" / "v0.1.0"

STEPS = [
    ("add", 0, 0), ("add", 1, 0), ("update", 0, 0), ("move", 0, 2), ("update", 0, 0), ("undo", 3, 0), ("delete", 1, 0),
]


def read(path, **options) -> Comparison:
    with LogReader(path, CATALOGUE) as source:
        return compare(source, **options)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The log of a real server that patched, refused and undid."""
    scratch = tmp_path_factory.mktemp("compare")
    (root := scratch / "root").mkdir()
    anyio.run(live, scratch, root, STEPS)
    return scratch / "data" / "codespace.db"


def test_what_today_s_code_has_written_it_would_decide_again(real):
    comparison = read(real)
    assert comparison.differences == ()
    assert comparison.is_same
    assert comparison.decided == comparison.events
    assert comparison.planned == 6, "the undo as well"
    assert comparison.undecidable == {"patch: it has no patch text with a plan": 1}


def test_every_event_of_a_life_follows_from_a_command(written_life):
    comparison = read(written_life.path)
    assert comparison.decided == comparison.events == 30
    assert {each.topic for each in comparison.differences} == {"operation.minted.v1"}, "their patch texts are made up"


def test_an_event_that_would_not_be_decided_is_named(life):
    with Tamperer(life.path) as tamperer:
        state = tamperer.execute("SELECT stream_id, state FROM events WHERE topic = 'workspace.bound.v1'")[0]
        bound = WorkspaceBound.model_validate_json(state[1].partition(b"\n")[2])
        position = tamperer.append(workspace_key(bound.machine_id, bound.root), 2, bound, like=30)
    comparison = read(life.path, after=30)
    (difference,) = comparison.differences
    assert (difference.position, difference.topic) == (position, "workspace.bound.v1")
    assert difference.today == "it would be nothing"
    assert (comparison.events, comparison.is_same) == (1, False)


def test_another_umask_then_is_no_other_decision_now(real, tmp_path):
    path = tmp_path / "copy.db"
    path.write_bytes(real.read_bytes())
    with Tamperer(path) as tamperer:
        position = tamperer.execute("SELECT min(position) FROM events WHERE topic = 'operation.minted.v1'")[0][0]
        tamperer.change_state(position, lambda state: state.replace(b'"mode":420', b'"mode":384'))
        tamperer.hide()
    assert read(path).is_same


def test_what_is_not_stored_any_more_is_counted_not_judged(real, tmp_path):
    path = tmp_path / "copy.db"
    path.write_bytes(real.read_bytes())
    with Tamperer(path) as tamperer:
        tamperer.execute("DELETE FROM bodies WHERE kind = 'request'")
    comparison = read(path)
    assert comparison.is_same
    assert comparison.undecidable["patch: its patch text isn't stored"] == 5
    assert comparison.undecidable["patch: what it was asked to undo isn't stored"] == 1


def test_a_patch_whose_text_would_lead_elsewhere_is_named(real, tmp_path):
    path = tmp_path / "copy.db"
    path.write_bytes(real.read_bytes())
    with Tamperer(path) as tamperer:
        position = tamperer.execute("SELECT min(position) FROM events WHERE topic = 'operation.minted.v1'")[0][0]
        tamperer.change_state(position, lambda state: state.replace(b'"path":"a.txt"', b'"path":"z.txt"'))
        tamperer.hide()
    (difference,) = read(path).differences
    assert (difference.position, difference.today) == (position, "its plan would differ for a.txt, z.txt")


def test_every_event_has_its_command():
    known = {**_COMMANDS, **_TIMED, **COMMANDS_BY_STATE}
    assert {topic for topic, event in CATALOGUE.items() if event not in known} == set()


def test_what_a_session_of_holds_commands_steering_and_previews_decided_would_be_decided_again(tmp_path):
    text = (STORED / "session.jsonl").read_text(encoding="utf-8")
    load(text, tmp_path / "session.db")
    comparison = read(tmp_path / "session.db")
    assert comparison.differences == ()
    assert comparison.decided == comparison.events
