"""`approvals`: the operator lists, looks, grants and denies, through the real command line on a real log."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.bootstrap import open_codespace
from adapters.cli.options import effective_settings
from adapters.settings.load import Flags
from adapters.settings.problem import StartupError
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.invocation import ExecCommand
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from support.cli_project import PATCH, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.make(tmp_path)
    configuration(made, "operator")
    return made


def configuration(project: Project, approvals: str, **more: Any) -> Path:
    """Write what the operator wants, with commands that could grant: these tests are about the operator."""
    path = project.data.parent / "codespace.toml"
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    path.write_text(
        f'[workspaces.demo]\nroot = "{project.root}"\nprofile = "workspace-write"\napprovals = "{approvals}"\n'
        f"operator_unsafe = true\n{lines}", encoding="utf-8",
    )
    return path


def ask(project: Project, *commands: Command) -> list[dict[str, Any]]:
    """Return what a client is answered, in a server of its own."""
    path = project.data.parent / "codespace.toml"

    async def live() -> list[dict[str, Any]]:
        answers = []
        settings = effective_settings(Flags(data_dir=str(project.data), config=str(path)), {})
        async with open_codespace(settings, transport="stdio") as opened:
            for command in commands:
                caller = Caller("mcp", RequestId(f"req-{opened.world.ids.uuid()}"), "tester/1")
                try:
                    answers.append((await opened.codespace.handle(command, caller)).to_wire())
                except CodespaceError as error:
                    answers.append(error.to_wire())
        return answers

    return anyio.run(live)


def hold(project: Project, command: Command | None = None) -> str:
    """Have a request held; return its hold."""
    told = ask(project, command or ApplyPatch(workspace_id="demo", patch=PATCH))[0]
    assert told["code"] == "APPROVAL_REQUIRED", told
    return str(told["approval_id"])


def with_configuration(project: Project) -> tuple[str, str]:
    return "--config", str(project.data.parent / "codespace.toml")


def test_what_is_held_is_listed_with_enough_to_decide(project: Project) -> None:
    patch = hold(project)
    command = hold(project, ExecCommand(workspace_id="demo", command=["sh", "-c", "echo 'a b' > x"]))
    rows = [line.split("\t") for line in project.call("approvals", "list").stdout.splitlines()]
    assert [row[0] for row in rows] == [patch, command]
    assert rows[0][1:4] == ["pending", "apply_patch", "demo"]
    assert rows[0][5:] == ["tester/1", "Patch greeting.txt"]
    assert rows[1][6] == """Run sh -c 'echo '"'"'a b'"'"' > x'"""
    listed = json.loads(project.call("approvals", "list", "--json").stdout)
    assert [each["approval_id"] for each in listed] == [patch, command]
    assert listed[1]["command"] == ["sh", "-c", "echo 'a b' > x"]


def test_a_hold_is_shown_as_it_would_be_now(project: Project) -> None:
    held = hold(project)
    shown = project.call("approvals", "show", held, *with_configuration(project))
    assert shown.returncode == 0
    assert "-hello\n+good day" in shown.stdout
    assert f"approval\t{held}\nstate\tpending" in shown.stdout
    (project.root / "greeting.txt").write_text("hello\nand more\n")
    moved = project.call("approvals", "show", held, *with_configuration(project))
    assert "moved on\tgreeting.txt" in moved.stdout
    assert " and more" in moved.stdout
    (project.root / "greeting.txt").write_text("other\n")
    told = json.loads(project.call("approvals", "show", held, "--json", *with_configuration(project)).stdout)
    assert told["preview_error"]["code"] == "INVALID_PATCH"


def test_a_grant_is_the_operators_and_lets_it_run_once(project: Project) -> None:
    held = hold(project)
    granted = project.run("approvals", "grant", held[:13], "--reason", "fine", *with_configuration(project))
    assert (granted.returncode, granted.stderr) == (0, "")
    assert granted.stdout == f"approval\t{held}\nstate\tgranted\n"
    assert (project.root / "greeting.txt").read_text() == "hello\n"
    first, again = ask(project, ResumeOperation(approval_id=held), ResumeOperation(approval_id=held))
    assert (first["apply_patch"]["status"], again["apply_patch"]["replayed"]) == ("applied", True)
    told = json.loads(project.call("approvals", "show", held, "--json").stdout)
    assert (told["state"], told["decided_by"], told["reason"]) == ("consumed", "cli", "fine")
    assert told["effect_id"] == first["apply_patch"]["operation_id"]
    assert project.call("approvals", "list").stdout == ""
    assert project.call("verify").returncode == 0


def test_a_hold_whose_stored_answer_was_pruned_is_never_run_again(project: Project) -> None:
    """It was consumed, and nobody can give its answer any more: that is said, with what it led to."""
    held = hold(project)
    project.call("approvals", "grant", held)
    first = ask(project, ResumeOperation(approval_id=held))[0]
    assert project.call("prune", "--larger-than", "1", "--kind", "result", "--yes").returncode == 0
    (project.root / "greeting.txt").write_text("hello\n")
    again = ask(project, ResumeOperation(approval_id=held))[0]
    assert (again["code"], again["approval_id"]) == ("APPROVAL_AMBIGUOUS", held)
    assert again["operation_id"] == first["apply_patch"]["operation_id"]
    assert (project.root / "greeting.txt").read_text() == "hello\n"


def test_a_denial_says_why_and_needs_no_configuration(project: Project) -> None:
    held = hold(project)
    denied = project.call("approvals", "deny", held, "--reason", "not on a Friday", "--json")
    assert json.loads(denied.stdout) == {"approval_id": held, "state": "denied"}
    assert "not on a Friday" in ask(project, ResumeOperation(approval_id=held))[0]["message"]
    again = project.call("approvals", "grant", held)
    assert again.returncode == 1
    assert again.stderr.startswith("codespace-es: APPROVAL_CONFLICT")


@pytest.mark.parametrize("verb", ["show", "grant", "deny"])
def test_what_is_not_held_is_not_found(project: Project, verb: str) -> None:
    hold(project)
    hold(project, ApplyPatch(workspace_id="demo", patch=PATCH, operation_key="k"))
    for name in ("appr-nothing", "appr-"):
        done = project.call("approvals", verb, name)
        assert done.returncode == 1
        assert done.stderr.startswith("codespace-es: APPROVAL_NOT_FOUND")


def test_without_its_directory_a_hold_is_shown_without_a_preview(project: Project) -> None:
    held = hold(project)
    shown = project.call("approvals", "show", held)
    assert shown.returncode == 0
    assert "--config" in shown.stderr
    ask(project, ExecCommand(workspace_id="demo", command=["true"]))
    configuration(project, "off")
    ask(project, ApplyPatch(workspace_id="demo", patch="*** Begin Patch\n*** Add File: b\n+b\n*** End Patch\n"))
    assert "+good day" in project.call("approvals", "show", held).stdout


def test_the_life_of_a_hold_reads_as_a_story(project: Project) -> None:
    """Who asked, what, who decided by which channel, what came of it."""
    held = hold(project)
    project.call("approvals", "grant", held, "--reason", "fine")
    operation_id = ask(project, ResumeOperation(approval_id=held))[0]["apply_patch"]["operation_id"]
    story = project.call("show", held).stdout
    assert "asked by\ttester/1" in story
    assert "what\tPatch greeting.txt" in story
    assert "decided by\tcli" in story
    assert "reason\tfine" in story
    assert f"led to\t{operation_id}" in story
    for sentence in (
        "held in workspace demo, as its operator wants; nothing has run.", "It was granted (fine).",
        "It is about to run.", f"It runs as {operation_id}.", f"It is over, having led to {operation_id}.",
    ):
        assert sentence in story
    told = json.loads(project.call("show", held, "--json").stdout)
    assert told["approval"]["decided_by"] == "cli"
    assert held in project.call("show", operation_id).stdout


@pytest.mark.parametrize("unconfined", ["demo", "other"])
def test_operator_approvals_need_commands_that_cannot_grant(project: Project, unconfined: str) -> None:
    """Neither of the workspace itself, nor of another one of the same server. The operator's own hand isn't refused."""
    other = project.root.parent / "other"
    other.mkdir()
    path = project.data.parent / "codespace.toml"
    roots = {"demo": project.root, "other": other}
    path.write_text("".join(
        f'[workspaces.{name}]\nroot = "{root}"\nprofile = "workspace-write"\n'
        + ('approvals = "operator"\n' if name == "demo" else "")
        + ('sandbox = "off"\n' if name == unconfined else "")
        for name, root in roots.items()
    ), encoding="utf-8")
    with pytest.raises(StartupError, match=f"for workspace '{unconfined}' "):
        ask(project)
    assert not project.call("approvals", "show", "appr-1", "--config", str(path)).stderr.count("level 3")


def test_in_a_terminal_it_is_a_table_with_colours(project: Project) -> None:
    nothing = project.in_terminal("approvals", "list")
    assert "Nothing is held." in nothing or not (project.data / "codespace.db").exists()
    held = hold(project)
    listed = project.in_terminal("approvals", "list")
    assert held[:13] in listed
    assert "Patch greeting.txt" in listed
    shown = project.in_terminal("approvals", "show", held, *with_configuration(project))
    assert "\x1b[32m+good day" in shown
