"""Short ways to run commands on a server without a transport, and to see them to their end."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from codespace_es.command_handlers.driving import ResizeTerminal, TerminateProcess, WriteInput
from codespace_es.command_handlers.executing import ExecResult
from codespace_es.command_handlers.observing import AskProcess, OutputRead, ReadProcess
from codespace_es.invocation import ExecCommand
from codespace_es.projections.process_status import ProcessReport
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from support.server import Server
from support.system_python import PYTHON

SECONDS_MAX = 60
"""Not a measure of speed: when a wait is given up for lost."""


class Commands:
    """What can be done with commands in workspace `ws` of a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._started: list[str] = []

    async def end_all(self) -> None:
        """End whatever was started by this object and is still there, for the next who uses this server."""
        for process_id in self._started:
            if (await self.status(process_id)).state == "running":
                await self.terminate(process_id, signal="KILL", grace_ms=0)
            await self.ended(process_id)

    async def start(self, *argv: str, workspace_id: str = "ws", **fields: Any) -> str:
        """Return the id of a command that was let go."""
        return (await self.exec(*argv, workspace_id=workspace_id, **fields)).process_id

    async def exec(self, *argv: str, workspace_id: str = "ws", **fields: Any) -> ExecResult:
        answer = await self.server.handle(ExecCommand(workspace_id=workspace_id, command=list(argv), **fields))
        assert isinstance(answer, ExecResult)
        self._started.append(answer.process_id)
        return answer

    async def python(self, script: str, *arguments: str, **fields: Any) -> str:
        """Return the id of a small Python program that was let go."""
        return await self.start(PYTHON, "-I", "-c", script, *arguments, **fields)

    async def shell(self, script: str, **fields: Any) -> str:
        return await self.start("bash", "-c", script, **fields)

    async def read(self, process_id: str, cursor: int = 0, **fields: Any) -> OutputRead:
        answer = await self.server.handle(ReadProcess(process_id=process_id, cursor=cursor, **fields))
        assert isinstance(answer, OutputRead)
        return answer

    async def status(self, process_id: str) -> ProcessReport:
        answer = await self.server.handle(AskProcess(process_id=process_id))
        assert isinstance(answer, ProcessReport)
        return answer

    async def write(self, process_id: str, text: str, *, eof: bool = False) -> None:
        await self.server.handle(WriteInput.model_validate({"process_id": process_id, "data": text, "eof": eof}))

    async def resize(self, process_id: str, rows: int, cols: int) -> None:
        await self.server.handle(ResizeTerminal(process_id=process_id, rows=rows, cols=cols))

    async def terminate(self, process_id: str, **fields: Any) -> None:
        await self.server.handle(TerminateProcess(process_id=process_id, **fields))

    async def pieces(self, process_id: str, **fields: Any) -> list[OutputRead]:
        """Return all that is read until the end of the output, each piece from the cursor of the one before."""
        pieces = [await self.read(process_id, wait_ms=5_000, **fields)]
        while not pieces[-1].eof:
            pieces.append(await self.read(process_id, pieces[-1].cursor, wait_ms=5_000, **fields))
        return pieces

    async def output(self, process_id: str, **fields: Any) -> str:
        return "".join(piece.chunk for piece in await self.pieces(process_id, **fields))

    async def until(self, process_id: str, wanted: str, times: int = 1) -> str:
        """Return the output as soon as `wanted` is in it so many times."""
        text, cursor = "", 0
        while text.count(wanted) < times:
            piece = await self.read(process_id, cursor, wait_ms=5_000)
            text, cursor = text + piece.chunk, piece.cursor
            assert not piece.eof or text.count(wanted) >= times, f"it ended without {wanted!r} x {times}: {text!r}"
        return text

    async def ended(self, process_id: str) -> ProcessReport:
        """Return the whole report, once the end is on record."""
        while not (report := await self.status(process_id)).eof:
            await anyio.sleep(0.005)
        return report

    async def run(self, *argv: str, **fields: Any) -> tuple[ProcessReport, str]:
        """Run a command to its end; return report and output."""
        process_id = await self.start(*argv, **fields)
        output = await self.output(process_id)
        return await self.status(process_id), output

    async def refused(self, command: Command) -> CodespaceError:
        with pytest.raises(CodespaceError) as refusal:
            await self.server.handle(command)
        return refusal.value

    async def topics(self, process_id: str) -> list[str]:
        """Return what the log says of a command."""
        return [entry.event.TOPIC for entry in await self.server.log.read_stream(process_id)]


def lines_of(path: Path) -> int:
    """Return how often something was counted in a file; 0 if there is none."""
    return len(path.read_text().splitlines()) if path.exists() else 0
