"""What the command line tells of commands that ran: the list, the story of one, and what confines them."""

import json
from pathlib import Path

import anyio
import pytest

from adapters.bootstrap import OpenCodespace
from codespace_es.command_handlers.driving import TerminateProcess
from codespace_es.command_handlers.executing import ExecResult
from codespace_es.command_handlers.observing import AskProcess, ReadProcess
from codespace_es.invocation import ExecCommand
from codespace_es.projections.process_status import ProcessReport
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from support.cli_project import Project

pytestmark = pytest.mark.anyio


async def _run(opened: OpenCodespace, *argv: str, until: str = "exited") -> str:
    """Return the id of a command that has ended, or has printed something."""
    caller = Caller("mcp", RequestId(f"req-{opened.world.ids.uuid()}"), "tester/1")
    answer = await opened.codespace.handle(ExecCommand(workspace_id="demo", command=list(argv)), caller)
    assert isinstance(answer, ExecResult)
    while True:
        report = await opened.codespace.handle(AskProcess(process_id=answer.process_id), caller)
        assert isinstance(report, ProcessReport)
        if report.eof or (until == "running" and report.output_total > 0):
            return answer.process_id
        await opened.codespace.handle(ReadProcess(process_id=answer.process_id, wait_ms=5_000), caller)


async def test_commands_are_listed_while_they_run_and_told_for_ever(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    async with project.opened() as opened:
        ended = await _run(opened, "bash", "-c", "echo FIRST; seq 100000; echo 'it\x1b[31m ends'; exit 3")
        with pytest.raises(CodespaceError) as refusal:
            await _run(opened, "no-such-program")
        never = refusal.value.detail["process_id"]
        living = await _run(opened, "bash", "-c", "echo up; sleep 300", until="running")
        listed = await anyio.to_thread.run_sync(lambda: project.call("processes"))
        whole = await anyio.to_thread.run_sync(lambda: project.call("processes", "--all", "--json"))
        caller = Caller("mcp", RequestId("req-1"))
        await opened.codespace.handle(TerminateProcess(process_id=living, signal="KILL"), caller)
        while True:
            report = await opened.codespace.handle(AskProcess(process_id=living), caller)
            assert isinstance(report, ProcessReport)
            if report.eof:
                break
            await anyio.sleep(0.01)
    assert [line.split("\t")[:2] for line in listed.stdout.splitlines()] == [[living, "running"]]
    assert [(each["process_id"], each["state"]) for each in json.loads(whole.stdout)] == [
        (ended, "exited"), (living, "running"),
    ]
    assert project.call("processes").stdout == ""
    assert [line.split("\t")[1] for line in project.call("processes", "--all").stdout.splitlines()] == [
        "exited 3", "terminated",
    ]
    story = project.call("show", ended).stdout
    assert "status\texited 3\n" in story
    assert "FIRST\n1\n2\n" in story
    assert "\n100000\nit\\x1b[31m ends\n" in story
    assert "bytes of output, those from" in story
    told = json.loads(project.call("show", ended, "--json").stdout)["process"]
    assert told["argv"][:2] == ["bash", "-c"]
    assert told["report"]["exit_code"] == 3
    assert "never started\t" in project.call("show", never).stdout


async def test_a_living_command_is_told_as_running_and_by_its_end_afterwards(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    async with project.opened() as opened:
        living = await _run(opened, "bash", "-c", "echo up; sleep 300", until="running")
        story = await anyio.to_thread.run_sync(lambda: project.call("show", living))
    assert "status\trunning\n" in story.stdout
    assert "kept by its server until it ends" in story.stdout
    assert "status\tterminated\n" in project.call("show", living).stdout


def test_doctor_says_what_confines_commands(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    told = project.run("doctor", "--workspace", f"demo={project.root}")
    commands = [line.split("\t") for line in told.stdout.splitlines() if line.split("\t")[1] == "commands"]
    assert len(commands) == 1
    assert commands[0][2].startswith("Sandbox level ")


def test_a_runner_refuses_a_place_that_others_may_write(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    refused = project.run("runner", "--socket", str(tmp_path / "open" / "s"))
    assert refused.returncode == 2
    assert "may be written by others" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
