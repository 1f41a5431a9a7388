"""`ast_edit`: a structural replacement, previewed and staged."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.rewriting import EditCode, EditPreview
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: EditCode, caller: Caller) -> Answer:
    """Return the preview."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="ast_edit",
    title="Rewrite code by structure",
    description=(
        "Preview replacing code by its syntax, in many files at once; paths, lang, selector as in ast_grep. Changes "
        "nothing: it stages what it shows; then call resolve to apply exactly that, or to discard it."
    ),
    command=EditCode,
    answer=EditPreview,
    call=call,
    is_read_only=False,
)
