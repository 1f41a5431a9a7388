"""Deciding over a hold: opening one on purpose, granting, denying, and telling how it stands.

Who may grant is the operator's setting: under `operator`, nobody who speaks over MCP; a denial is open to all.
Source: contract B1.11, B4.2, A4; decision 24.
"""

from typing import Any, Literal

from anyio import to_thread
from pydantic import Field, ValidationError

from codespace_es.aggregates.approval import (
    APPROVAL,
    ApprovalState,
    DenyApproval,
    GrantApproval,
    HeldTool,
    Unheld,
    wire_state,
)
from codespace_es.command_handlers.consuming import ending
from codespace_es.command_handlers.executing import ExecCommand, held_command
from codespace_es.command_handlers.holding import HeldRequest, expire_if_due, open_hold, read_arguments
from codespace_es.command_handlers.patching import ApplyPatch, held_patch, preview_patch
from codespace_es.command_handlers.resuming import RESUMABLE, require_hold
from codespace_es.command_handlers.reverting import RevertOperation, held_revert
from codespace_es.folding import Folded, fold
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.projections.approval_status import ApprovalReport, project
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ApprovalId, StreamId

_OPERATOR_CHANNELS = ("cli", "web", "http", "elicitation")


class HoldState(Answer):
    """A hold and its state."""

    approval_id: str = Field(description="The hold.")
    state: str = Field(description="pending, granted, queued, resuming, consumed, denied or expired.")


# approval_create


class CreateHold(Command):
    """Ask for a request to be held, whatever the workspace's setting."""

    tool: Literal["apply_patch", "exec_command", "operation_revert"] = Field(description="What to hold.")
    arguments: dict[str, Any] = Field(description="The same object as that tool takes.")


async def create_hold(world: World, command: CreateHold, caller: Caller) -> HoldState:
    """Return the hold, the active one if there is one. Raises INVALID_ARGUMENT, WORKSPACE_NOT_FOUND, UNAUTHORIZED."""
    try:
        held = RESUMABLE[command.tool].command.model_validate(command.arguments, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, f"arguments.{field}: {first['msg']}.", detail={"field": f"arguments.{field}"}
        ) from error
    approval_id = await open_hold(world, await _as_held(world, held), "approval_create", caller)
    state = (await fold(world.log, APPROVAL, approval_id)).state
    return HoldState(approval_id=approval_id, state=wire_state(state))


async def _as_held(world: World, command: Command) -> HeldRequest:
    match command:
        case ApplyPatch():
            return await to_thread.run_sync(held_patch, world, command)
        case ExecCommand():
            return held_command(world, command)
        case RevertOperation():
            return await held_revert(world, command)
    raise AssertionError(f"{type(command).__name__} can't be held")


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
    if command.reason is not None and len(command.reason.encode(errors="replace")) > limits.REASON_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, f"reason is longer than {limits.REASON_BYTES_MAX} bytes.",
            detail={"field": "reason"},
        )
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
    """Refuse a grant by an MCP caller where only the operator may. Unknown directories are the strictest."""
    assert not isinstance(approval.state, Unheld), "it was asked for before"
    created = approval.state.created
    workspace = next((each for each in world.workspaces.values() if each.key == created.workspace_key), None)
    if caller.channel in _OPERATOR_CHANNELS or (workspace is not None and workspace.approvals != "operator"):
        return
    raise CodespaceError(
        ErrorCode.UNAUTHORIZED,
        f"Only the operator grants in workspace {created.workspace_id!r}: by `codespace-es approvals grant`.",
        detail={"approval_id": approval.stream_id},
    )


# approval_status


class AskApproval(Command):
    """Ask how a hold stands, and what it would do."""

    approval_id: str = Field(description="A hold.")


async def ask_approval(world: World, command: AskApproval, caller: Caller) -> ApprovalReport:
    """Return the hold's story, with a preview against the files as they are now. Raises APPROVAL_NOT_FOUND."""
    approval_id = ApprovalId(command.approval_id)
    await require_hold(world, approval_id)
    await expire_if_due(world, approval_id, caller)
    recorded = await world.log.read_stream(StreamId(approval_id))
    report = project(recorded)
    state = APPROVAL.fold_recorded(recorded)
    if isinstance(state, Unheld) or report.state in ("consumed", "denied", "expired"):
        return report
    arguments = await read_arguments(world, approval_id, state.created)
    if arguments is None:
        return report
    shown = await _shown(world, state.created.tool, arguments, dict(state.created.seen_versions))
    return report.model_copy(update=shown)


async def _shown(
    world: World, tool: HeldTool, arguments: dict[str, Any], seen: dict[str, str]
) -> dict[str, Any]:
    """Return what the request would do now, and which of its files have moved on since it was held."""
    if tool == "exec_command":
        return {"command": tuple(arguments["command"])}
    workspace = world.workspaces.get(arguments.get("workspace_id", ""))
    if tool != "apply_patch" or workspace is None:
        return {}
    patch = ApplyPatch.model_validate(arguments, strict=False)

    def look() -> dict[str, Any]:
        files = world.files.open(workspace.root)
        moved = []
        for path, version in seen.items():
            try:
                is_same = files.version(path) == version
            except CodespaceError:
                is_same = False
            if not is_same:
                moved.append(path)
        try:
            prepared = preview_patch(world, workspace, patch)
        except CodespaceError as error:
            return {"moved_on": tuple(moved), "preview_error": error.to_wire()}
        return {
            "moved_on": tuple(moved), "diff": prepared.diff, "diff_truncated": prepared.is_diff_truncated,
            "files": prepared.files,
        }

    return await to_thread.run_sync(look)
