"""Which tools can be held: how each is run again when its hold is resumed, and how its stored answer is read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from codespace_es.command_handlers.executing import ExecResult, exec_command
from codespace_es.command_handlers.patching import ApplyPatch, apply_patch
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.resolving import resolve_action
from codespace_es.command_handlers.reverting import RevertOperation, RevertOperations, revert_operation
from codespace_es.invocation import ExecCommand
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.fingerprint import canonical_json
from codespace_es.vocabulary.patch_result import PatchResult

_OF_ONE_CALL = ("replayed", "work_id", "coordination", "pending_actions")


@dataclass(frozen=True, slots=True)
class Resumable:
    """How a held tool is run again, and how its stored answer is read."""

    command: type[Command]
    """The tool's own arguments."""
    held: type[Command]
    """What may be held for it: over the command line several operations can be undone at one blow."""
    run: Callable[..., Awaitable[Answer]]
    answer: type[PatchResult] | type[ExecResult] | type[ResolveResult]


RESUMABLE: dict[str, Resumable] = {
    "apply_patch": Resumable(ApplyPatch, ApplyPatch, apply_patch, PatchResult),
    "exec_command": Resumable(ExecCommand, ExecCommand, exec_command, ExecResult),
    "operation_revert": Resumable(RevertOperation, RevertOperations, revert_operation, PatchResult),
    "resolve": Resumable(ResolveAction, ResolveAction, resolve_action, ResolveResult),
}


def to_stored(answer: Answer) -> bytes:
    """Return an answer as a hold keeps it, without what belongs to one call."""
    if isinstance(answer, PatchResult | ResolveResult):
        return answer.to_stored()
    wire = answer.to_wire()
    return canonical_json({key: wire[key] for key in wire if key not in _OF_ONE_CALL})
