"""How holds stand: the story of one, with what it would do to the files as they are now, and the list of all open.

Source: contract A4.
"""

from collections.abc import Callable, Mapping
from typing import Any

from anyio import to_thread
from pydantic import Field

from codespace_es.aggregates.approval import APPROVAL, ApprovalCreated, Unheld
from codespace_es.command_handlers.holding import expire_if_due, find_workspace, read_arguments
from codespace_es.command_handlers.patching import ApplyPatch, preview_patch
from codespace_es.command_handlers.previewing import preview_resolve
from codespace_es.command_handlers.resuming import require_hold
from codespace_es.command_handlers.reverting import RevertOperations, ids_of, preview_revert
from codespace_es.command_handlers.writing import PreparedPatch
from codespace_es.ports.world import World
from codespace_es.projections.approval_status import ApprovalReport, project
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller, Version
from codespace_es.vocabulary.identifiers import ApprovalId, StreamId
from codespace_es.vocabulary.workspace import Workspace

# approval_status


class AskApproval(Command):
    """Ask how a hold stands, and what it would do."""

    approval_id: str = Field(description="A hold.")


async def ask_approval(world: World, command: AskApproval, caller: Caller) -> ApprovalReport:
    """Return the hold's story, with a preview against the files as they are now. Raises APPROVAL_NOT_FOUND."""
    approval_id = ApprovalId(command.approval_id)
    await require_hold(world, approval_id)
    await expire_if_due(world, approval_id, caller)
    return await _report(world, approval_id, is_previewed=True)


async def _report(world: World, approval_id: ApprovalId, *, is_previewed: bool) -> ApprovalReport:
    recorded = await world.log.read_stream(StreamId(approval_id))
    report = project(recorded)
    state = APPROVAL.fold_recorded(recorded)
    if isinstance(state, Unheld) or report.state in ("consumed", "denied", "expired"):
        return report
    arguments = await read_arguments(world, approval_id, state.created)
    if arguments is None:
        return report
    if state.created.tool == "exec_command":
        return report.model_copy(update={"command": tuple(arguments["command"])})
    workspace = find_workspace(world, state.created.workspace_key)
    if workspace is None or not is_previewed:
        return report
    preview = await _preview(world, workspace, state.created, arguments)
    if preview is None:
        return report
    shown = await to_thread.run_sync(_look, world, workspace, state.created.seen_versions, preview)
    return report.model_copy(update=shown)


async def _preview(
    world: World, workspace: Workspace, created: ApprovalCreated, arguments: dict[str, Any]
) -> Callable[[], PreparedPatch] | None:
    """Return what tells, in a worker thread, what the request would do now; None where only its callback knows."""
    if created.tool == "resolve":
        return await preview_resolve(world, workspace, created.action_id)
    if created.tool == "operation_revert":
        undo = RevertOperations.model_validate(arguments, strict=False)
        return lambda: preview_revert(world, workspace, ids_of(undo))
    return lambda: preview_patch(world, workspace, ApplyPatch.model_validate(arguments, strict=False))


def _look(
    world: World, workspace: Workspace, seen: Mapping[str, Version], preview: Callable[[], PreparedPatch]
) -> dict[str, Any]:
    """Return what the request would do now, and which of its files have moved on since it was held."""
    try:
        versions = world.files.open(workspace.root).version
    except CodespaceError as error:
        return {"moved_on": tuple(seen), "preview_error": error.to_wire()}
    moved_on = tuple(path for path, version in seen.items() if _version(versions, path) != version)
    try:
        prepared = preview()
    except CodespaceError as error:
        return {"moved_on": moved_on, "preview_error": error.to_wire()}
    return {
        "moved_on": moved_on,
        "diff": prepared.diff,
        "diff_truncated": prepared.is_diff_truncated,
        "files": prepared.files,
    }


def _version(version_of: Callable[[str], Version], path: str) -> Version | None:
    """Return the version of a file; None if it can't be looked at any more."""
    try:
        return version_of(path)
    except CodespaceError:
        return None


# The open holds


class ListHolds(Command):
    """Ask for every hold that isn't over."""


class OpenHolds(Answer):
    """The holds that aren't over, oldest first, with enough to decide."""

    approvals: tuple[ApprovalReport, ...] = Field(description="One a hold; approval_status has the diff of a patch.")

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of the answer, each hold as approval_status tells it."""
        return {"approvals": [each.to_wire() for each in self.approvals]}


async def list_holds(world: World, _command: ListHolds, caller: Caller) -> OpenHolds:
    """Return the open holds of every workspace in this log; what is found due is expired on the way."""
    reports = []
    for item in await world.log.open_items(kind="approval"):
        approval_id = ApprovalId(item.stream_id)
        if not await expire_if_due(world, approval_id, caller):
            reports.append(await _report(world, approval_id, is_previewed=False))
    return OpenHolds(approvals=tuple(reports))
