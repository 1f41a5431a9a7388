"""`export` and `compare` as commands."""

import json
from pathlib import Path

import anyio
import pytest

from support.cli_project import Project, patch


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project.make(tmp_path_factory.mktemp("export"))

    async def live() -> None:
        async with made.opened() as opened:
            await patch(opened, key="first")

    anyio.run(live)
    return made


def test_an_export_is_resumed_behind_its_last_line(project: Project) -> None:
    whole = project.run("export").stdout.splitlines()
    positions = [json.loads(line)["position"] for line in whole]
    assert positions == list(range(1, len(whole) + 1))
    assert project.run("export", "--after", "3").stdout.splitlines() == whole[3:]
    told = [json.loads(line) for line in project.run("export", "--format", "cloudevents").stdout.splitlines()]
    assert [event["id"] for event in told] == [str(position) for position in positions]
    assert len(project.run("export", "--bodies").stdout.splitlines()) > len(whole)


def test_a_terminal_obeys_nothing_of_what_is_exported(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    name = "\x9b2J\u202egnp.\u2066\U000e0100\x7f"

    async def live() -> None:
        async with project.opened() as opened:
            await patch(opened, f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n")

    anyio.run(live)
    piped = project.run("export").stdout
    assert name in piped, "the stored bytes, which hashes are of"
    shown = project.in_terminal("export").replace("\r\n", "\n")
    assert shown.replace("\n", "").isprintable()
    assert "\U000e0100" not in shown
    assert [json.loads(line) for line in shown.splitlines()] == [json.loads(line) for line in piped.splitlines()]


def test_the_past_is_the_same_today(project: Project) -> None:
    done = project.call("compare")
    assert done.returncode == 0
    assert "verdict\tthe past would be the same" in done.stdout
    told = json.loads(project.call("compare", "--json").stdout)
    assert (told["decided"], told["planned"]) == (told["events"], 1)


@pytest.mark.parametrize("command", [
    ["replay"], ["diff", "0.."], ["files"], ["compare"], ["export"], ["verify", "--checkpoint", "x.json"],
])
def test_a_log_that_is_not_there_is_one_line_and_2(tmp_path: Path, command: list[str]) -> None:
    done = Project(tmp_path, tmp_path / "none").call(*command)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "none").exists()
