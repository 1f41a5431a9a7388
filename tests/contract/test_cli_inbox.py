"""`inbox` at the command line: what is printed, how ids are named, what is refused."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from codespace_es.command_handlers.finishing import FinishWorkCommand
from codespace_es.command_handlers.steering import ClaimNextCommand, OpenWorkCommand
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from support.cli_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


@pytest.fixture
def work_id(project: Project) -> str:
    return str(agent(project, OpenWorkCommand(workspace_id="demo", title="Tidy\tup"))["work_id"])


def agent(project: Project, command: Command) -> dict[str, Any]:
    """Return what an agent is answered."""

    async def live() -> dict[str, Any]:
        async with project.opened() as opened:
            caller = Caller("mcp", RequestId(f"req-{opened.world.ids.uuid()}"))
            return (await opened.codespace.handle(command, caller)).to_wire()

    return anyio.run(live)


def say(project: Project, *arguments: str) -> Any:
    """Return the JSON of a command line that succeeds."""
    done = project.call("inbox", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_works_and_intents_are_one_line_each_when_piped(project: Project, work_id: str) -> None:
    first = say(project, "write", work_id, "One\nline", "--queue")
    second = say(project, "write", work_id, "two", "--kind", "note")
    assert project.call("inbox", "works").stdout == f"{work_id}\tactive\tdemo\t4\tTidy\\tup\n"
    assert project.call("inbox", "list", work_id).stdout.splitlines() == [
        f"{first['intent_id']}\tqueued\tfollow_up\tafter_current_work\t1\t2\tOne\\nline",
        f"{second['intent_id']}\tdraft\tnote\tafter_current_work\t2\t1\ttwo",
    ]
    assert say(project, "works", "--workspace", "other") == []


def test_an_id_may_be_begun_and_has_to_be_one(project: Project, work_id: str) -> None:
    start = work_id.removeprefix("work-")[:8]
    first = say(project, "write", start, "a")
    assert first["work_id"] == work_id
    assert say(project, "queue", first["intent_id"][:14])["state"] == "queued"
    say(project, "write", work_id, "b")
    for arguments, told in (
        (("list", "work-x"), "WORK_NOT_FOUND"), (("cancel", "fb-"), "2 ids begin with"), (("release", ""), "2 ids"),
        (("queue", "fb-x"), "INTENT_NOT_FOUND"),
    ):
        done = project.call("inbox", *arguments)
        assert done.returncode == 1
        assert told in done.stderr


def test_a_text_is_read_from_stdin_whole(project: Project, work_id: str) -> None:
    done = project.run("inbox", "write", work_id, "-", "--json", stdin="first\nsecond\n")
    assert json.loads(done.stdout)["body"] == "first\nsecond"


def test_a_revision_that_is_named_has_to_be_the_present_one(project: Project, work_id: str) -> None:
    intent_id = say(project, "write", work_id, "a")["intent_id"]
    assert say(project, "edit", intent_id, "b", "--revision", "1")["revision"] == 2
    done = project.call("inbox", "edit", intent_id, "c", "--revision", "1")
    assert (done.returncode, "INTENT_REVISION_CONFLICT" in done.stderr) == (1, True)
    assert say(project, "edit", intent_id, "c", "--delivery", "next_work")["delivery"] == "next_work"


def test_the_queue_is_told_in_its_new_order(project: Project, work_id: str) -> None:
    names = [say(project, "write", work_id, text, "--queue")["intent_id"] for text in "abc"]
    told = say(project, "reorder", work_id, names[2], names[0], names[1])
    assert [(each["body"], each["position"]) for each in told] == [("c", 1), ("a", 2), ("b", 3)]
    assert "INVALID_ARGUMENT" in project.call("inbox", "reorder", work_id, names[0], names[0]).stderr


def test_what_is_claimed_can_be_put_back_and_not_taken_back(project: Project, work_id: str) -> None:
    intent_id = say(project, "write", work_id, "a", "--delivery", "next_checkpoint", "--queue")["intent_id"]
    agent(project, ClaimNextCommand(work_id=work_id))
    assert "INTENT_ALREADY_CLAIMED" in project.call("inbox", "cancel", intent_id).stderr
    assert say(project, "release", intent_id)["state"] == "queued"
    assert say(project, "cancel", intent_id)["state"] == "cancelled"


def test_a_repeat_of_a_key_tells_the_intent_as_it_is(project: Project, work_id: str) -> None:
    first = say(project, "write", work_id, "a", "--key", "k", "--queue")
    assert say(project, "write", work_id, "a", "--key", "k", "--queue") == first


def test_a_draft_for_a_closed_work_waits_for_the_next(project: Project, work_id: str) -> None:
    agent(project, FinishWorkCommand(work_id=work_id))
    told = project.call("inbox", "write", work_id, "a").stdout
    assert "work\tthe next one" in told
    assert "delivery\tnext_work" in told


def test_a_stop_tells_what_it_cannot_end(project: Project, work_id: str) -> None:
    told = project.call("inbox", "stop", work_id, "--reason", "Wait.")
    assert "state\tclaimed" in told.stdout
    assert "still running\t0" in told.stdout


def test_works_are_nothing_that_a_dead_server_has_left_open(project: Project, work_id: str) -> None:
    done = project.call("doctor", "--workspace", f"demo={project.root}")
    assert "steer-" not in done.stdout


def test_without_a_log_there_is_no_inbox(project: Project) -> None:
    done = project.call("inbox", "works")
    assert (done.returncode, "no event log" in done.stderr) == (2, True)
