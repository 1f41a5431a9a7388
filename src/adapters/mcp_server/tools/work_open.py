"""`work_open`: begin a work."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.steering import OpenWorkCommand, WorkAnswer
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: OpenWorkCommand, caller: Caller) -> Answer:
    """Return the new work."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="work_open",
    title="Open a work",
    description=(
        "Begin a piece of work that people can steer; pass its work_id to other tools. Claim what they queue at "
        "checkpoints."
    ),
    command=OpenWorkCommand,
    answer=WorkAnswer,
    call=call,
    is_read_only=False,
)
