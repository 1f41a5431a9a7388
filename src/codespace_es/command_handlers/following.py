"""`exec_command` with `wait_ms`: start, wait for the end, and tell how it stands in the same answer.

Waiting is all that is added: what goes on record, what a repeat with the key means and what a held request does are
`executing`'s. A caller who goes away while it waits leaves the command running, as after any start.
"""

from typing import Any

from anyio import move_on_after, sleep

from codespace_es.command_handlers.executing import ExecResult, exec_command
from codespace_es.command_handlers.observing import AskProcess, ReadProcess, ask_process, read_living, read_process
from codespace_es.invocation import ExecCommand
from codespace_es.ports.live_processes import Living
from codespace_es.ports.world import World
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller

_ELSEWHERE_SECONDS = 0.1


async def exec_and_follow(world: World, command: ExecCommand, caller: Caller) -> ExecResult:
    """Return the process that was started, and if the caller waits, how it stands and what it has printed first.

    Raises:
        CodespaceError: the codes of contract B1.8.
    """
    started = await exec_command(world, command, caller)
    if command.wait_ms == 0:
        return started
    living = world.live.find(started.process_id)
    with move_on_after(command.wait_ms / 1000):
        await _until_ended(world, started.process_id, living, caller)
    report = await ask_process(world, AskProcess(process_id=started.process_id), caller)
    told = {
        "state": report.state, "termination": report.termination, "exit_code": report.exit_code,
        "signal": report.signal, **await _first_output(world, started.process_id, living, caller),
    }
    if report.termination == "unknown":  # whoever has let it go can't be asked any more
        told["dispatch_status"] = "unknown"
    return started.model_copy(update=told)


async def _until_ended(world: World, process_id: str, living: Living | None, caller: Caller) -> None:
    """Return once its end is on record, or its server is dead. One that lives elsewhere is asked about again."""
    if living is not None:
        await living.recorded.wait()
        return
    question = AskProcess(process_id=process_id)
    while not world.live.is_closing:
        if (await ask_process(world, question, caller)).state != "running":
            return
        await sleep(_ELSEWHERE_SECONDS)


async def _first_output(world: World, process_id: str, living: Living | None, caller: Caller) -> dict[str, Any]:
    command = ReadProcess(process_id=process_id)
    nothing = {"output": "", "cursor": 0, "eof": True}
    try:
        if living is not None:
            read = await read_living(world, living, command)
        else:
            read = await read_process(world, command, caller)
    except CodespaceError as error:
        if error.code is ErrorCode.TIMEOUT:  # it was silent until its time was over
            return nothing
        if error.code is ErrorCode.PROCESS_NOT_FOUND:  # it lives in another server, and can only be read there
            return {}
        raise
    if read is None:
        return nothing
    return {"output": read.chunk, "cursor": read.cursor, "eof": read.eof, "output_lost": read.output_lost or None}
