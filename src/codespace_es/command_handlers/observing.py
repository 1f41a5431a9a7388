"""Observing a command that was started: how it is, and what it prints. Changes nothing.

Answers from its handle while it lives here, from the log and the body store for ever after. Source: contract A5, B1.9,
B5.5; decisions 10, 21, 22.
"""

from typing import Protocol

from anyio import move_on_after
from pydantic import Field

from codespace_es.aggregates.process import Exited
from codespace_es.command_handlers.locating import Located, locate
from codespace_es.ports.live_processes import Living
from codespace_es.ports.runner import OutputChunk
from codespace_es.ports.world import World
from codespace_es.projections.output_text import CHARACTER_BYTES_MAX, skip_broken_start, take_text
from codespace_es.projections.process_status import LiveSight, ProcessReport, left_by_dead_server, project
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller

_END_GRACE_SECONDS = 0.05
"""So long an answer that is ready waits for the end that is about to be recorded."""
_GATHER_SECONDS = 0.02
"""So long a caller who waits is given what follows his first new byte in one piece: mostly that is all of it."""


class Output(Protocol):
    """What a live process has printed, and prints."""

    async def read(self, cursor: int, *, wait_ms: int, bytes_max: int) -> OutputChunk:
        """Return retained output from max(cursor, retained_from) on; see the port."""
        ...


# process_status


class AskProcess(Command):
    """Ask how a command is."""

    process_id: str = Field(description="A handle from exec_command.")


async def ask_process(world: World, command: AskProcess, caller: Caller) -> ProcessReport:
    """Return what is known. Raises PROCESS_NOT_FOUND."""
    located = await locate(world, command.process_id, caller)
    if located.living is not None and located.living.handle.leader_status is not None:
        # Mostly the rest follows at once: better to tell the whole end a little later than half of it now.
        with move_on_after(_END_GRACE_SECONDS):
            await located.living.recorded.wait()
        if located.living.recorded.is_set():
            located = await locate(world, command.process_id, caller)
    report = project(located.recorded, live=_sight(located.living), owner=located.owner)
    if not located.is_settled:
        report = left_by_dead_server(report)
    head = await _head(world, located)
    return report.model_copy(update={"output_head": head}) if head is not None else report


def _sight(living: Living | None) -> LiveSight | None:
    if living is None:
        return None
    here = living.handle.peek()
    return LiveSight(living.handle.leader_status, here.total, here.retained_from, living.end_cause)


async def _head(world: World, located: Located) -> str | None:
    """Return the first output of a command whose tail no longer reaches back there."""
    if not isinstance(located.state, Exited) or located.state.exited.output_head is None:
        return None
    content = await world.log.read_body(located.recorded[0].stream_id, located.state.exited.output_head.digest)
    return None if content is None else take_text(content, len(content), is_end=False)[0]


# codespace://processes


class ListProcesses(Command):
    """Ask which commands live."""


class ProcessList(Answer):
    """The commands that live."""

    processes: tuple[ProcessReport, ...] = Field(description="Oldest first.")


async def list_processes(world: World, _command: ListProcesses, caller: Caller) -> ProcessList:
    """Return the commands that live, in this server or another."""
    items = await world.log.open_items(kind="process")
    reports = [await ask_process(world, AskProcess(process_id=item.stream_id), caller) for item in items]
    return ProcessList(processes=tuple(report for report in reports if not report.eof))


# read_process


class ReadProcess(Command):
    """Ask for output."""

    process_id: str = Field(description="A handle from exec_command.")
    cursor: int = Field(default=0, ge=0, description="Byte to read from; go on with the cursor that was answered.")
    wait_ms: int = Field(
        default=0, ge=0, le=limits.READ_OUTPUT_WAIT_MS_MAX, description="Wait this long for new output or the end."
    )
    max_bytes: int = Field(
        default=limits.READ_OUTPUT_BYTES_DEFAULT, description=f"At most {limits.READ_OUTPUT_BYTES_MAX}."
    )


class OutputRead(Answer):
    """A piece of the combined output."""

    process_id: str = Field(description="The command.")
    cursor: int = Field(description="Read on from here.")
    chunk: str = Field(description="Text; a character is never cut.")
    eof: bool = Field(description="Nothing follows. Not a sign of success: see process_status.")
    output_lost: bool = Field(description="Bytes between your cursor and retained_from are gone.")
    retained_from: int = Field(description="First byte that can still be read.")


