"""Observing a command that was started: how it is, and what it prints. Changes nothing.

Answers from its handle while it lives here, from the log and the body store for ever after. Source: contract A5, B1.9,
B5.5; decisions 10, 21, 22.
"""

from pydantic import Field

from codespace_es.aggregates.process import Exited
from codespace_es.command_handlers.locating import Located, locate
from codespace_es.ports.runner import LiveProcess, OutputChunk, RunnerLostError
from codespace_es.ports.world import World
from codespace_es.projections.output_text import decode_output
from codespace_es.projections.process_status import LiveSight, ProcessReport, project
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller

# process_status


class AskProcess(Command):
    """Ask how a command is."""

    process_id: str = Field(description="A handle from exec_command.")


async def ask_process(world: World, command: AskProcess, caller: Caller) -> ProcessReport:
    """Return what is known. Raises PROCESS_NOT_FOUND."""
    located = await locate(world, command.process_id, caller)
    report = project(located.recorded, live=_sight(located.handle), owner=located.owner)
    head = await _head(world, located)
    return report.model_copy(update={"output_head": head}) if head is not None else report


def _sight(handle: LiveProcess | None) -> LiveSight | None:
    if handle is None:
        return None
    here = handle.peek()
    return LiveSight(handle.leader_status, here.total, here.retained_from)


async def _head(world: World, located: Located) -> str | None:
    """Return the first output of a command whose tail no longer reaches back there."""
    if not isinstance(located.state, Exited) or located.state.exited.output_head is None:
        return None
    content = await world.log.read_body(
        located.recorded[0].stream_id, located.state.exited.output_head.digest
    )
    return None if content is None else decode_output(content, is_more_known=True)[0]


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
    if located.handle is not None:
        chunk = await _read_live(world, located.handle, command)
        if chunk is not None:
            return chunk
        located = await locate(world, command.process_id, caller)
    if isinstance(located.state, Exited):
        return await _read_stored(world, located, command)
    raise CodespaceError(
        ErrorCode.PROCESS_NOT_FOUND, f"The output of {command.process_id} can't be read now.",
        detail={"process_id": command.process_id},
    )


async def _read_live(world: World, handle: LiveProcess, command: ReadProcess) -> OutputRead | None:
    """Return a piece of a living command's output; None if it has ended meanwhile and its exit is on record."""
    deadline = world.clock.monotonic() + command.wait_ms / 1000
    wait_from = command.cursor
    while True:
        wait_ms = max(0, round((deadline - world.clock.monotonic()) * 1000))
        try:
            await handle.read(wait_from, wait_ms=wait_ms, bytes_max=1)
            chunk = await handle.read(command.cursor, wait_ms=0, bytes_max=command.max_bytes)
        except RunnerLostError:
            return None
        text, used = decode_output(chunk.content, is_more_known=chunk.is_end or _has_more(chunk))
        if chunk.is_end and world.live.find(command.process_id) is None:
            return None
        if text or chunk.is_end or wait_ms == 0:
            return OutputRead(
                process_id=command.process_id,
                cursor=chunk.start + used,
                chunk=text,
                eof=chunk.is_end,
                output_lost=command.cursor < chunk.retained_from,
                retained_from=chunk.retained_from,
            )
        wait_from = chunk.start + len(chunk.content)


def _has_more(chunk: OutputChunk) -> bool:
    """Return whether more bytes are known and this piece is too small for a character."""
    return chunk.start + len(chunk.content) < chunk.total and len(chunk.content) < 4


async def _read_stored(world: World, located: Located, command: ReadProcess) -> OutputRead:
    """Return a piece of what was kept of an ended command's output. Raises TIMEOUT at the end of one that timed out."""
    assert isinstance(located.state, Exited)
    exited = located.state.exited
    if exited.termination == "timeout" and command.cursor >= exited.output_bytes:
        raise CodespaceError(
            ErrorCode.TIMEOUT, f"{located.process_id} was ended by its time limit; all its output was read.",
            detail={"process_id": located.process_id},
        )
    tail, is_lost = b"", exited.output_tail is None and exited.output_bytes > 0
    if exited.output_tail is not None:
        stored = await world.log.read_body(located.recorded[0].stream_id, exited.output_tail.digest)
        tail, is_lost = stored or b"", stored is None
    retained_from = exited.output_bytes if is_lost else exited.retained_from
    is_unknown = exited.termination == "unknown" and exited.output_tail is None
    start = max(command.cursor, retained_from)
    content = tail[start - retained_from : start - retained_from + command.max_bytes]
    end = start + len(content)
    has_more = end < exited.output_bytes
    text, used = decode_output(content, is_more_known=not has_more or len(content) < 4)
    return OutputRead(
        process_id=located.process_id,
        cursor=start + used,
        chunk=text,
        eof=start + used >= exited.output_bytes,
        output_lost=command.cursor < retained_from or is_unknown,
        retained_from=retained_from,
    )
