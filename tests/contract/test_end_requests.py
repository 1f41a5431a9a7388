"""An end counts once it is on record: a wish that could not be leaves nothing behind, an exit waits to be."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from codespace_es.command_handlers.driving import TerminateProcess
from codespace_es.command_handlers.executing import ExecResult
from codespace_es.command_handlers.observing import AskProcess
from codespace_es.invocation import ExecCommand
from codespace_es.ports.log import Append, StoreUnavailableError
from codespace_es.projections.process_status import ProcessReport
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from support.cli_project import Project

pytestmark = pytest.mark.anyio


async def test_an_end_that_could_not_be_recorded_is_recorded_when_it_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = Caller("mcp", RequestId("req-1"))
    async with Project.make(tmp_path).opened() as opened:
        started = await opened.codespace.handle(ExecCommand(workspace_id="demo", command=["sleep", "300"]), caller)
        assert isinstance(started, ExecResult)
        terminate = TerminateProcess(process_id=started.process_id, signal="KILL")

        async def refuse(log: object, append: Append, caller: Caller) -> None:
            raise StoreUnavailableError("the disk is full")

        with monkeypatch.context() as patched:
            # A disk that fills up for exactly one commit can't be had on cue.
            patched.setattr(type(opened.world.log), "append", refuse)
            with pytest.raises((CodespaceError, StoreUnavailableError)):
                await opened.codespace.handle(terminate, caller)
        report = await opened.codespace.handle(AskProcess(process_id=started.process_id), caller)
        assert isinstance(report, ProcessReport)
        assert report.state == "running"

        await opened.codespace.handle(terminate, caller)
        while not report.eof:
            await anyio.sleep(0.01)
            report = await opened.codespace.handle(AskProcess(process_id=started.process_id), caller)
            assert isinstance(report, ProcessReport)
        assert report.termination == "terminated"


@pytest.mark.parametrize("moment", ["timeout", "exit"])
async def test_a_log_that_cannot_be_written_for_a_while_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The server goes on, and what is told meanwhile is what is on record: the command runs."""
    caller = Caller("mcp", RequestId("req-1"))
    refused: list[Append] = []
    async with Project.make(tmp_path).opened() as opened:
        command = ["sleep", "300"] if moment == "timeout" else ["true"]
        append_kind = type(opened.world.log)
        really = append_kind.append

        async def refuse_twice(log: Any, append: Append, caller: Caller) -> Any:
            topic = append.events[0].event.TOPIC
            if topic in ("process.exited.v1", "process.end_requested.v1") and len(refused) < 2:
                refused.append(append)
                raise StoreUnavailableError("the disk is full")
            return await really(log, append, caller)

        monkeypatch.setattr(append_kind, "append", refuse_twice)
        started = await opened.codespace.handle(
            ExecCommand(workspace_id="demo", command=command, timeout_ms=50), caller
        )
        assert isinstance(started, ExecResult)
        ask = AskProcess(process_id=started.process_id)
        while True:
            report = await opened.codespace.handle(ask, caller)
            assert isinstance(report, ProcessReport)
            if report.eof:
                break
            await anyio.sleep(0.01)
        assert len(refused) == 2
        assert report.termination == ("timeout" if moment == "timeout" else "exited")
        again = await opened.codespace.handle(ExecCommand(workspace_id="demo", command=["true"]), caller)
        assert isinstance(again, ExecResult)
