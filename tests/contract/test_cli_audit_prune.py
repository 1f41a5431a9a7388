"""`prune`: contents go, events stay, the log verifies, and what was pruned is told."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from adapters.cli import pruning
from adapters.cli.pruning import KINDS_BY_DEFAULT, Rule, choose, remove
from adapters.log import bodies
from adapters.log.bodies import StoredBody
from adapters.log.reader import LogReader
from codespace_es.command_handlers.inbox import WriteIntent
from codespace_es.command_handlers.steering import OpenWorkCommand, WorkAnswer
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from support.cli_project import Project, patch

BACK = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-good day\n+hello\n*** End Patch\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.make(tmp_path)

    async def live() -> None:
        async with made.opened() as opened:
            await patch(opened, key="first")
            await patch(opened, BACK, key="second")

    anyio.run(live)
    return made


def bodies_of(project: Project) -> list[tuple[str, str, str]]:
    with LogReader(project.data / "codespace.db", CATALOGUE) as source:
        return [(body.stream_id, body.kind, body.digest) for body in source.stored_bodies()]


def test_without_yes_nothing_is_changed(project: Project) -> None:
    before = bodies_of(project), json.loads(project.call("verify", "--json").stdout)["head_hash"]
    told = json.loads(project.call("prune", "--older-than", "0m", "--json").stdout)
    assert (told["is_dry_run"], told["removed"], told["chosen"]) == (True, 0, 6)
    assert set(told["kinds"]) == {"image", "request"}
    assert "to do it\tthe same with --yes" in project.call("prune", "--older-than", "0m").stdout
    assert (bodies_of(project), json.loads(project.call("verify", "--json").stdout)["head_hash"]) == before


def test_what_was_pruned_is_told_and_the_log_still_verifies(project: Project) -> None:
    done = project.call("prune", "--older-than", "0m", "--yes", "--json")
    assert json.loads(done.stdout)["removed"] == 6
    assert {kind for _, kind, _ in bodies_of(project)} == {"result"}
    again = json.loads(project.call("prune", "--older-than", "0m", "--yes", "--json").stdout)
    assert (again["chosen"], again["removed"]) == (0, 0)
    report = json.loads(project.call("verify", "--json").stdout)
    assert report["findings"] == []
    story = json.loads(project.call("show", "first", "--json").stdout)
    assert story["report"]["status"] == "applied"
    assert story["files"][0]["note"].startswith("Its contents were pruned on 20")
    assert "pruned" in project.call("show", "store").stdout
    undone = project.call("undo", "second", "--workspace", f"demo={project.root}")
    assert undone.returncode == 1
    assert "pruned" in undone.stderr


def test_only_what_was_asked_for_goes(project: Project) -> None:
    assert json.loads(project.call("prune", "--older-than", "1h", "--json").stdout)["chosen"] == 0
    assert json.loads(project.call("prune", "--larger-than", "1MiB", "--json").stdout)["chosen"] == 0
    told = json.loads(project.call("prune", "--larger-than", "50", "--json").stdout)
    assert told["kinds"] == {"request": {"count": 2, "bytes": told["total_bytes"]}}
    told = json.loads(project.call("prune", "--older-than", "0m", "--kind", "result", "--yes", "--json").stdout)
    assert told["removed"] == 2
    assert json.loads(project.call("verify", "--json").stdout)["findings"] == []


@pytest.mark.parametrize("arguments", [
    [], ["--yes"], ["--older-than", "30"], ["--older-than", "-1d"], ["--larger-than", "1MB"],
    ["--older-than", "1d", "--kind", "arguments"],
])
def test_what_is_unclear_is_wrong_usage(project: Project, arguments: list[str]) -> None:
    before = bodies_of(project)
    assert project.call("prune", *arguments).returncode == 2
    assert bodies_of(project) == before


def test_two_who_prune_at_once_remove_each_content_once(project: Project) -> None:
    async def both() -> list[int]:
        counts: list[int] = []
        async with project.opened() as first, project.opened() as second:
            with LogReader(project.data / "codespace.db", CATALOGUE) as source:
                rule = Rule(frozenset(KINDS_BY_DEFAULT), first.world.clock.now() + timedelta(days=1), 0)
                chosen = list(choose(source, rule))

            async def run(opened) -> None:
                counts.append(await remove(opened.world.log, chosen, Caller("cli", RequestId("req-1"))))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, first)
                tasks.start_soon(run, second)
        return counts

    assert sum(anyio.run(both)) == 6
    assert json.loads(project.call("verify", "--json").stdout)["findings"] == []



def test_it_goes_in_portions_and_what_was_opened_meanwhile_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never more at hand than one portion: what comes next is read once the one before is gone."""
    monkeypatch.setattr(pruning, "REMOVED_AT_ONCE_MAX", 2)
    monkeypatch.setattr(bodies, "_LISTED_AT_ONCE", 1)
    taken: list[StoredBody] = []
    stored_at_take: list[int] = []

    async def prune() -> int:
        async with project.opened() as opened:
            rule = Rule(frozenset(KINDS_BY_DEFAULT), opened.world.clock.now() + timedelta(days=1), 0)
            with LogReader(project.data / "codespace.db", CATALOGUE) as source:

                def watched() -> Iterator[StoredBody]:
                    for body in choose(source, rule):
                        stored_at_take.append(len(bodies_of(project)))
                        taken.append(body)
                        yield body

                return await remove(opened.world.log, watched(), Caller("cli", RequestId("req-1")))

    before = len(bodies_of(project))
    assert anyio.run(prune) == len(taken) == 6
    # Each portion leaves two contents less, and the list of what was removed.
    assert stored_at_take == [before - portion for portion in (0, 0, 1, 1, 2, 2)]
    assert json.loads(project.call("verify", "--json").stdout)["findings"] == []
    assert project.call("log", "--kind", "store.bodies_removed").stdout.count("\n") == 3


def test_what_belongs_to_an_open_stream_stays_even_if_it_was_chosen(project: Project) -> None:
    async def prune() -> int:
        async with project.opened() as opened:
            caller = Caller("cli", RequestId("req-1"))
            work = await opened.codespace.handle(OpenWorkCommand(workspace_id="demo"), caller)
            assert isinstance(work, WorkAnswer)
            await opened.codespace.handle(WriteIntent(work_id=work.work_id, body="Be brief."), caller)
            with LogReader(project.data / "codespace.db", CATALOGUE) as source:
                (text,) = [body for body in source.stored_bodies() if body.kind == "text"]
            return await remove(opened.world.log, [text], caller)

    assert anyio.run(prune) == 0
    assert "text" in {kind for _, kind, _ in bodies_of(project)}
