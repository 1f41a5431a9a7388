"""`resolve`: apply or discard the newest pending action."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ResolveAction, caller: Caller) -> Answer:
    """Return how it was resolved."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="resolve",
    title="Resolve preview",
    description=(
        "Apply or discard the newest pending action: what another tool has previewed and not done yet. Name its id, "
        "so that no other than the one you saw is resolved."
    ),
    command=ResolveAction,
    answer=ResolveResult,
    call=call,
    is_read_only=False,
    is_destructive=True,
    is_open_world=True,
)
