"""Steering in two servers over one log: many who claim at once, writers who repeat, and what survives a death."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from codespace_es.command_handlers import inbox, steering
from codespace_es.command_handlers.finishing import FinishWorkCommand
from codespace_es.command_handlers.observing import AskProcess, ReadProcess
from codespace_es.command_handlers.reading import DescribeWorkspace
from codespace_es.invocation import ExecCommand
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.errors import CodespaceError
from support.holds import addition, ask, audit, hold
from support.server import Server

pytestmark = pytest.mark.anyio

CLAIMERS = 16
INTENTS = 60


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[list[Server]]:
    """Two over one log, which has to keep every law to the end."""
    (tmp_path / "ws").mkdir()
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Server(tmp_path, {"demo": tmp_path / "ws"})) for _ in range(2)]
    assert audit(tmp_path).findings == ()


async def open_work(server: Server) -> str:
    return str((await ask(server, steering.OpenWorkCommand(workspace_id="demo")))["work_id"])


async def write(server: Server, work_id: str, text: str, **fields: Any) -> dict[str, Any]:
    command = inbox.WriteIntent(work_id=work_id, body=text, **{"delivery": "next_checkpoint", **fields})
    return await ask(server, command, "cli")


async def queue(server: Server, intent: dict[str, Any]) -> dict[str, Any]:
    command = inbox.QueueIntentCommand(intent_id=intent["intent_id"], revision=intent["revision"])
    return await ask(server, command, "cli")


async def test_many_who_claim_at_once_share_out_the_queue_and_each_gets_his_in_order(servers: list[Server]) -> None:
    """Field report 263."""
    work_id = await open_work(servers[0])
    for number in range(INTENTS):
        await queue(servers[0], await write(servers[0], work_id, str(number)))
    given: list[list[int]] = [[] for _ in range(CLAIMERS)]

    async def claim_all(number: int) -> None:
        command = steering.ClaimNextCommand(work_id=work_id)
        while item := (await ask(servers[number % 2], command)).get("item"):
            given[number].append(int(item["content"]))

    async with anyio.create_task_group() as tasks:
        for number in range(CLAIMERS):
            tasks.start_soon(claim_all, number)
    assert Counter(each for mine in given for each in mine) == Counter(range(INTENTS))
    assert all(mine == sorted(mine) for mine in given)


async def test_a_writer_who_repeats_a_key_at_once_makes_one_intent(servers: list[Server]) -> None:
    work_id = await open_work(servers[0])
    made: set[str] = set()

    async def write_one(server: Server) -> None:
        made.add((await write(server, work_id, "x", client_key="k"))["intent_id"])

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(write_one, servers[number % 2])
    assert len(made) == 1


async def test_an_edit_and_a_claim_at_once_leave_one_text(servers: list[Server]) -> None:
    work_id = await open_work(servers[0])
    for _ in range(10):
        intent = await queue(servers[0], await write(servers[0], work_id, "old"))
        told: dict[str, dict[str, Any]] = {}

        async def edit(intent: dict[str, Any] = intent, told: dict[str, dict[str, Any]] = told) -> None:
            command = inbox.EditIntentCommand(intent_id=intent["intent_id"], revision=intent["revision"], body="new")
            told["edit"] = await ask(servers[0], command, "cli")

        async def claim(told: dict[str, dict[str, Any]] = told) -> None:
            told["claim"] = await ask(servers[1], steering.ClaimNextCommand(work_id=work_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edit)
            tasks.start_soon(claim)
        content = told["claim"]["item"]["content"]
        assert content == ("old" if told["edit"].get("code") == "INTENT_ALREADY_CLAIMED" else told["edit"]["body"])
        done = steering.CompleteIntentCommand(work_id=work_id, intent_id=intent["intent_id"])
        assert (await ask(servers[1], done))["body"] == content


async def test_a_claim_outlives_its_server_and_is_told_again_by_another(servers: list[Server]) -> None:
    """Field report 261."""
    work_id = await open_work(servers[0])
    await queue(servers[0], await write(servers[0], work_id, "x"))
    item = (await ask(servers[0], steering.ClaimNextCommand(work_id=work_id)))["item"]
    await servers[0].die()
    assert (await ask(servers[1], steering.AskWork(work_id=work_id)))["claimed_ids"] == [item["intent_id"]]
    again = await ask(servers[1], steering.ClaimNextCommand(work_id=work_id, redeliver=True))
    assert again["item"] == {**item, "redelivered": True}
    done = steering.CompleteIntentCommand(work_id=work_id, intent_id=item["intent_id"])
    assert (await ask(servers[1], done))["state"] == "done"


async def test_a_stop_ends_what_runs_here_and_tells_what_runs_elsewhere(tmp_path: Path, servers: list[Server]) -> None:
    async with Server(tmp_path, {"demo": tmp_path / "ws"}, sandbox="off") as runner:
        work_id = await open_work(runner)
        started = await ask(runner, ExecCommand(workspace_id="demo", command=["sleep", "600"]))
        away = await ask(servers[0], inbox.StopWorkCommand(work_id=work_id), "cli")
        assert (away["killed"], away["elsewhere"]) == (0, 1)
        assert (await ask(runner, AskProcess(process_id=started["process_id"])))["state"] == "running"
        here = await ask(runner, inbox.StopWorkCommand(work_id=work_id, reason="Enough."), "http")
        assert (here["killed"], here["elsewhere"], here["intent"]["body"]) == (1, 0, "Enough.")
        while not (await ask(runner, ReadProcess(process_id=started["process_id"], wait_ms=20_000)))["eof"]:
            pass
        ended = await ask(runner, AskProcess(process_id=started["process_id"]))
        assert (ended["state"], ended["termination"]) == ("exited", "terminated")


async def test_a_hint_that_cannot_be_made_is_left_out(servers: list[Server], monkeypatch: pytest.MonkeyPatch) -> None:
    await open_work(servers[0])
    command = DescribeWorkspace(workspace_id="demo")
    assert "coordination" in await ask(servers[0], command)

    async def fail(_stream_id: str, **_which: Any) -> None:
        raise StoreUnavailableError("gone")

    monkeypatch.setattr(servers[0].log, "read_stream", fail)
    told = await ask(servers[0], command)
    assert (told["workspace_id"], "coordination" in told) == ("demo", False)
    with pytest.raises(CodespaceError, match="unavailable"):
        await servers[0].handle(steering.OpenWorkCommand(workspace_id="demo"))
    monkeypatch.undo()


async def test_a_finish_counts_the_holds_of_its_workspace(tmp_path: Path, servers: list[Server]) -> None:
    async with Server(tmp_path, {"demo": tmp_path / "ws"}, approvals="confirm") as strict:
        await hold(strict, addition())
        work_id = await open_work(strict)
        assert (await ask(strict, FinishWorkCommand(work_id=work_id)))["pending_approvals"] == 1
