"""`steer_complete`: be done with an instruction."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.steering import CompleteIntentCommand, IntentAnswer
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: CompleteIntentCommand, caller: Caller) -> Answer:
    """Return it with its new state."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="steer_complete",
    title="Complete instruction",
    description=(
        "Say what came of a claimed instruction: outcome done, or blocked when you can't do it; then claim the next."
    ),
    command=CompleteIntentCommand,
    answer=IntentAnswer,
    call=call,
    is_read_only=False,
)
