"""`operation_revert`: undo an applied operation, as an operation of its own that can be undone in turn.

Allowed when every file still has what the operation gave it; else the refusal says who changed it since.
Source: contract A3.
"""

from collections.abc import Sequence

from anyio import from_thread
from pydantic import Field

from codespace_es import policy
from codespace_es.admission import admit, read_operation, require_usable_key, require_usable_work
from codespace_es.aggregates.operation import OperationMinted, require_revertible
from codespace_es.command_handlers.holding import HeldRequest
from codespace_es.command_handlers.writing import PatchRequest, PreparedPatch, write_patch
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.world import World
from codespace_es.v4a.diff import DiffWriter, file_diff
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Caller
from codespace_es.vocabulary.file_change import ChangeKind, PlannedFile
from codespace_es.vocabulary.fingerprint import fingerprint
from codespace_es.vocabulary.identifiers import ApprovalId, OperationId, StreamId
from codespace_es.vocabulary.patch_result import PatchResult
from codespace_es.vocabulary.workspace import Workspace

_LATER_EVENTS_MAX = 20_000
"""How far the log is searched for who changed a file since; it only makes a refusal more helpful."""


class RevertOperation(Command):
    """Ask for an operation to be undone."""

    operation_id: str = Field(description="An applied operation.")
    operation_key: str | None = Field(default=None, description="Your idempotency key.")
    check_only: bool = Field(default=False, description="Preview only.")
    work_id: str | None = Field(default=None, description="The work this belongs to.")


async def revert_operation(
    world: World, command: RevertOperation, caller: Caller, *, resumed: ApprovalId | None = None
) -> PatchResult:
    """Return what the undo did or would do; `resumed` is the hold that allows it.

    Raises:
        CodespaceError: OPERATION_NOT_FOUND, REVERT_CONFLICT and those of a patch.
    """
    require_usable_key(command.operation_key)
    require_usable_work(command.work_id)
    undone_id = OperationId(command.operation_id)
    minted = (await read_operation(world.log, undone_id)).minted
    workspace = admit(world.workspaces, _name_here(world, minted), "write")
    request = PatchRequest(
        workspace=workspace,
        source="revert",
        fingerprint=fingerprint(workspace=workspace.key, reverts=undone_id, check_only=command.check_only),
        request=command.model_dump_json(include={"operation_id"}).encode(),
        prepare=lambda: preview_revert(world, workspace, undone_id),
        operation_key=command.operation_key,
        check_only=command.check_only,
        work_id=command.work_id,
        reverts=undone_id,
        held=lambda: held_revert(world, command),
        resumed=resumed,
    )
    return await write_patch(world, request, caller)


async def held_revert(world: World, command: RevertOperation) -> HeldRequest:
    """Return the undo as it is held. Raises OPERATION_NOT_FOUND, WORKSPACE_NOT_FOUND, UNAUTHORIZED."""
    require_usable_key(command.operation_key)
    minted = (await read_operation(world.log, command.operation_id)).minted
    paths = ", ".join(planned.path for planned in minted.plan)
    return HeldRequest(
        workspace=admit(world.workspaces, _name_here(world, minted), "write"),
        tool="operation_revert",
        command=command,
        title=f"Undo {command.operation_id}: {paths}",
        operation_key=command.operation_key,
        work_id=command.work_id,
        seen_versions={planned.path: planned.after for planned in minted.plan},
    )


def _name_here(world: World, minted: OperationMinted) -> str:
    """Return what this server calls the directory of an operation; its recorded name if it doesn't know it."""
    names = (each.workspace_id for each in world.workspaces.values() if each.key == minted.workspace_key)
    name = next(names, None)
    if name is None:
        raise CodespaceError(
            ErrorCode.WORKSPACE_NOT_FOUND,
            f"The operation's directory, recorded as workspace {minted.workspace_id!r}, isn't configured here.",
            detail={"workspace_id": minted.workspace_id},
        )
    return name


