"""`process_resize`: another size for a terminal."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.driving import Resized, ResizeTerminal
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ResizeTerminal, caller: Caller) -> Answer:
    """Return the size it has now."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="process_resize",
    title="Resize terminal",
    description=(
        "Give a process' terminal another size. PROCESS_NOT_TTY without one, PROCESS_NOT_RUNNING after the end."
    ),
    command=ResizeTerminal,
    answer=Resized,
    call=call,
    is_read_only=False,
    is_idempotent=True,
)
