"""A session of approvals, commands and steering, told by `log` and `show`: by work, hold, command and instruction."""

import io
import json
from collections import deque
from pathlib import Path

import anyio
import pytest

from adapters.cli.watching import Bar
from adapters.log.reader import LogReader
from codespace_es.command_handlers.deciding import ResolveHold
from codespace_es.command_handlers.inbox import QueueIntentCommand, WriteIntent
from codespace_es.command_handlers.observing import AskProcess
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.command_handlers.steering import ClaimNextCommand, CompleteIntentCommand, OpenWorkCommand
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.invocation import ExecCommand
from replay.attended import Attended
from support.cli_project import Project
from support.holds import ask
from support.server import Server

PATCH = "*** Begin Patch\n*** Add File: {name}\n+hello\n*** End Patch\n"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, str]]:
    """A log in which a work was steered, with a patch that was held and a command; and a patch beside it."""
    scratch = tmp_path_factory.mktemp("stories")
    (root := scratch / "project").mkdir()

    async def live() -> dict[str, str]:
        async with Server(scratch, {"demo": root}, approvals="confirm") as server:
            ids = {"work": (await ask(server, OpenWorkCommand(workspace_id="demo", title="A work")))["work_id"]}
            intent = await ask(server, WriteIntent(work_id=ids["work"], body="be kind", delivery="next_checkpoint"))
            ids["intent"] = intent["intent_id"]
            await ask(server, QueueIntentCommand(intent_id=ids["intent"], revision=intent["revision"]))

            async def resumed(command: ApplyPatch | ExecCommand) -> tuple[str, dict]:
                held = (await ask(server, command))["approval_id"]
                await ask(server, ResolveHold(approval_id=held, decision="grant"))
                return held, await ask(server, ResumeOperation(approval_id=held))

            patch = ApplyPatch(workspace_id="demo", patch=PATCH.format(name="a"), work_id=ids["work"])
            ids["hold"], done = await resumed(patch)
            ids["operation"] = done["apply_patch"]["operation_id"]
            await ask(server, ClaimNextCommand(work_id=ids["work"]))
            run = ExecCommand(workspace_id="demo", command=["true"], work_id=ids["work"])
            _, done = await resumed(run)
            ids["process"] = done["exec_command"]["process_id"]
            with anyio.fail_after(20):
                while not (await ask(server, AskProcess(process_id=ids["process"])))["eof"]:
                    await anyio.sleep(0.01)
            await ask(server, CompleteIntentCommand(work_id=ids["work"], intent_id=ids["intent"]))
            _, done = await resumed(ApplyPatch(workspace_id="demo", patch=PATCH.format(name="b")))
            ids["other"] = done["apply_patch"]["operation_id"]
            ids["server"] = server.world.instance_id
        return ids

    ids = anyio.run(live)
    return Project(root, scratch / "data"), ids


def topics(project: Project, *filters: str) -> list[str]:
    return [json.loads(line)["topic"] for line in project.call("log", *filters, "--json").stdout.splitlines()]


def test_a_work_is_told_with_what_was_asked_and_what_was_done(told: tuple[Project, dict[str, str]]) -> None:
    project, ids = told
    story = json.loads(project.call("show", ids["work"], "--json").stdout)
    assert (story["kind"], story["work"]["title"], story["work"]["state"]) == ("work", "A work", "active")
    assert [(each["state"], each["text"]) for each in story["work"]["intents"]] == [("done", "be kind")]
    begun = [each["topic"] for each in story["work"]["done"]]
    assert begun == ["approval.created.v1", "operation.minted.v1", "approval.created.v1", "process.spawned.v1"]
    assert story["work"]["done_count"] == len(begun)
    plain = project.call("show", ids["work"]).stdout
    assert f"instruction, done\t{ids['intent']}  be kind\n" in plain


def test_an_instruction_is_told_with_its_text_and_its_end(told: tuple[Project, dict[str, str]]) -> None:
    project, ids = told
    story = json.loads(project.call("show", ids["intent"], "--json").stdout)
    assert (story["kind"], story["intent"]["state"], story["intent"]["text"]) == ("intent", "done", "be kind")
    assert [each["topic"].split(".")[1] for each in story["events"]] == [
        "intent_drafted", "intent_queued", "intent_claimed", "intent_completed",
    ]
    assert project.call("show", ids["intent"]).returncode == 0


def test_an_operation_names_its_work_and_its_hold_and_a_server_what_was_begun(
    told: tuple[Project, dict[str, str]]
) -> None:
    project, ids = told
    plain = project.call("show", ids["operation"]).stdout
    assert f"work\t{ids['work']}\n" in plain
    assert f"held as\t{ids['hold']}\n" in plain
    assert "begun\t6\n" in project.call("show", ids["server"]).stdout


def test_the_log_is_filtered_by_work_hold_and_command(told: tuple[Project, dict[str, str]]) -> None:
    project, ids = told
    of_work = topics(project, "--work", ids["work"])
    assert of_work.count("operation.minted.v1") == of_work.count("operation.finished.v1") == 1
    expected = {"process.spawned.v1", "process.exited.v1", "steering.intent_claimed.v1", "approval.granted.v1"}
    assert expected <= set(of_work)
    assert topics(project, "--work", ids["work"], "--kind", "approval.created") == ["approval.created.v1"] * 2
    of_hold = topics(project, "--approval", ids["hold"])
    assert of_hold[-3:] == ["operation.finished.v1", "approval.consumed.v1", "claim.released.v1"]
    assert {topic.split(".")[0] for topic in topics(project, "--process", ids["process"])} == {"process", "approval"}
    assert topics(project, "--operation", ids["other"], "--work", ids["work"]) == []
    assert "process.spawned.v1" in topics(project, "--workspace", "demo", "--kind", "process")


def test_the_report_tells_what_people_asked_for_who_decided_and_what_is_open(
    told: tuple[Project, dict[str, str]], tmp_path: Path
) -> None:
    project, ids = told
    assert project.call("report", "--output", str(tmp_path / "all.html")).returncode == 0
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert "be kind" in page
    assert "the client itself" in page
    assert f"<dt>held as</dt><dd>{ids['hold']}</dd>" in page
    assert "Still open" not in page
    granted = json.loads(project.call("log", "--kind", "approval.granted", "--json").stdout.splitlines()[0])["position"]
    assert project.call("report", f"..{granted}", "--output", str(tmp_path / "then.html")).returncode == 0
    page = (tmp_path / "then.html").read_text(encoding="utf-8")
    still_open = page.partition("Still open")[2].partition("Timeline")[0]
    assert ids["hold"] in still_open
    assert ids["intent"] in still_open


def test_a_bar_follows_a_long_read_and_is_gone_at_its_end(told: tuple[Project, dict[str, str]]) -> None:
    project, _ = told
    drawn, times = io.StringIO(), iter(range(1000))
    with LogReader(project.data / "codespace.db", CATALOGUE) as source:
        bar = Bar(source.head()[0], drawn, clock=lambda: next(times))
        attended = Attended(source, bar.show)
        assert len(deque(attended.raw_rows())) == len(deque(attended.read_log())) == source.head()[0]
        bar.show(source.head()[0])
        bar.erase()
    head = project.call("log", "--limit", "1").stdout.split("\t")[0]
    assert f"{int(head):,} of {int(head):,}  [##############################] 100%" in drawn.getvalue()
    assert drawn.getvalue().endswith("\r\x1b[K")


def test_no_bar_is_drawn_where_nobody_looks(told: tuple[Project, dict[str, str]]) -> None:
    project, _ = told
    assert project.call("verify").stderr == ""
