"""`find`: which files there are."""

from adapters.mcp_server.tool import LARGE_RESULT, Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.reading import FilePage, FindFiles
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: FindFiles, caller: Caller) -> Answer:
    """Return the page of paths."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="find",
    title="Find files",
    description=(
        "List files by name, sorted. Continue at next_offset; if listing_version has changed, start again at 0. "
        "incomplete: the walk was capped, there may be more."
    ),
    command=FindFiles,
    answer=FilePage,
    call=call,
    is_read_only=True,
    is_idempotent=True,
    meta=LARGE_RESULT,
)
