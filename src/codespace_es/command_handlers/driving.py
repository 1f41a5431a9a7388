"""Driving a command that was started: its input, its terminal, its end. Append first, act second.

No lease, no policy: whoever may start a command may drive it. Source: contract A5, B1.9, B5.
"""

import hmac
from contextlib import nullcontext, suppress

from pydantic import Field

from codespace_es.aggregates.process import ProcessInputSent, ProcessResized, RecordInput, RecordResize
from codespace_es.command_handlers.locating import Located, locate
from codespace_es.command_handlers.processes import put_on_record
from codespace_es.command_handlers.watching import request_end
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, UnknownTopicError
from codespace_es.ports.runner import InputClosedError, LimitReachedError, NotTerminalError, RunnerLostError
from codespace_es.ports.world import World
from codespace_es.projections.process_status import SIGNAL_NAMES
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller

_SIGNALS = {name.removeprefix("SIG"): number for number, name in SIGNAL_NAMES.items()}


class Done(Answer):
    """It was done."""

    ok: bool = Field(default=True, description="Always true.")


# write_stdin


class WriteInput(Command):
    """Ask for something to be written to a command's input."""

    process_id: str = Field(description="A handle from exec_command.")
    data: str = Field(description="Text.")
    eof: bool = Field(default=False, description="Close the input behind it; a terminal gets its end-of-file.")


async def write_input(world: World, command: WriteInput, caller: Caller) -> Done:
    """Write it, in order of the calls.

    Raises:
        CodespaceError: INVALID_ARGUMENT, PROCESS_NOT_FOUND, PROCESS_NOT_RUNNING, STDIN_CLOSED; RESOURCE_QUEUE_FULL if
            the command doesn't read what was sent before.
    """
    content = _input_bytes(command.data)
    here = world.live.find(command.process_id)
    async with nullcontext() if here is None else here.turn:
        located = await locate(world, command.process_id, caller)
        await _write(world, located, content, is_eof=command.eof, caller=caller)
    return Done()


async def _write(world: World, located: Located, content: bytes, *, is_eof: bool, caller: Caller) -> None:
    """Put on record that it is written, then write it. The command's turn is ours, so room that there is stays.

    What is refused isn't on record, unless the command closed its input between the two.
    """
    living = located.require_running()
    mac = hmac.digest(world.input_key, content, "sha256").hex()
    sent = ProcessInputSent(size_bytes=len(content), is_eof=is_eof, mac=mac)
    try:
        living.handle.require_room(len(content))
        await put_on_record(world, located.process_id, RecordInput(sent), caller)
        await living.handle.write(content, is_eof=is_eof)
    except (InputClosedError, RunnerLostError) as error:
        raise CodespaceError(
            ErrorCode.STDIN_CLOSED, f"{located.process_id} takes no input any more.",
            detail={"process_id": located.process_id},
        ) from error
    except LimitReachedError as error:
        raise CodespaceError(
            ErrorCode.RESOURCE_QUEUE_FULL, f"{located.process_id} doesn't read what was sent before: {error}",
            detail={"process_id": located.process_id},
        ) from error


def _input_bytes(text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, f"data isn't valid Unicode at character {error.start}.",
            detail={"field": "data"},
        ) from error
    if len(content) > limits.INPUT_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"data has {len(content)} bytes; the limit of one write is {limits.INPUT_BYTES_MAX}.",
            detail={"field": "data"},
        )
    return content


# process_resize


class ResizeTerminal(Command):
    """Ask for another terminal size."""

    process_id: str = Field(description="A handle from exec_command with tty true.")
    rows: int = Field(description="1 to 65535.")
    cols: int = Field(description="1 to 65535.")


class Resized(Done):
    """The terminal has this size now."""

    rows: int = Field(description="Rows.")
    cols: int = Field(description="Columns.")


