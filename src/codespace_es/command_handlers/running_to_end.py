"""A command run to its end on behalf of code that waits for it: started, followed, and ended with its caller.

Started as by a client; the first of its output is kept for the caller, all of it as ever for whoever asks.
"""

from contextlib import suppress
from dataclasses import dataclass

import anyio

from codespace_es.command_handlers.driving import TerminateProcess, terminate_process
from codespace_es.command_handlers.executing import exec_command
from codespace_es.command_handlers.observing import AskProcess, ReadProcess, ask_process, read_process
from codespace_es.invocation import ExecCommand
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ProcessId


@dataclass(frozen=True, slots=True)
class EndedCommand:
    """A command that has ended."""

    process_id: str
    termination: str
    exit_code: int | None
    output: str
    is_output_cut: bool
    """There was more, or some of it was printed faster than it could be read."""


async def run_to_end(
    world: World, command: ExecCommand, caller: Caller, *, is_granted: bool, is_gated: bool
) -> EndedCommand:
    """Return how `command` ended; for the flags see `exec_command`. Cancelled, it ends the command.

    Raises:
        CodespaceError: those of `exec_command`.
    """
    is_left = False
    running: list[ProcessId] = []

    def end(process_id: ProcessId) -> None:
        world.effects.start(lambda: _terminate(world, process_id, caller))

    def on_started(process_id: ProcessId) -> None:
        running.append(process_id)
        if is_left:
            end(process_id)

    try:
        started = await exec_command(
            world, command, caller, is_granted=is_granted, is_gated=is_gated, on_started=on_started
        )
        output, is_cut = await _read_all(world, started.process_id, caller)
        report = await ask_process(world, AskProcess(process_id=started.process_id), caller)
    except anyio.get_cancelled_exc_class():
        is_left = True  # what is being started now is ended as soon as it runs
        for process_id in running:
            end(process_id)
        raise
    return EndedCommand(started.process_id, report.termination or "unknown", report.exit_code, output, is_cut)


async def _terminate(world: World, process_id: ProcessId, caller: Caller) -> None:
    """End a command that nobody waits for any more. Where that can't be put on record, its time limit ends it."""
    with suppress(CodespaceError, StoreUnavailableError):
        await terminate_process(world, TerminateProcess(process_id=process_id), caller)


async def _read_all(world: World, process_id: str, caller: Caller) -> tuple[str, bool]:
    """Return the first of what it prints, and whether that isn't all, once it has ended."""
    chunks: list[str] = []
    kept = cursor = 0
    is_cut = False
    while True:
        room = limits.TOOL_OUTPUT_BYTES_MAX - kept
        command = ReadProcess(
            process_id=process_id, cursor=cursor, wait_ms=limits.READ_OUTPUT_WAIT_MS_MAX,
            max_bytes=min(room if room > 0 else limits.READ_OUTPUT_BYTES_MAX, limits.READ_OUTPUT_BYTES_MAX),
        )
        try:
            read = await read_process(world, command, caller)
        except CodespaceError as error:
            if error.code is not ErrorCode.TIMEOUT:
                raise
            break  # it was ended by its time limit, and all that it had printed was read
        is_cut = is_cut or read.output_lost
        if room > 0:
            chunks.append(read.chunk)
            kept += len(read.chunk.encode())
        elif read.chunk:
            is_cut = True
        cursor = read.cursor
        if read.eof:
            break
    return "".join(chunks), is_cut
