"""`read`: a part of a file, and the version of all of it."""

from adapters.mcp_server.tool import LARGE_RESULT, Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.reading import FileWindow, ReadFile
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ReadFile, caller: Caller) -> Answer:
    """Return the window."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="read",
    title="Read file",
    description=(
        "Read a file by bytes or by lines. When truncated, continue only at next_offset. content_lossy: bytes "
        "aren't UTF-8, so content can't be written back. version is for expected_versions of apply_patch."
    ),
    command=ReadFile,
    answer=FileWindow,
    call=call,
    is_read_only=True,
    is_idempotent=True,
    meta=LARGE_RESULT,
)
