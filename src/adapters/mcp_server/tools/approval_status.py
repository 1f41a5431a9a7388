"""`approval_status`: how a hold stands."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.asking import AskApproval
from codespace_es.projections.approval_status import ApprovalReport
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: AskApproval, caller: Caller) -> Answer:
    """Return what is known."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="approval_status",
    title="Approval status",
    description=(
        "Tell how a hold stands, who decided, what came of it; while it waits, what it would do to the files as "
        "they are now, and which have moved on since."
    ),
    command=AskApproval,
    answer=ApprovalReport,
    call=call,
    is_read_only=True,
    is_idempotent=True,
)
