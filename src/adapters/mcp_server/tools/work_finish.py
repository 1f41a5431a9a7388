"""`work_finish`: end a work."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.finishing import FinishAnswer, FinishWorkCommand
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: FinishWorkCommand, caller: Caller) -> Answer:
    """Return whether it is closed."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="work_finish",
    title="Finish a work",
    description=(
        "End a work. closed false with reason pending_user_input: claim and complete what people have queued, then "
        "call again; pending_actions: resolve the preview first."
    ),
    command=FinishWorkCommand,
    answer=FinishAnswer,
    call=call,
    is_read_only=False,
)
