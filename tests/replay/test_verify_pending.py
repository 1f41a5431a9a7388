"""An audit of pending actions: stack, operation, answer; each law can be broken, and is found broken."""

from collections.abc import Callable
from pathlib import Path

import anyio
import finishing_log
import pytest
from lived_previews import live
from tampering import Tamperer, change, copy_log, drop, position

from adapters.log.reader import LogReader
from codespace_es.aggregates.pending.events import PendingActionPopped, PendingStackLeft
from codespace_es.event_catalogue import CATALOGUE
from replay.compare import compare
from replay.finding import Law
from replay.state_at import state_at
from replay.story import tell
from support.holds import audit


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with an action of each fate."""
    scratch = tmp_path_factory.mktemp("pending")
    (scratch / "ws").mkdir()
    anyio.run(live, scratch, scratch / "ws")
    return scratch


@pytest.fixture
def scratch(lived: Path, tmp_path: Path) -> Path:
    return copy_log(lived, tmp_path)


def test_a_log_of_pending_actions_keeps_every_law(scratch: Path) -> None:
    report = audit(scratch)
    assert report.findings == ()
    assert report.open_items == 1


@pytest.mark.parametrize("break_it", [
    pytest.param(drop("pending.action_placed.v1"), id="an action that can't be found by its id"),
    pytest.param(change("pending.action_placed.v1", b'"pend-', b'"pend-0'), id="an action that waits elsewhere"),
    pytest.param(change("pending.action_pushed.v1", b'"wsp-', b'"wsp-0'), id="an action of another workspace"),
    pytest.param(change("operation.minted.v1", b'"action_id":"act-', b'"action_id":"act-0'), id="another action"),
    pytest.param(change("operation.finished.v1", b'"applied"', b'"unknown"'), id="applied, though its files aren't"),
    pytest.param(drop("operation.finished.v1"), id="applied by an operation that isn't over"),
    pytest.param(drop("pending.action_popped.v1", 3), id="an operation that is over, and its action isn't"),
    pytest.param(change("pending.action_popped.v1", b'"effect_id":"op-', b'"effect_id":"op-0'), id="another effect"),
    pytest.param(change("pending.action_popped.v1", b'"outcome":"applied"', b'"outcome":"failed"'), id="no error"),
    pytest.param(change("pending.action_popped.v1", b'"outcome":"discarded"', b'"outcome":"applied"', 8), id="granted"),
])
def test_an_action_that_disagrees_with_what_it_led_to_is_found(
    scratch: Path, break_it: Callable[[Tamperer], None]
) -> None:
    with Tamperer(scratch / "data" / "codespace.db") as tamperer:
        break_it(tamperer)
        tamperer.hide()
    assert Law.PENDING in {finding.law for finding in audit(scratch).findings}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A log of works that were finished."""
    (tmp_path / "ws").mkdir()
    anyio.run(finishing_log.live, tmp_path, tmp_path / "ws")
    return tmp_path


def left_while_something_waits(tamperer: Tamperer) -> None:
    """Leave once more the stack that has an action again."""
    at = position(tamperer, "pending.stack_left.v1", 1)
    ((stream_id,),) = tamperer.execute("SELECT stream_id FROM events WHERE position = ?", at)
    event = PendingStackLeft.model_validate_json(tamperer.state(at).partition(b"\n")[2])
    tamperer.append(stream_id, 3, event, like=at)


@pytest.mark.parametrize(("break_it", "law"), [
    pytest.param(change("pending.stack_left.v1", b'"work-', b'"work-0'), Law.PENDING, id="another work"),
    pytest.param(change("pending.stack_left.v1", b'"wsp-', b'"wsp-0'), Law.PENDING, id="another workspace"),
    pytest.param(left_while_something_waits, Law.FOLDS, id="while something waits"),
])
def test_a_stack_that_was_not_left_with_its_work_is_found(
    finished: Path, break_it: Callable[[Tamperer], None], law: Law
) -> None:
    assert audit(finished).findings == ()
    with LogReader(finished / "data" / "codespace.db", CATALOGUE) as reader:
        assert compare(reader).differences == ()
    with Tamperer(finished / "data" / "codespace.db") as tamperer:
        break_it(tamperer)
        tamperer.hide()
    assert law in {finding.law for finding in audit(finished).findings}


@pytest.mark.parametrize("break_it", [
    pytest.param(drop("pending.resolve_started.v1"), id="ended without a beginning"),
    pytest.param(change("pending.action_popped.v1", b'"remaining":0', b'"remaining":1'), id="another count"),
    pytest.param(change("pending.resolve_started.v1", b'"action_id":"act-', b'"action_id":"act-0'), id="not the top"),
])
def test_a_stack_that_no_rule_would_have_made_is_found(scratch: Path, break_it: Callable[[Tamperer], None]) -> None:
    with Tamperer(scratch / "data" / "codespace.db") as tamperer:
        break_it(tamperer)
        tamperer.hide()
    assert {Law.FOLDS, Law.VERSIONS} & {finding.law for finding in audit(scratch).findings}


def test_the_rest_of_the_audit_understands_it(lived: Path) -> None:
    with LogReader(lived / "data" / "codespace.db", CATALOGUE) as reader:
        compared = compare(reader)
        assert (compared.differing, compared.differences) == (0, ())
        head, _ = reader.head()
        state = state_at(reader, head)
        assert state.aggregates["pending"] == {"Placed": 10, "Stack": 2}
        assert [thing.kind for thing in state.open if thing.kind == "pending"] == ["pending"]
        popped = [each for each in reader.read_log() if isinstance(each.event, PendingActionPopped)]
        story = tell(reader, popped[0].event.action_id)  # type: ignore[attr-defined]  # it is one
        assert [each.topic for each in story.events] == [
            "pending.action_pushed.v1", "pending.action_placed.v1", "pending.resolve_started.v1",
            "pending.action_popped.v1",
        ]
