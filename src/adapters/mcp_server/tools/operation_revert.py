"""`operation_revert`: undo an applied operation."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.patch_result import PatchResult


async def call(codespace: Codespace, command: RevertOperation, caller: Caller) -> Answer:
    """Return what the undo did or would do."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="operation_revert",
    title="Undo operation",
    description=(
        "Undo an applied operation while every file is as it left them; else REVERT_CONFLICT names who changed them. "
        "The undo is an operation too and can be undone."
    ),
    command=RevertOperation,
    answer=PatchResult,
    call=call,
    is_read_only=False,
    is_destructive=True,
)