async def read_process(world: World, command: ReadProcess, caller: Caller) -> OutputRead:
    """Return output from the cursor on.

    Raises:
        CodespaceError: OUTPUT_LIMIT, PROCESS_NOT_FOUND; TIMEOUT at the end of all that a timed-out one has printed.
    """
    if not 1 <= command.max_bytes <= limits.READ_OUTPUT_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.OUTPUT_LIMIT,
            f"max_bytes is {command.max_bytes}; it has to be from 1 to {limits.READ_OUTPUT_BYTES_MAX}.",
            detail={"field": "max_bytes"},
        )
    located = await locate(world, command.process_id, caller)
    located.require_here()
    if located.living is not None:
        answer = await read_living(world, located.living, command)
        if answer is not None:
            return answer
        located = await locate(world, command.process_id, caller)
    located.require_here()
    return await _read_stored(world, located, command)


async def read_living(world: World, living: Living, command: ReadProcess) -> OutputRead | None:
    """Return a piece of a living command's output; None if it has ended, which is on record then, and nothing follows.

    Its end is told only once that is on record: whoever has seen it finds the workspace free and the status complete.
    """
    handle, recorded = living.handle, living.recorded
    deadline = world.clock.monotonic() + command.wait_ms / 1000
    wait_from = command.cursor
    while True:
        left_seconds = max(0.0, deadline - world.clock.monotonic())
        await handle.read(wait_from, wait_ms=round(left_seconds * 1000), bytes_max=1)
        left_seconds = max(0.0, deadline - world.clock.monotonic())
        chunk = await gather(handle, command, min(left_seconds, _GATHER_SECONDS))
        left_seconds = max(0.0, deadline - world.clock.monotonic())
        if chunk.is_end and not recorded.is_set():
            with move_on_after(min(left_seconds, _END_GRACE_SECONDS) if chunk.content else left_seconds):
                await recorded.wait()
        if chunk.is_end and recorded.is_set():
            return _told(command, chunk, is_eof=True) if chunk.content else None
        answer = _told(command, chunk, is_eof=False)
        if answer.chunk or chunk.is_end or left_seconds == 0:
            return answer
        wait_from = chunk.start + len(chunk.content)


async def gather(handle: Output, command: ReadProcess, seconds: float) -> OutputChunk:
    """Return a piece of output: what is there, or what is there at its end, or when it is full, or after `seconds`."""
    bytes_max = command.max_bytes + CHARACTER_BYTES_MAX - 1
    chunk = await handle.read(command.cursor, wait_ms=0, bytes_max=bytes_max)
    if seconds <= 0 or chunk.is_end:
        return chunk
    with move_on_after(seconds):
        while not chunk.is_end and len(chunk.content) < bytes_max:
            await handle.read(chunk.start + len(chunk.content), wait_ms=limits.READ_OUTPUT_WAIT_MS_MAX, bytes_max=1)
            chunk = await handle.read(command.cursor, wait_ms=0, bytes_max=bytes_max)
    return chunk


def _told(command: ReadProcess, chunk: OutputChunk, *, is_eof: bool) -> OutputRead:
    """Return the answer: text of whole characters; `is_eof` if it may be, and all of `chunk` was told."""
    is_lost = command.cursor < chunk.retained_from
    skipped = skip_broken_start(chunk.content) if is_lost else 0
    text, used = take_text(chunk.content[skipped:], command.max_bytes, is_end=chunk.is_end)
    return OutputRead(
        process_id=command.process_id,
        cursor=chunk.start + skipped + used,
        chunk=text,
        eof=is_eof and chunk.start + skipped + used >= chunk.total,
        output_lost=is_lost,
        retained_from=chunk.retained_from,
    )


async def _read_stored(world: World, located: Located, command: ReadProcess) -> OutputRead:
    """Return a piece of what was kept of an ended command's output. Raises TIMEOUT at the end of one that timed out."""
    assert isinstance(located.state, Exited), "what doesn't live here has ended, or can't be reached"
    exited = located.state.exited
    if exited.termination == "timeout" and command.cursor >= exited.output_bytes:
        raise CodespaceError(
            ErrorCode.TIMEOUT, f"{located.process_id} was ended by its time limit; all its output was read.",
            detail={"process_id": located.process_id},
        )
    tail = b""
    if exited.output_tail is not None:
        tail = await world.log.read_body(located.recorded[0].stream_id, exited.output_tail.digest) or b""
    retained_from = exited.output_bytes - len(tail)
    start = max(command.cursor, retained_from)
    content = tail[start - retained_from : start - retained_from + command.max_bytes + CHARACTER_BYTES_MAX - 1]
    is_end = start + len(content) >= exited.output_bytes
    answer = _told(command, OutputChunk(start, content, is_end, retained_from, exited.output_bytes), is_eof=True)
    is_gone = exited.termination == "unknown" and exited.output_tail is None
    return answer.model_copy(update={"output_lost": True}) if is_gone else answer
