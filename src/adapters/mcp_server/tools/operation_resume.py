"""`operation_resume`: run what was held and granted."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.resuming import ResumeOperation, ResumeResult
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ResumeOperation, caller: Caller) -> Answer:
    """Return what it came to."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="operation_resume",
    title="Resume a hold",
    description=(
        "Run a granted hold, exactly once; again, it answers the same. WORKSPACE_BUSY or RESOURCE_QUEUE_FULL "
        "leave it to be resumed again. APPROVAL_AMBIGUOUS: it may have run, so look before you ask again."
    ),
    command=ResumeOperation,
    answer=ResumeResult,
    call=call,
    is_read_only=False,
    is_destructive=True,
    is_idempotent=True,
    is_open_world=True,
)
