"""`read_process`: read what a process prints."""

from adapters.mcp_server.tool import LARGE_RESULT, Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.observing import OutputRead, ReadProcess
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ReadProcess, caller: Caller) -> Answer:
    """Return a piece of its output."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="read_process",
    title="Read output",
    description=(
        "Read the combined output from cursor on, waiting up to wait_ms for more; go on with the cursor answered. "
        "output_lost: bytes between your cursor and retained_from are gone. eof isn't success: see process_status. "
        "TIMEOUT: the time limit ended it and all was read."
    ),
    command=ReadProcess,
    answer=OutputRead,
    call=call,
    is_read_only=True,
    is_idempotent=True,
    meta=LARGE_RESULT,
)