async def resize_terminal(world: World, command: ResizeTerminal, caller: Caller) -> Resized:
    """Resize it. Raises INVALID_COMMAND, PROCESS_NOT_FOUND, PROCESS_NOT_RUNNING, PROCESS_NOT_TTY, in this order."""
    for field, value in (("rows", command.rows), ("cols", command.cols)):
        if not 1 <= value <= limits.TERMINAL_SIZE_MAX:
            raise CodespaceError(
                ErrorCode.INVALID_COMMAND,
                f"{field} is {value}; it has to be from 1 to {limits.TERMINAL_SIZE_MAX}.",
                detail={"field": field},
            )
    here = world.live.find(command.process_id)
    async with nullcontext() if here is None else here.turn:
        located = await locate(world, command.process_id, caller)
        await _resize(world, located, command, caller)
    return Resized(rows=command.rows, cols=command.cols)


async def _resize(world: World, located: Located, command: ResizeTerminal, caller: Caller) -> None:
    """Put on record that it is resized, then resize it. The command's turn is ours."""
    living = located.require_running()
    if not located.state.spawned.request.tty:
        raise _not_terminal(located)
    resized = ProcessResized(rows=command.rows, columns=command.cols)
    await put_on_record(world, located.process_id, RecordResize(resized), caller)
    try:
        await living.handle.resize(command.rows, command.cols)
    except NotTerminalError as error:
        raise _not_terminal(located) from error
    except RunnerLostError as error:
        raise CodespaceError(
            ErrorCode.PROCESS_NOT_RUNNING, f"{located.process_id} has ended.",
            detail={"process_id": located.process_id},
        ) from error


def _not_terminal(located: Located) -> CodespaceError:
    return CodespaceError(
        ErrorCode.PROCESS_NOT_TTY, f"{located.process_id} has no terminal.",
        detail={"process_id": located.process_id},
    )


# terminate_process


class TerminateProcess(Command):
    """Ask for a command's end."""

    process_id: str = Field(description="A handle from exec_command.")
    signal: str = Field(default="TERM", description="TERM, INT, HUP, QUIT, KILL or another standard signal.")
    grace_ms: int = Field(
        default=limits.TERMINATE_GRACE_MS_DEFAULT, ge=0, le=limits.TERMINATE_GRACE_MS_MAX,
        description="What is left of its whole tree after this is killed.",
    )


async def terminate_process(world: World, command: TerminateProcess, caller: Caller) -> Done:
    """End it and all it has started; of an ended one it is a no-op. Raises INVALID_ARGUMENT, PROCESS_NOT_FOUND."""
    number = _SIGNALS.get(command.signal.upper().removeprefix("SIG"))
    if number is None:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, f"signal {command.signal[:40]!r} is unknown; known: {', '.join(_SIGNALS)}.",
            detail={"field": "signal"},
        )
    located = await locate(world, command.process_id, caller)
    located.require_here()
    if located.living is not None:
        with suppress(RunnerLostError):  # then all that it ran is ended already
            await request_end(
                world, located.process_id, located.living, cause="caller", signal=number, grace_ms=command.grace_ms,
                caller=caller,
            )
    return Done()


async def end_all(world: World, caller: Caller) -> None:
    """Ask every command that lives here to end, since this server does. Their exits are recorded by their watchers.

    Where that can't be put on record they end all the same; each watcher finds out too, and fails by it.
    """
    number, grace_ms = _SIGNALS["TERM"], limits.SHUTDOWN_GRACE_MS
    for process_id in world.live:
        living = world.live.find(process_id)
        if living is None:
            continue
        with suppress(RunnerLostError):  # then all that it ran is ended already
            try:
                await request_end(
                    world, process_id, living, cause="shutdown", signal=number, grace_ms=grace_ms, caller=caller
                )
            except (StoreUnavailableError, InstanceClosedError, UnknownTopicError):
                await living.handle.end(signal=number, grace_ms=grace_ms)
