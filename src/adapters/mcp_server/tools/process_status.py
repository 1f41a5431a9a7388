"""`process_status`: how a process is, or how it ended."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.observing import AskProcess
from codespace_es.projections.process_status import ProcessReport
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: AskProcess, caller: Caller) -> Answer:
    """Return what is known."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="process_status",
    title="Process status",
    description=(
        "Tell whether a process runs and how it ended, also after a restart. Only termination=exited with exit_code 0 "
        "is success; signaled, timeout, terminated and unknown are not."
    ),
    command=AskProcess,
    answer=ProcessReport,
    call=call,
    is_read_only=True,
    is_idempotent=True,
)
