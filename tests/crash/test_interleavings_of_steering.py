"""An agent's claim beside another claim, or beside what people do with the queue, let in at every moment of it.

Whatever the moment: the two come to what one order of them would have come to. No intent is given twice, what is
claimed says what the queue then said, and a person who comes too late is told so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from codespace_es.command_handlers.finishing import FinishWorkCommand
from codespace_es.command_handlers.inbox import (
    CancelIntentCommand,
    EditIntentCommand,
    QueueIntentCommand,
    ReorderIntentsCommand,
    WriteIntent,
)
from codespace_es.command_handlers.steering import (
    AskWork,
    ClaimNextCommand,
    CompleteIntentCommand,
    OpenWorkCommand,
)
from codespace_es.vocabulary.answer import Command
from support.holds import addition, ask
from support.interleaving import WITHIN_A_PATCH, at_every_moment
from support.server import Server


@dataclass(frozen=True)
class Queue:
    """A work with what people have written for it, in order."""

    work_id: str
    intents: tuple[dict[str, Any], ...]

    def id_of(self, index: int) -> str:
        return str(self.intents[index]["intent_id"])


def queue_of(*texts: str, delivery: Literal["next_checkpoint", "after_current_work"] = "next_checkpoint") -> Any:
    """Return what begins with a queue of these texts."""

    async def begin(server: Server) -> Queue:
        work_id = (await ask(server, OpenWorkCommand(workspace_id="demo")))["work_id"]
        intents = []
        for text in texts:
            draft = await ask(server, WriteIntent(work_id=work_id, body=text, delivery=delivery))
            queued = QueueIntentCommand(intent_id=draft["intent_id"], revision=draft["revision"])
            intents.append(await ask(server, queued))
        return Queue(work_id, tuple(intents))

    return begin


def claim(queue: Queue) -> Command:
    return ClaimNextCommand(work_id=queue.work_id)


def finish(queue: Queue) -> Command:
    return FinishWorkCommand(work_id=queue.work_id)


def pairs(directory: Path, *acts: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any], Path]]:
    """Yield both answers and the workspace for every moment of the first: `begin`, the first act, the second."""

    def make(scratch: Path, root: Path) -> Server:
        return Server(scratch, {"demo": root})

    return at_every_moment(directory, make, *acts, told_as="pairs about steering", skipped=WITHIN_A_PATCH)


def both_ways(directory: Path, begin: Any, one: Any, other: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the answers to `one` and to `other`, with each let in at every moment of the other."""
    for first, second, _ in pairs(directory / "there", begin, one, other):
        yield first, second
    for first, second, _ in pairs(directory / "back", begin, other, one):
        yield second, first


def content_of(answer: dict[str, Any]) -> str | None:
    item = answer.get("item")
    return None if item is None else str(item["content"])


@pytest.mark.parametrize("texts", [("one", "two"), ("one",)])
def test_two_claims_never_get_the_same_at_any_moment(memory_path: Path, texts: tuple[str, ...]) -> None:
    for first, second, _ in pairs(memory_path, queue_of(*texts), claim, claim):
        told = [content_of(first), content_of(second)]
        assert sorted(filter(None, told)) == sorted(texts), told


def test_what_is_claimed_is_taken_back_no_more_at_any_moment(memory_path: Path) -> None:
    def cancel(queue: Queue) -> Command:
        return CancelIntentCommand(intent_id=queue.id_of(0))

    seen = set()
    for claimed, cancelled in both_ways(memory_path, queue_of("one", "two"), claim, cancel):
        told = (content_of(claimed), cancelled.get("status", cancelled.get("state")))
        assert told in (("one", "INTENT_ALREADY_CLAIMED"), ("two", "cancelled")), told
        seen.add(told)
    assert len(seen) == 2, "both orders came about"


def test_what_is_claimed_says_what_the_queue_said_then_at_every_moment(memory_path: Path) -> None:
    def edit(queue: Queue) -> Command:
        return EditIntentCommand(intent_id=queue.id_of(0), revision=queue.intents[0]["revision"], body="uno")

    for claimed, edited in both_ways(memory_path, queue_of("one"), claim, edit):
        told = (content_of(claimed), edited.get("status", edited.get("body")))
        assert told in (("one", "INTENT_ALREADY_CLAIMED"), ("uno", "uno"), (None, "uno")), told


def test_a_claim_takes_the_first_of_the_old_order_or_of_the_new_one_at_every_moment(memory_path: Path) -> None:
    def reorder(queue: Queue) -> Command:
        return ReorderIntentsCommand(work_id=queue.work_id, intent_ids=(queue.id_of(1), queue.id_of(0)))

    for claimed, reordered in both_ways(memory_path, queue_of("one", "two"), claim, reorder):
        assert (content_of(claimed), reordered.get("status")) in (("one", "INVALID_ARGUMENT"), ("two", None))


def test_a_claim_beside_the_end_of_a_work_finds_what_comes_last_or_nothing_yet_at_every_moment(
    memory_path: Path
) -> None:
    begin = queue_of("one", delivery="after_current_work")
    for finished, claimed, _ in pairs(memory_path, begin, finish, claim):
        assert (finished["closed"], finished["reason"], finished["state"]) == (False, "pending_user_input", "closing")
        assert content_of(claimed) in ("one", None)


def test_a_completion_beside_the_end_of_the_work_lets_it_close_or_comes_after_it_at_every_moment(
    memory_path: Path
) -> None:
    async def begin(server: Server) -> Queue:
        queue: Queue = await queue_of("one")(server)
        assert content_of(await ask(server, claim(queue))) == "one"
        return queue

    def complete(queue: Queue) -> Command:
        return CompleteIntentCommand(work_id=queue.work_id, intent_id=queue.id_of(0))

    for completed, finished, _ in pairs(memory_path, begin, complete, finish):
        assert completed["state"] == "done"
        assert (finished["closed"], finished["state"]) in ((True, "closed"), (False, "active"))


def test_what_is_queued_while_a_work_ends_keeps_it_open_or_waits_for_the_next_at_every_moment(
    memory_path: Path
) -> None:
    async def begin(server: Server) -> Queue:
        queue: Queue = await queue_of()(server)
        draft = await ask(server, WriteIntent(work_id=queue.work_id, body="one", delivery="next_checkpoint"))
        return Queue(queue.work_id, (draft,))

    def put_in(queue: Queue) -> Command:
        return QueueIntentCommand(intent_id=queue.id_of(0), revision=queue.intents[0]["revision"])

    for finished, queued in both_ways(memory_path, begin, finish, put_in):
        told = (finished["closed"], queued.get("status", queued.get("state")), queued.get("work_id") is None)
        assert told in ((True, "queued", True), (False, "queued", False)), told


def test_a_claim_beside_a_patch_waits_for_nothing_at_any_moment(memory_path: Path) -> None:
    for patched, claimed, root in pairs(memory_path, queue_of("one"), lambda _: addition(key="k"), claim):
        assert (patched["status"], content_of(claimed)) == ("applied", "one")
        assert (root / "new.txt").read_text() == "new\n"


def test_a_status_tells_of_a_claim_all_or_nothing_at_every_moment(memory_path: Path) -> None:
    def look(queue: Queue) -> Command:
        return AskWork(work_id=queue.work_id)

    for _, status, _ in pairs(memory_path, queue_of("one"), claim, look):
        told = (status["queued"], status["claimed"], status["claimable_now"])
        assert told in ((1, 0, 1), (0, 1, 0)), status
