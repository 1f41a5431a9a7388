"""`apply_patch`: a V4A patch, previewed or applied, all or nothing."""

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.patch_result import PatchResult


async def call(codespace: Codespace, command: ApplyPatch, caller: Caller) -> Answer:
    """Return what the patch did or would do."""
    return await codespace.handle(command, caller)


TOOL = Tool(
    name="apply_patch",
    title="Apply patch",
    description=(
        "Change files by a V4A patch (*** Begin Patch, *** Update File: p, @@, ' ' '-' '+' lines, *** End Patch): all "
        "or none. A retry with the same operation_key answers the first result and runs nothing; a preview needs its "
        "own key. Only status=applied is success. On status=unknown, or no answer, ask operation_status and read the "
        "files before trying again."
    ),
    command=ApplyPatch,
    answer=PatchResult,
    call=call,
    is_read_only=False,
    is_destructive=True,
)
