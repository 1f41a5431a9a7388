"""`ast_grep`: which code matches a pattern."""

from adapters.mcp_server.tool import LARGE_RESULT, Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.matching import CodePage, MatchCode
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: MatchCode, caller: Caller) -> Answer:
    """Return the page of matches."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="ast_grep",
    title="Search code by structure",
    description=(
        "Find code by its syntax, whatever its layout: pat is one whole expression or statement. Names are "
        "upper case; the same name twice means the same code. Nothing found: read warnings."
    ),
    command=MatchCode,
    answer=CodePage,
    call=call,
    is_read_only=True,
    is_idempotent=True,
    meta=LARGE_RESULT,
)
