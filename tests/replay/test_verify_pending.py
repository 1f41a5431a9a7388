"""An audit of pending actions: stack, operation, answer; each law can be broken, and is found broken."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tampering import Tamperer

from replay.finding import Law
from support.holds import audit, grant, resume
from support.pending import FakeToolHost, adds, push_edits, push_handler, raises, resolve, returns
from support.server import Server


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with an action of each fate: applied, stale, discarded, by a callback, raised, held, one that waits."""
    from codespace_es.ports.tool_host import CallbackRaisedError

    scratch = tmp_path_factory.mktemp("pending")
    root = scratch / "ws"
    root.mkdir()

    async def live() -> None:
        (root / "a.txt").write_text("a")
        host = FakeToolHost({"go": returns(patches=(adds("n.txt"),)), "no": raises(CallbackRaisedError("no"))})
        async with Server(scratch, {"demo": root}, tool_host=host) as server:
            await push_edits(server, root, {"a.txt": b"b"})
            await resolve(server)
            await push_edits(server, root, {"a.txt": b"c"})
            (root / "a.txt").write_text("changed")
            await resolve(server)
            await push_edits(server, root, {"a.txt": b"d"})
            await resolve(server, "discard")
            await push_handler(server, "go", work_id="w1")
            await resolve(server)
            await push_handler(server, "no")
            await resolve(server)
            await resolve(server, "discard")
        async with Server(scratch, {"demo": root}, tool_host=host, approvals="confirm") as server:
            await push_edits(server, root, {"a.txt": b"e"})
            await grant(server, held := (await resolve(server))["approval_id"])
            await resume(server, held)
            await push_edits(server, root, {"a.txt": b"f"})
            await grant(server, (await resolve(server))["approval_id"])
            await resolve(server, "discard")
            await push_edits(server, root, {"a.txt": b"g"})

    anyio.run(live)
    return scratch


@pytest.fixture
def scratch(lived: Path, tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "codespace.db").write_bytes((lived / "data" / "codespace.db").read_bytes())
    return tmp_path


def position(tamperer: Tamperer, topic: str, nth: int = 0) -> int:
    rows = tamperer.execute("SELECT position FROM events WHERE topic = ? ORDER BY position", topic)
    return int(rows[nth][0])


def drop(topic: str, nth: int = 0) -> Callable[[Tamperer], None]:
    return lambda tamperer: tamperer.drop(position(tamperer, topic, nth))


def change(topic: str, old: bytes, new: bytes, nth: int = 0) -> Callable[[Tamperer], None]:
    def apply(tamperer: Tamperer) -> None:
        at = position(tamperer, topic, nth)
        assert old in tamperer.state(at)
        tamperer.change_state(at, lambda state: state.replace(old, new))

    return apply


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
    pytest.param(change("pending.action_popped.v1", b'"outcome":"discarded"', b'"outcome":"applied"', 6), id="granted"),
])
def test_an_action_that_disagrees_with_what_it_led_to_is_found(
    scratch: Path, break_it: Callable[[Tamperer], None]
) -> None:
    with Tamperer(scratch / "data" / "codespace.db") as tamperer:
        break_it(tamperer)
        tamperer.hide()
    assert Law.PENDING in {finding.law for finding in audit(scratch).findings}


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
