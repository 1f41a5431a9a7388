"""An audit of holds: their effects, their claims and their arguments; each law can be broken, and is found broken."""

import re
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tampering import Tamperer, change, copy_log, drop, position

from codespace_es.aggregates.approval import ApprovalCreated
from codespace_es.ports.log import NewBody
from codespace_es.vocabulary.identifiers import StreamId
from replay.finding import Law
from support.holds import addition, audit, deny, held_and_granted, hold, resume, script
from support.server import Server


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with a hold of each fate: a patch, a refused patch, a command, one denied, one that waits."""
    scratch = tmp_path_factory.mktemp("holds")
    (scratch / "ws").mkdir()

    async def live() -> None:
        async with Server(scratch, {"demo": scratch / "ws"}, approvals="confirm") as server:
            await resume(server, await held_and_granted(server, addition()))
            await resume(server, await held_and_granted(server, addition()))  # refused: it is there already
            await resume(server, await held_and_granted(server, script("true")))
            await deny(server, await hold(server, addition("b.txt")))
            await hold(server, addition("c.txt"))

    anyio.run(live)
    return scratch


@pytest.fixture
def scratch(lived: Path, tmp_path: Path) -> Path:
    return copy_log(lived, tmp_path)


def arguments(tamperer: Tamperer, nth: int) -> tuple[StreamId, str]:
    at = position(tamperer, "approval.created.v1", nth)
    stream = tamperer.execute("SELECT stream_id FROM events WHERE position = ?", at)[0][0]
    event = ApprovalCreated.model_validate_json(tamperer.state(at).partition(b"\n")[2])
    return StreamId(stream), event.arguments.digest


def test_a_log_of_holds_keeps_every_law(scratch: Path) -> None:
    report = audit(scratch)
    assert report.findings == ()
    assert report.open_items == 1


@pytest.mark.parametrize("break_it", [
    pytest.param(drop("approval.resuming.v1"), id="an operation that its hold doesn't know"),
    pytest.param(drop("claim.released.v1"), id="a consumed hold that keeps its claim"),
    pytest.param(drop("claim.released.v1", 3), id="a denied hold that keeps its claim"),
    pytest.param(drop("approval.denied.v1"), id="a claim that is released by an active hold"),
    pytest.param(drop("approval.consumed.v1"), id="an applied patch whose hold isn't over"),
    pytest.param(drop("approval.consumed.v1", 2), id="a command whose hold isn't over"),
    pytest.param(drop("process.spawned.v1"), id="a hold that led to a command that isn't there"),
    pytest.param(drop("claim.taken.v1"), id="a hold without its claim"),
    pytest.param(change("approval.consumed.v1", b'"effect_id":"op-', b'"effect_id":"op-0'), id="another effect"),
    pytest.param(change("operation.minted.v1", b'"approval_id":"appr-', b'"approval_id":"appr-0'), id="another hold"),
])
def test_a_hold_that_disagrees_with_what_it_led_to_is_found(
    scratch: Path, break_it: Callable[[Tamperer], None]
) -> None:
    with Tamperer(scratch / "data" / "codespace.db") as tamperer:
        break_it(tamperer)
        tamperer.hide()
    assert Law.APPROVAL in {finding.law for finding in audit(scratch).findings}


def test_arguments_of_a_hold_that_waits_have_to_be_there(scratch: Path) -> None:
    with Tamperer(scratch / "data" / "codespace.db") as tamperer:
        tamperer.drop_body(*arguments(tamperer, 4))
    (finding,) = audit(scratch).findings
    assert finding.law is Law.BODIES


@pytest.mark.parametrize("nth", [0, 1, 2, 3])
def test_arguments_of_a_hold_that_is_over_have_to_be_gone(scratch: Path, nth: int) -> None:
    with Tamperer(scratch / "data" / "codespace.db") as tamperer:
        stream, digest = arguments(tamperer, nth)
        kept = NewBody(stream, "arguments", b"kept")
        tamperer.change_state(
            position(tamperer, "approval.created.v1", nth), lambda state: re.sub(
                rb'"size_bytes":\d+', b'"size_bytes":4', state.replace(digest.encode(), kept.body.digest.encode())
            ),
        )
        tamperer.hide()
        tamperer.add_body(kept, like=position(tamperer, "approval.created.v1", nth))
    (finding,) = audit(scratch).findings
    assert finding.law is Law.BODIES
    assert "its arguments are still stored" in finding.problem
