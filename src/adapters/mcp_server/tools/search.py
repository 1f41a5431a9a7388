"""`search`: which lines match."""

from adapters.mcp_server.tool import LARGE_RESULT, Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.reading import MatchPage, SearchFiles
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: SearchFiles, caller: Caller) -> Answer:
    """Return the page of matches."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="search",
    title="Search in files",
    description=(
        "Find lines by text or regular expression (no look-around, no back-references). Continue at next_offset. "
        "incomplete: a cap or the time limit cut the search."
    ),
    command=SearchFiles,
    answer=MatchPage,
    call=call,
    is_read_only=True,
    is_idempotent=True,
    meta=LARGE_RESULT,
)
