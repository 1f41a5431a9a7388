"""Two requests at once about a command or a hold, the second let in at every moment of the first.

Whatever the moment: a command runs once, a hold is decided once and resumed once, and the log verifies.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codespace_es.command_handlers.deciding import ResolveHold
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.vocabulary.answer import Command
from support.commands import lines_of
from support.holds import addition, held_and_granted, hold, script
from support.interleaving import at_every_moment
from support.server import Server

ONCE = script("echo x >> count", key="k")


async def nothing(_server: Server) -> None:
    """Begin with nothing."""


def pairs(
    directory: Path, begin: Callable[[Server], Any], first: Callable[[Any], Command],
    second: Callable[[Any], Command], **policy: Any,
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Path]]:
    """Yield both answers and the workspace, for every moment of the first request."""

    def make(scratch: Path, root: Path) -> Server:
        return Server(scratch, {"demo": root}, sandbox="off", **policy)

    return at_every_moment(directory, make, begin, first, second, told_as="pairs about commands and holds")


def test_the_same_command_twice_runs_once_at_every_moment(memory_path: Path) -> None:
    for one, two, root in pairs(memory_path, nothing, lambda _: ONCE, lambda _: ONCE):
        assert one["process_id"] == two["process_id"]
        assert sorted([bool(one.get("replayed")), bool(two.get("replayed"))]) == [False, True]
        assert lines_of(root / "count") <= 1


def test_a_patch_beside_a_command_waits_or_is_refused_at_every_moment(memory_path: Path) -> None:
    for one, two, root in pairs(memory_path, nothing, lambda _: ONCE, lambda _: addition(key="p")):
        assert "process_id" in one
        assert (two["status"], (root / "new.txt").exists()) in (("applied", True), ("WORKSPACE_BUSY", False))


def test_of_two_resumes_one_runs_at_every_moment(memory_path: Path) -> None:
    async def begin(server: Server) -> str:
        return await held_and_granted(server, addition())

    def resume(approval_id: str) -> ResumeOperation:
        return ResumeOperation(approval_id=approval_id)

    for one, two, root in pairs(memory_path, begin, resume, resume, approvals="confirm"):
        told = [answer for answer in (one, two) if answer.get("status") != "APPROVAL_CONFLICT"]
        assert len({answer["apply_patch"]["operation_id"] for answer in told}) == 1, (one, two)
        assert (root / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize("decision", ["grant", "deny"])
def test_of_two_decisions_one_stands_at_every_moment(memory_path: Path, decision: str) -> None:
    other = "deny" if decision == "grant" else "grant"

    async def begin(server: Server) -> str:
        return await hold(server, addition())

    def decide(how: str) -> Callable[[str], ResolveHold]:
        return lambda approval_id: ResolveHold(approval_id=approval_id, decision=how)  # type: ignore[arg-type]  # both

    for one, two, root in pairs(memory_path, begin, decide(decision), decide(other), approvals="confirm"):
        assert [one.get("status"), two.get("status")].count("APPROVAL_CONFLICT") == 1, (one, two)
        assert not (root / "new.txt").exists()
