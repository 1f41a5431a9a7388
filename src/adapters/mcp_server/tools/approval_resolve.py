"""`approval_resolve`: decide over a hold."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.deciding import HoldState, ResolveHold
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ResolveHold, caller: Caller) -> Answer:
    """Return the decided hold."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="approval_resolve",
    title="Grant or deny",
    description=(
        "Grant or deny a pending hold; nothing runs yet. Where only the operator may grant it answers "
        "UNAUTHORIZED: wait and ask approval_status. A denied hold never runs."
    ),
    command=ResolveHold,
    answer=HoldState,
    call=call,
    is_read_only=False,
)
