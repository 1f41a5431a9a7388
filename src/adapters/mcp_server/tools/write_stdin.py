"""`write_stdin`: send text to a running process."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.driving import Done, WriteInput
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: WriteInput, caller: Caller) -> Answer:
    """Return once it was taken, or queued."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="write_stdin",
    title="Write to input",
    description=(
        "Send text to a running process, in order of the calls; eof true closes its input. A line for a program needs "
        "its newline. STDIN_CLOSED: it takes no input. U+0003 interrupts on a terminal only; else "
        "terminate_process with INT."
    ),
    command=WriteInput,
    answer=Done,
    call=call,
    is_read_only=False,
    is_destructive=True,
    is_open_world=True,
)
