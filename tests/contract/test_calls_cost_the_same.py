"""What a call reads of the log doesn't grow with what has happened: neither the rows it gets nor those it passes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.log import statements
from codespace_es.command_handlers import inbox, steering
from codespace_es.command_handlers.finishing import FinishWorkCommand
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.previewing import ListPending
from codespace_es.command_handlers.reading import DescribeWorkspace, ReadFile
from codespace_es.command_handlers.reporting import ReportOperation
from support.commands import Commands
from support.holds import addition, ask, create, deny, grant, look, resume
from support.pending import push_edits, resolve
from support.server import Server

pytestmark = pytest.mark.anyio

EARLY, LATE = 3, 30
FEW_LEFT, MANY_LEFT = 3, 70
"""The second is more than there are folds kept."""
PARTS_OF_A_STREAM = ("STREAM_SINCE", "STREAM_SINCE_OPENED", "VERSION", "HAS_VERSION")


class Round:
    """One of everything that an agent and its people do, each counted by the rows that it was given."""

    def __init__(self, server: Server, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.root = root
        self.number = 0
        self.rows = 0
        rows = server.log._rows

        async def counted(statement: str, parameters: tuple[Any, ...] = (), *, is_large: bool = False) -> list[Any]:
            found = await rows(statement, parameters, is_large=is_large)
            self.rows += len(found)
            return found

        monkeypatch.setattr(server.log, "_rows", counted)

    async def go(self) -> dict[str, int]:
        """Return the rows of each call."""
        self.number += 1
        taken: dict[str, int] = {}

        async def count(name: str, work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
            self.rows = 0
            answer = await work()
            assert "code" not in answer, answer
            taken[name] = self.rows
            return answer

        server, key = self.server, f"key-{self.number}"
        patch = addition(f"{key}.txt", key=key)
        await count("read", lambda: ask(server, ReadFile(workspace_id="demo", path="a.txt")))
        await count("describe", lambda: ask(server, DescribeWorkspace(workspace_id="demo")))
        await count("patch", lambda: ask(server, patch))
        await count("patch again", lambda: ask(server, patch))
        await count("status", lambda: ask(server, ReportOperation(operation_key=key)))
        await self._hold(count)
        await self._work(count)
        await self._preview(count)
        return taken

    async def _hold(self, count: Callable[..., Awaitable[dict[str, Any]]]) -> None:
        server, request = self.server, ApplyPatch(workspace_id="demo", patch=addition(f"held-{self.number}").patch)
        held = str((await count("hold", lambda: create(server, request)))["approval_id"])
        await count("look", lambda: look(server, held))
        await count("grant", lambda: grant(server, held))
        await count("resume", lambda: resume(server, held))
        other = str((await create(server, request))["approval_id"])
        await count("deny", lambda: deny(server, other))

    async def _work(self, count: Callable[..., Awaitable[dict[str, Any]]]) -> None:
        """A person writes for a work; a second work is left open for good."""
        server = self.server
        opened = await count("work", lambda: ask(server, steering.OpenWorkCommand(workspace_id="demo")))
        await ask(server, steering.OpenWorkCommand(workspace_id="demo"))
        name = str(opened["work_id"])
        text = inbox.WriteIntent(work_id=name, body="Mind the tests.", delivery="next_checkpoint")
        intent = await count("write", lambda: ask(server, text, "cli"))
        queue = inbox.QueueIntentCommand(intent_id=intent["intent_id"], revision=intent["revision"])
        await count("queue", lambda: ask(server, queue, "cli"))
        await count("steer_status", lambda: ask(server, steering.AskWork(work_id=name)))
        await count("claim", lambda: ask(server, steering.ClaimNextCommand(work_id=name)))
        done = steering.CompleteIntentCommand(work_id=name, intent_id=intent["intent_id"])
        await count("complete", lambda: ask(server, done))
        await count("finish", lambda: ask(server, FinishWorkCommand(work_id=name)))

    async def _preview(self, count: Callable[..., Awaitable[dict[str, Any]]]) -> None:
        """One action lies at the bottom of the stack from the beginning; others come and go above it."""
        server = self.server
        for action in ("apply", "discard"):
            pushed = await push_edits(server, self.root, {f"{action}-{self.number}": b"new\n"})
            await count("list", lambda: ask(server, ListPending()))
            resolved = await count(action, partial(resolve, server, action, id=pushed.action_id))
            assert resolved["remaining"] == 1


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a\n")
    async with Server(tmp_path, {"demo": tmp_path / "ws"}) as server:
        yield server


async def test_no_call_is_given_more_of_the_log_after_much_has_happened(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ws"
    at_the_bottom = await push_edits(server, root, {"bottom": b"new\n"})
    rounds = Round(server, root, monkeypatch)
    taken = [await rounds.go() for _ in range(LATE)]
    assert taken[LATE - 1] == taken[EARLY]
    again = await resolve(server, "discard", id=at_the_bottom.action_id)
    assert again["outcome"] == "discarded"


async def test_inputs_that_were_sent_before_cost_the_next_call_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(server)
    process_id = await commands.start("cat", workspace_id="demo")
    rows = server.log._rows
    count = 0

    async def counted(statement: str, parameters: tuple[Any, ...] = (), *, is_large: bool = False) -> list[Any]:
        nonlocal count
        found = await rows(statement, parameters, is_large=is_large)
        count += len(found)
        return found

    monkeypatch.setattr(server.log, "_rows", counted)
    taken = []
    for number in range(LATE):
        count = 0
        await commands.write(process_id, f"{number}\n")
        await commands.status(process_id)
        await commands.read(process_id)
        taken.append(count)
    await commands.write(process_id, "", eof=True)
    assert (await commands.ended(process_id)).exit_code == 0
    assert await commands.topics(process_id) == [
        "process.spawned.v1", *["process.input_sent.v1"] * (LATE + 1), "process.exited.v1"
    ]
    assert taken[LATE - 1] == taken[EARLY]


@pytest.mark.parametrize("is_shared", [False, True], ids=["one client", "many clients"])
async def test_previews_left_in_many_works_cost_no_call_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_shared: bool
) -> None:
    taken = []
    for left in (FEW_LEFT, MANY_LEFT):
        root = tmp_path / f"{left}" / "ws"
        root.mkdir(parents=True)
        (root / "a.txt").write_text("a\n")
        async with Server(tmp_path / f"{left}", {"demo": root}, is_shared=is_shared) as server:
            await push_edits(server, root, {"bottom": b"new\n"})
            for number in range(left):
                work = await ask(server, steering.OpenWorkCommand(workspace_id="demo"))
                await push_edits(server, root, {f"left-{number}": b"new\n"}, work_id=str(work["work_id"]))
            rounds = Round(server, root, monkeypatch)
            taken.append([await rounds.go() for _ in range(EARLY + 1)][EARLY])
    few, many = taken
    assert many.pop("list") > few.pop("list"), "which lists them"
    assert many == few


async def test_a_repeat_of_the_first_resolve_reads_no_more_than_it_takes_to_find_its_end(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ws"
    first = await push_edits(server, root, {"first": b"new\n"})
    await resolve(server, "discard", id=first.action_id)
    rounds = Round(server, root, monkeypatch)
    for number in range(EARLY * LATE):
        pushed = await push_edits(server, root, {f"n-{number}": b"new\n"})
        await resolve(server, "discard", id=pushed.action_id)
    rounds.rows = 0
    assert (await resolve(server, "discard", id=first.action_id))["replayed"]
    assert rounds.rows < EARLY * LATE


async def test_a_cached_fold_isn_t_believed_once_its_last_event_isn_t_there(server: Server, tmp_path: Path) -> None:
    """Nobody can take events away; a cache that didn't look would go on to tell of what isn't in the log."""
    opened = await ask(server, steering.OpenWorkCommand(workspace_id="demo"))
    kept = server.world.kept._kept["steer"]
    stream_id, known = next(iter(kept.items()))
    kept[stream_id] = type(known)(known.position + 1_000, known.version, known.state)
    status = await ask(server, steering.AskWork(work_id=str(opened["work_id"])))
    assert status["state"] == "active"


@pytest.mark.parametrize("name", PARTS_OF_A_STREAM)
async def test_part_of_a_stream_is_found_by_its_index(server: Server, name: str) -> None:
    """A bound of the index itself, not a filter behind it: else the whole stream is walked for its last events."""
    statement = getattr(statements, name)
    plan = await server.log._rows(f"EXPLAIN QUERY PLAN {statement}", ("a",) * statement.count("?"))
    events = [str(row[3]) for row in plan if " events " in f"{row[3]} "]
    assert events
    for step in events:
        assert "(stream_id=? AND version" in step or "rowid=?" in step or name == "VERSION", step
