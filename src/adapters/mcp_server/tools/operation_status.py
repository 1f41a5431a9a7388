"""`operation_status`: what became of a patch."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.projections.operation_status import OperationReport
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ReportOperation, caller: Caller) -> Answer:
    """Return what is known."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="operation_status",
    title="Operation status",
    description=(
        "The truth about a patch or undo, by exactly one of id and key, also after a restart. Runs nothing. "
        "OPERATION_NOT_FOUND proves nothing while the call may be in flight."
    ),
    command=ReportOperation,
    answer=OperationReport,
    call=call,
    is_read_only=True,
    is_idempotent=True,
)
