"""`prune`: contents go, events stay, the log verifies, and what was pruned is told."""

import json
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from adapters.cli.pruning import KINDS_BY_DEFAULT, Rule, choose, remove
from adapters.log.reader import LogReader
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
                chosen = choose(source, rule)

            async def run(opened) -> None:
                counts.append(await remove(opened.world.log, chosen, Caller("cli", RequestId("req-1"))))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, first)
                tasks.start_soon(run, second)
        return counts

    assert sum(anyio.run(both)) == 6
    assert json.loads(project.call("verify", "--json").stdout)["findings"] == []

