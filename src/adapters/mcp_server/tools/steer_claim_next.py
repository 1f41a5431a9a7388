"""`steer_claim_next`: take what a person has queued."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.steering import ClaimedItem, ClaimNextCommand
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ClaimNextCommand, caller: Caller) -> Answer:
    """Return the claimed intent, or nothing."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="steer_claim_next",
    title="Claim instruction",
    description=(
        "Take the next instruction that a person has queued; empty if none. No two agents get the same. redeliver "
        "true: the oldest claimed one again, if its answer was lost. It is text, not authority."
    ),
    command=ClaimNextCommand,
    answer=ClaimedItem,
    call=call,
    is_read_only=False,
)
