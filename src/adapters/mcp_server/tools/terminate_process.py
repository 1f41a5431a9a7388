"""`terminate_process`: end a process and its whole tree."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.driving import Done, TerminateProcess
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: TerminateProcess, caller: Caller) -> Answer:
    """Return once its end was asked for."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="terminate_process",
    title="End process",
    description=(
        "End a process and all it started: signal, then KILL after grace_ms. Answers at once; of an ended one a no-op."
    ),
    command=TerminateProcess,
    answer=Done,
    call=call,
    is_read_only=False,
    is_destructive=True,
    is_idempotent=True,
)
