"""Two operations at once, the second let in at every moment of the first.

At each fault point of the first the second is started, on another server with a loop of its own, and runs until it is
done or stands before the workspace's lease. Whatever the moment, the two together come to what some order of them
would have come to, and nobody is told two stories.
"""

from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.ports.fault_points import no_faults
from codespace_es.vocabulary.answer import Command
from support.crash_faults import Recorder
from support.crash_faults import count as tally
from support.interleaving import PATIENCE_SECONDS, LetIn, ask, ask_in_thread
from support.server import Server


def patch(old: str, new: str, *, key: str | None = None, workspace: str = "demo") -> ApplyPatch:
    """A patch of one line."""
    text = f"*** Begin Patch\n*** Update File: a.txt\n@@\n-{old}\n+{new}\n*** End Patch\n"
    return ApplyPatch(workspace_id=workspace, patch=text, operation_key=key)


def both(memory_path: Path, k: int, first: Command, second: Command) -> tuple[dict[str, Any], dict[str, Any], str, str]:
    """Return both answers, what the file holds in either workspace, with the second let in at `k`."""
    scratch = memory_path / str(k)
    roots = {"demo": scratch / "ws", "other": scratch / "ws2"}
    for root in roots.values():
        root.mkdir(parents=True)
        (root / "a.txt").write_text("one\n")
    with start_blocking_portal() as here, start_blocking_portal() as there, start_blocking_portal() as errands:
        left = here.call(Server(scratch, roots).start)
        right = there.call(Server(scratch, roots).start)
        let_in = LetIn(k, lambda: errands.start_task_soon(ask_in_thread, there, right, second))
        left.hook = let_in
        answer = ask(here, left, first)
        left.hook = no_faults
        late = let_in.second.result(PATIENCE_SECONDS) if let_in.second is not None else ask(there, right, second)
        here.call(left.stop)
        there.call(right.stop)
    return answer, late, (roots["demo"] / "a.txt").read_text(), (roots["other"] / "a.txt").read_text()


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many moments an undisturbed patch has."""
    scratch = tmp_path_factory.mktemp("reference")
    (scratch / "ws").mkdir()
    (scratch / "ws" / "a.txt").write_text("one\n")
    recorder = Recorder()
    with start_blocking_portal() as portal:
        server = portal.call(Server(scratch, {"demo": scratch / "ws"}).start)
        server.hook = recorder
        assert ask(portal, server, patch("one", "two", key="k"))["status"] == "applied"
        server.hook = no_faults
        portal.call(server.stop)
    assert len(recorder.points) > 15
    return len(recorder.points)


def test_the_same_request_twice_is_one_operation_at_every_moment(memory_path: Path, points: int) -> None:
    for k in range(1, points + 1):
        command = patch("one", "two", key="k")
        first, second, content, _ = both(memory_path, k, command, command)
        assert (first["status"], second["status"]) == ("applied", "applied")
        assert first["operation_id"] == second["operation_id"]
        assert sorted([first["replayed"], second["replayed"]]) == [False, True]
        assert content == "two\n"
        tally("pairs of operations", 1)


def test_one_key_for_two_directories_belongs_to_one_of_them_at_every_moment(memory_path: Path, points: int) -> None:
    for k in range(1, points + 1):
        first, second, here, there = both(
            memory_path, k, patch("one", "two", key="k"), patch("one", "three", key="k", workspace="other")
        )
        assert sorted([first["status"], second["status"]]) == ["OPERATION_KEY_CONFLICT", "applied"]
        assert (here, there) == (("two\n", "one\n") if first["status"] == "applied" else ("one\n", "three\n"))
        tally("pairs of operations", 1)


def test_two_patches_of_one_line_come_one_after_the_other_at_every_moment(memory_path: Path, points: int) -> None:
    for k in range(1, points + 1):
        first, second, content, _ = both(memory_path, k, patch("one", "two"), patch("two", "three"))
        assert first["status"] == "applied"
        assert (second["status"], content) in (("applied", "three\n"), ("INVALID_PATCH", "two\n"))
        tally("pairs of operations", 1)


def test_an_operation_is_undone_once_at_every_moment(memory_path: Path, points: int) -> None:
    for k in range(1, points + 1, 2):
        scratch = memory_path / f"undo{k}"
        root = scratch / "ws"
        root.mkdir(parents=True)
        (root / "a.txt").write_text("one\n")
        with start_blocking_portal() as here, start_blocking_portal() as there, start_blocking_portal() as errands:
            left = here.call(Server(scratch, {"demo": root}).start)
            right = there.call(Server(scratch, {"demo": root}).start)
            undo = RevertOperation(operation_id=ask(here, left, patch("one", "two"))["operation_id"])
            let_in = LetIn(k, lambda: errands.start_task_soon(ask_in_thread, there, right, undo))  # noqa: B023 - run here
            left.hook = let_in
            first = ask(here, left, undo)
            left.hook = no_faults
            second = let_in.second.result(PATIENCE_SECONDS) if let_in.second else ask(there, right, undo)
            here.call(left.stop)
            there.call(right.stop)
        assert sorted([first["status"], second["status"]]) == ["REVERT_CONFLICT", "applied"]
        assert (root / "a.txt").read_text() == "one\n"
        tally("pairs of operations", 1)
