"""A wish to end a command counts once it is on record: one that could not be recorded leaves nothing behind."""

from pathlib import Path

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
