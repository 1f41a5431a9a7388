"""`approval_create`: hold a request on purpose."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.deciding import CreateHold, HoldState
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: CreateHold, caller: Caller) -> Answer:
    """Return the hold."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="approval_create",
    title="Hold a request",
    description=(
        "Hold a request of apply_patch, exec_command, operation_revert or resolve instead of running it; answers "
        "approval_id. The same request meets the same active hold. It raises no permission."
    ),
    command=CreateHold,
    answer=HoldState,
    call=call,
    is_read_only=False,
    is_idempotent=True,
)
