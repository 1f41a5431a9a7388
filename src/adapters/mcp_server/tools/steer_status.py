"""`steer_status`: how a work stands."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.steering import AskWork, WorkStatus
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: AskWork, caller: Caller) -> Answer:
    """Return how it stands."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="steer_status",
    title="Work status",
    description=(
        "Tell how many instructions wait in a work and are claimable now; never what they say."
    ),
    command=AskWork,
    answer=WorkStatus,
    call=call,
    is_read_only=True,
    is_idempotent=True,
)
