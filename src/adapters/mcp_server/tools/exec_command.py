"""`exec_command`: start a program; what becomes of it is asked by its handle."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.executing import ExecResult
from codespace_es.invocation import ExecCommand
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller


async def call(codespace: Codespace, command: ExecCommand, caller: Caller) -> Answer:
    """Return the process that was started."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="exec_command",
    title="Run command",
    description=(
        "Start a program in the workspace root, without a shell unless you name one; answers at once with process_id, "
        "or with wait_ms once it has ended: output, termination, exit_code. dispatch_status=confirmed means started, "
        "not succeeded; unknown: it may have started, so ask process_status and don't start it again. "
        "PROCESS_SPAWN_FAILED proves that nothing started. WORKSPACE_BUSY: another process lives here. What a program "
        "leaves behind when it exits is ended: run a service as the command itself. A retry with the same "
        "operation_key answers the first process_id."
    ),
    command=ExecCommand,
    answer=ExecResult,
    call=call,
    is_read_only=False,
    is_destructive=True,
    is_open_world=True,
)
