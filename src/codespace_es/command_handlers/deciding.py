"""Deciding over a hold: opening one on purpose, granting it, denying it.

Who may grant is the operator's setting: under `operator`, nobody who speaks over MCP; a denial is open to all.
Source: contract B1.11, B4.2, A4; decision 24.
"""

from typing import Any, Literal

from anyio import to_thread
from pydantic import Field, ValidationError

from codespace_es import policy
from codespace_es.aggregates.approval import APPROVAL, ApprovalState, DenyApproval, GrantApproval, Unheld, wire_state
from codespace_es.command_handlers.consuming import ending
from codespace_es.command_handlers.executing import held_command
from codespace_es.command_handlers.holding import HeldRequest, expire_if_due, find_workspace, open_hold
from codespace_es.command_handlers.patching import ApplyPatch, held_patch, require_readable_patch
from codespace_es.command_handlers.resolve_request import ResolveAction, held_resolve
from codespace_es.command_handlers.resumable import RESUMABLE
from codespace_es.command_handlers.resuming import require_hold
from codespace_es.command_handlers.reverting import RevertOperation, held_revert
from codespace_es.folding import Folded, fold
from codespace_es.invocation import ExecCommand
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ApprovalId


class HoldState(Answer):
    """A hold and its state."""

    approval_id: str = Field(description="The hold.")
    state: str = Field(description="pending, granted, queued, resuming, consumed, denied or expired.")


# approval_create


class CreateHold(Command):
    """Ask for a request to be held, whatever the workspace's setting."""

    tool: Literal["apply_patch", "exec_command", "operation_revert", "resolve"] = Field(description="What to hold.")
    arguments: dict[str, Any] = Field(description="The same object as that tool takes.")


_CODES_OF_FIELDS = {
    ("apply_patch", "patch"): ErrorCode.INVALID_PATCH,
    ("exec_command", "command"): ErrorCode.INVALID_COMMAND,
}
"""What can't be what the tool is about has the tool's own code; everything else is an INVALID_ARGUMENT."""


async def create_hold(world: World, command: CreateHold, caller: Caller) -> HoldState:
    """Return the hold, the active one if there is one.

    Raises:
        CodespaceError: INVALID_PATCH, INVALID_COMMAND, INVALID_ARGUMENT naming the field; WORKSPACE_NOT_FOUND,
            UNAUTHORIZED, OPERATION_NOT_FOUND. Nothing is held then.
    """
    approval_id = await open_hold(world, await _understand(world, command), "approval_create", caller)
    state = (await fold(world.log, APPROVAL, approval_id)).state
    return HoldState(approval_id=approval_id, state=wire_state(state))


async def _understand(world: World, command: CreateHold) -> HeldRequest:
    """Return what is to be held, read as its tool reads it: null is absent, 3.0 an integer, what is unknown ignored."""
    kind = RESUMABLE[command.tool].command
    given = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in command.arguments.items()
        if value is not None and name in kind.model_fields
    }
    try:
        request = kind.model_validate(given)
        request.model_dump_json()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _unusable(command.tool, [str(part) for part in first["loc"] if part != "[key]"], first["msg"]) from error
    except ValueError as error:
        raise _unusable(command.tool, [], "a text in it isn't valid Unicode") from error
    match request:
        case ApplyPatch(check_only=False):
            held = await to_thread.run_sync(held_patch, world, request)
            require_readable_patch(request.patch)
            return held
        case ExecCommand():
            return held_command(world, request)
        case RevertOperation(check_only=False):
            return await held_revert(world, request)
        case ResolveAction(action="apply"):
            return await held_resolve(world, request)
        case ResolveAction():
            raise _unusable(command.tool, ["action"], "a discard changes nothing and is never held")
        case _:
            raise _unusable(command.tool, ["check_only"], "a preview changes nothing and is never held")


def _unusable(tool: str, place: list[str], reason: str) -> CodespaceError:
    field = ".".join(["arguments", *place])[: limits.LABEL_CHARACTERS_MAX]
    code = _CODES_OF_FIELDS.get((tool, place[0] if place else ""), ErrorCode.INVALID_ARGUMENT)
    return CodespaceError(code, f"{field}: {reason[:1].lower()}{reason[1:]}.", detail={"field": field})


# approval_resolve


class ResolveHold(Command):
    """Grant or deny a hold."""

    approval_id: str = Field(description="A pending hold.")
    decision: Literal["grant", "deny"] = Field(description="Whether it may run.")
    reason: str | None = Field(default=None, description="Kept, and shown to whoever asked.")


async def resolve_hold(world: World, command: ResolveHold, caller: Caller) -> HoldState:
    """Return the decided hold. Raises APPROVAL_NOT_FOUND, APPROVAL_CONFLICT, UNAUTHORIZED, INVALID_ARGUMENT."""
    approval_id = ApprovalId(command.approval_id)
    await require_hold(world, approval_id)
    _require_bounded(command.reason)
    await expire_if_due(world, approval_id, caller)
    while True:
        approval = await fold(world.log, APPROVAL, approval_id)
        if command.decision == "grant":
            _require_may_grant(world, approval, caller)
        try:
            await _append_decision(world, approval, command, caller)
        except VersionConflictError:
            continue
        except CodespaceError as error:
            raise error.with_detail(approval_id=approval_id) from error
        return HoldState(approval_id=approval_id, state="granted" if command.decision == "grant" else "denied")


def _require_bounded(reason: str | None) -> None:
    """Pass if the reason can be stored inline. Raises INVALID_ARGUMENT."""
    problem = None
    try:
        if reason is not None and len(reason.encode()) > limits.REASON_BYTES_MAX:
            problem = f"reason is longer than {limits.REASON_BYTES_MAX} bytes."
    except UnicodeEncodeError:
        problem = "reason isn't valid Unicode."
    if problem is not None:
        raise CodespaceError(ErrorCode.INVALID_ARGUMENT, problem, detail={"field": "reason"})


async def _append_decision(
    world: World, approval: Folded[ApprovalState, Any], command: ResolveHold, caller: Caller
) -> None:
    now = world.clock.now()
    if command.decision == "grant":
        await world.log.append(Append(approval.decide(GrantApproval(command.reason, now))), caller)
        return
    part = await ending(world.log, approval, DenyApproval(command.reason, now))
    await world.log.append(Append(part.events, part.bodies, part.scrubbed), caller)


def _require_may_grant(world: World, approval: Folded[ApprovalState, Any], caller: Caller) -> None:
    """Refuse a grant by a caller where only the operator may. Unknown directories are the strictest."""
    assert not isinstance(approval.state, Unheld), "it was asked for before"
    created = approval.state.created
    if not policy.may_grant(find_workspace(world, created.workspace_key), caller.channel):
        raise CodespaceError(
            ErrorCode.UNAUTHORIZED,
            f"Only the operator grants in workspace {created.workspace_id!r}: by `codespace-es approvals grant`.",
            detail={"approval_id": approval.stream_id},
        )