def preview_revert(world: World, workspace: Workspace, undone_id: OperationId) -> PreparedPatch:
    """Return what the undo would do to the files as they are. For a worker thread. Raises the refusals of planning."""
    state = require_revertible(from_thread.run(read_operation, world.log, undone_id))
    undone = state.minted
    files = world.files.open(workspace.root)
    protected = policy.protects(workspace)
    for planned in undone.plan:
        if protected(planned.path):
            raise CodespaceError(
                ErrorCode.PATH_PROTECTED, f"{planned.path} is protected now.", detail={"path": planned.path}
            )
    changed = [planned for planned in undone.plan if not _is_as_left(files, planned)]
    if changed:
        raise _conflict(world, undone_id, undone, changed)
    images = {}
    for digest in {version for row in undone.plan for version in (row.before, row.after) if version != ABSENT}:
        content = from_thread.run(world.log.read_body, StreamId(undone_id), digest)
        if content is None:
            raise CodespaceError(
                ErrorCode.REVERT_CONFLICT, f"The recorded contents of {undone_id} were pruned; it can't be undone."
            )
        images[digest] = content
    plan = invert_plan(undone.plan)
    made = dict.fromkeys(
        directory for row in plan if row.after != ABSENT for directory in files.missing_directories(row.path)
    )
    writer = DiffWriter()
    summaries = {}
    for row in plan:
        if row.kind == "delete" and any(other.moved_from == row.path for other in plan):
            continue
        difference = file_diff(
            row.moved_from or (None if row.before == ABSENT else row.path),
            None if row.after == ABSENT else row.path,
            images.get(_source_version(row, plan), b""),
            images.get(row.after, b""),
        )
        writer.write(difference)
        summaries[row.path] = difference.summary
    return PreparedPatch(
        plan=plan,
        images=images,
        made_directories=tuple(made),
        removed_directories=undone.made_directories,
        files=tuple(row.path for row in plan),
        summaries=summaries,
        diff=writer.text,
        is_diff_truncated=writer.is_truncated,
    )


def _source_version(row: PlannedFile, plan: Sequence[PlannedFile]) -> str:
    """Return the version that a row's new content is to be compared with: its own before, or the moved file's."""
    if row.moved_from is None:
        return row.before
    return next(other.before for other in plan if other.path == row.moved_from)


def _is_as_left(files: WorkspaceFiles, planned: PlannedFile) -> bool:
    try:
        return files.version(planned.path) == planned.after
    except CodespaceError:
        return False


def _conflict(
    world: World, undone_id: OperationId, undone: OperationMinted, changed: Sequence[PlannedFile]
) -> CodespaceError:
    """Return the refusal that names each changed file and, where the log knows it, who changed it."""
    later = from_thread.run(_later_operations, world, undone_id, undone)
    blame = {row.path: later.get(row.path, "the outside") for row in changed}
    told = ", ".join(f"{path} (by {who})" for path, who in blame.items())
    return CodespaceError(
        ErrorCode.REVERT_CONFLICT,
        f"{len(blame)} of {len(undone.plan)} files were changed since: {told[: limits.ERROR_EXCERPT_BYTES_MAX]}.",
        detail={"changed": [{"path": path, "changed_by": who} for path, who in blame.items()]},
    )


async def _later_operations(world: World, undone_id: OperationId, undone: OperationMinted) -> dict[str, str]:
    """Return path -> newest later operation that wrote it, as far as the search goes."""
    start = (await world.log.read_stream(StreamId(undone_id)))[0].position
    later: dict[str, str] = {}
    async for recorded in world.log.read_log(after=start, limit=_LATER_EVENTS_MAX):
        event = recorded.event
        if isinstance(event, OperationMinted) and event.workspace_key == undone.workspace_key and not event.check_only:
            later.update((planned.path, recorded.stream_id) for planned in event.plan)
    return later


def invert_plan(plan: Sequence[PlannedFile]) -> tuple[PlannedFile, ...]:
    """Return the plan that undoes `plan`: every row the other way round, last row first.

    A move comes out as a move back. Inverting twice gives the first plan again, but for the order of kinds that only
    say how a file came about.
    """
    moved_to = {row.moved_from: row.path for row in plan if row.moved_from is not None and row.before == ABSENT}
    return tuple(_inverted(row, moved_to.get(row.path)) for row in reversed(plan))


def _inverted(row: PlannedFile, moved_to: str | None) -> PlannedFile:
    kind: ChangeKind
    if row.before == ABSENT:
        kind = "delete"
    elif row.after != ABSENT:
        kind = "update"
    else:
        kind = "add" if moved_to is None else "move"
    return PlannedFile(
        path=row.path,
        kind=kind,
        moved_from=moved_to if kind == "move" else None,
        before=row.after,
        after=row.before,
        before_bytes=row.after_bytes,
        after_bytes=row.before_bytes,
        mode=row.before_mode,
        before_mode=row.mode,
    )
