"""`operation_revert`: undo an applied operation, or several at one blow, as an operation that can be undone in turn.

Allowed when every file still has what the newest of them gave it, and nobody wrote it between them; else the refusal
says who changed it. Several are one operation: one plan, one write, all or nothing. Source: contract A3; ADR 18.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anyio import from_thread
from pydantic import Field

from codespace_es import policy
from codespace_es.admission import admit, read_operation, require_usable_key, require_usable_work
from codespace_es.aggregates.operation import Finished, Minted, OperationMinted, Reverted, require_revertible
from codespace_es.command_handlers.holding import HeldRequest, find_workspace
from codespace_es.command_handlers.writing import PatchRequest, PreparedPatch, write_patch
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.world import World
from codespace_es.v4a.diff import DiffWriter, file_diff
from codespace_es.v4a.inverse import gaps, invert_plans, newest_rows
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Caller, Digest
from codespace_es.vocabulary.file_change import PlannedFile
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


class RevertOperations(RevertOperation):
    """Ask for several operations of one directory to be undone at one blow."""

    also: tuple[str, ...] = Field(default=(), description="More operations, in any order.")


class Undone(NamedTuple):
    """An operation that is to be undone."""

    operation_id: OperationId
    state: Minted | Finished | Reverted

    @property
    def plan(self) -> tuple[PlannedFile, ...]:
        """What it did."""
        return self.state.minted.plan


async def revert_operation(
    world: World, command: RevertOperation, caller: Caller, *, resumed: ApprovalId | None = None
) -> PatchResult:
    """Return what the undo did or would do; `resumed` is the hold that allows it.

    Raises:
        CodespaceError: OPERATION_NOT_FOUND, REVERT_CONFLICT and those of a patch.
    """
    require_usable_key(command.operation_key)
    require_usable_work(command.work_id)
    undone = await _read_undone(world, ids_of(command))
    workspace = admit(world.workspaces, _name_here(world, undone[0].state.minted), "write")
    names = tuple(each.operation_id for each in undone)
    request = PatchRequest(
        workspace=workspace,
        source="revert",
        fingerprint=fingerprint(
            workspace=workspace.key, reverts=names[0] if len(names) == 1 else sorted(names),
            check_only=command.check_only,
        ),
        request=command.model_dump_json(include={"operation_id", "also"}, exclude_defaults=True).encode(),
        prepare=lambda: preview_revert(world, workspace, names),
        operation_key=command.operation_key,
        check_only=command.check_only,
        work_id=command.work_id,
        reverts=names,
        held=lambda: held_revert(world, command),
        resumed=resumed,
    )
    return await write_patch(world, request, caller)


async def held_revert(world: World, command: RevertOperation) -> HeldRequest:
    """Return the undo as it is held. Raises OPERATION_NOT_FOUND, WORKSPACE_NOT_FOUND, UNAUTHORIZED."""
    require_usable_key(command.operation_key)
    undone = await _read_undone(world, ids_of(command))
    rows = newest_rows([each.plan for each in undone])
    what = command.operation_id if len(undone) == 1 else f"{len(undone)} operations"
    return HeldRequest(
        workspace=admit(world.workspaces, _name_here(world, undone[0].state.minted), "write"),
        tool="operation_revert",
        command=command,
        title=f"Undo {what}: {', '.join(rows)}",
        operation_key=command.operation_key,
        work_id=command.work_id,
        seen_versions={path: row.after for path, (_, row) in rows.items()},
    )


def ids_of(command: RevertOperation) -> tuple[OperationId, ...]:
    """Return the operations that a request names, each once."""
    more = command.also if isinstance(command, RevertOperations) else ()
    return tuple(OperationId(each) for each in dict.fromkeys((command.operation_id, *more)))


async def _read_undone(world: World, names: Sequence[OperationId]) -> list[Undone]:
    """Return the operations, newest first.

    Raises:
        CodespaceError: OPERATION_NOT_FOUND; INVALID_ARGUMENT if there are too many, or of several directories.
    """
    if len(names) > limits.UNDONE_TOGETHER_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"{len(names)} operations can't be undone at one blow; the limit is {limits.UNDONE_TOGETHER_MAX}.",
            detail={"field": "also"},
        )
    undone = [Undone(each, await read_operation(world.log, each)) for each in names]
    if len(undone) == 1:
        return undone
    places = {each.state.minted.workspace_id for each in undone}
    if len({each.state.minted.workspace_key for each in undone}) > 1:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"They changed several directories, recorded as {', '.join(sorted(places))}: undo those of one at a time.",
            detail={"field": "also"},
        )
    positions = {each: (await world.log.read_stream(StreamId(each)))[0].position for each in names}
    return sorted(undone, key=lambda each: positions[each.operation_id], reverse=True)


def _name_here(world: World, minted: OperationMinted) -> str:
    """Return what this server calls the directory of an operation. Raises WORKSPACE_NOT_FOUND."""
    workspace = find_workspace(world, minted.workspace_key)
    if workspace is None:
        raise CodespaceError(
            ErrorCode.WORKSPACE_NOT_FOUND,
            f"The operation's directory, recorded as workspace {minted.workspace_id!r}, isn't configured here.",
            detail={"workspace_id": minted.workspace_id},
        )
    return workspace.workspace_id


def preview_revert(world: World, workspace: Workspace, names: Sequence[OperationId]) -> PreparedPatch:
    """Return what the undo would do to the files as they are. For a worker thread. Raises the refusals of planning."""
    undone = from_thread.run(_read_undone, world, names)
    marked = _require_undoable(undone)
    files = world.files.open(workspace.root)
    plans = [each.plan for each in undone]
    newest = newest_rows(plans)
    protected = policy.protects(workspace)
    for path in newest:
        if protected(path):
            raise CodespaceError(ErrorCode.PATH_PROTECTED, f"{path} is protected now.", detail={"path": path})
    changed = {path: (index, -1) for path, (index, row) in newest.items() if not _is_as_left(files, row)}
    changed.update({path: (older, newer) for path, older, newer in gaps(plans) if path not in changed})
    if changed:
        raise _conflict(world, undone, changed, len(newest))
    plan = invert_plans(plans)
    images = _images(world, undone, plan)
    made = dict.fromkeys(
        directory for row in plan if row.after != ABSENT for directory in files.missing_directories(row.path)
    )
    removed = {directory for each in undone for directory in each.state.minted.made_directories}
    writer, summaries = _shown(plan, images)
    return PreparedPatch(
        plan=plan,
        images=images,
        made_directories=tuple(made),
        removed_directories=undone[0].state.minted.made_directories if len(undone) == 1 else tuple(sorted(removed)),
        reverts=marked,
        files=tuple(row.path for row in plan),
        summaries=summaries,
        diff=writer.text,
        is_diff_truncated=writer.is_truncated,
    )


def _require_undoable(undone: Sequence[Undone]) -> tuple[OperationId, ...]:
    """Return those that are in force, newest first. Raises REVERT_CONFLICT.

    One that is undone already may be named together with its undo: they cancel each other, and are undone together.
    """
    names = {each.operation_id for each in undone}
    marked = []
    for name, state in undone:
        if isinstance(state, Reverted) and state.by in names:
            continue
        try:
            require_revertible(state)
        except CodespaceError as refusal:
            if len(undone) == 1:
                raise
            raise CodespaceError(refusal.code, f"{name}: {refusal.message}", detail=refusal.detail) from refusal
        marked.append(name)
    return tuple(marked)


def _images(world: World, undone: Sequence[Undone], plan: Sequence[PlannedFile]) -> dict[Digest, bytes]:
    """Return the contents on either side of `plan`. Raises REVERT_CONFLICT, INVALID_PATCH."""
    sizes: dict[Digest, int] = {}
    for row in plan:
        sizes.update({row.before: row.before_bytes or 0, row.after: row.after_bytes or 0})
    sizes.pop(ABSENT, None)
    if sum(sizes.values()) > limits.PATCH_IMAGES_BYTES_MAX:
        room = f"{limits.PATCH_IMAGES_BYTES_MAX // limits.MIB} MiB"
        raise CodespaceError(
            ErrorCode.INVALID_PATCH, f"The files of this undo have more than {room} together: undo fewer at a time."
        )
    return {digest: _image(world, undone, digest) for digest in sizes}


def _image(world: World, undone: Sequence[Undone], digest: Digest) -> bytes:
    """Return a content that one of the operations has stored. Raises REVERT_CONFLICT if it was pruned."""
    keepers = [each.operation_id for each in undone if any(digest in (row.before, row.after) for row in each.plan)]
    for keeper in keepers:
        content = from_thread.run(world.log.read_body, StreamId(keeper), digest)
        if content is not None:
            return content
    raise CodespaceError(
        ErrorCode.REVERT_CONFLICT, f"The recorded contents of {keepers[0]} were pruned; it can't be undone."
    )


def _shown(plan: Sequence[PlannedFile], images: Mapping[Digest, bytes]) -> tuple[DiffWriter, dict[str, str]]:
    """Return the diff of a plan and `+n -m` by path; a moved file is shown once, where it comes to."""
    writer = DiffWriter()
    summaries = {}
    before = {row.path: row.before for row in plan}
    moved = {row.moved_from for row in plan if row.moved_from is not None}
    for row in plan:
        if row.kind == "delete" and row.path in moved:
            continue
        source = row.before if row.moved_from is None else before[row.moved_from]
        difference = file_diff(
            row.moved_from or (None if row.before == ABSENT else row.path),
            None if row.after == ABSENT else row.path,
            images.get(source, b""),
            images.get(row.after, b""),
        )
        writer.write(difference)
        summaries[row.path] = difference.summary
    return writer, summaries


def _is_as_left(files: WorkspaceFiles, planned: PlannedFile) -> bool:
    try:
        return files.version(planned.path) == planned.after
    except CodespaceError:
        return False


def _conflict(
    world: World, undone: Sequence[Undone], changed: Mapping[str, tuple[int, int]], total: int
) -> CodespaceError:
    """Return the refusal that names each changed file and, where the log knows it, who changed it.

    `changed` tells for each path after which of `undone`, and before which newer one of them, -1 for none.
    """
    writers = from_thread.run(_writers, world, undone, changed)
    blame = {path: writers.get(path, "the outside") for path in changed}
    told = ", ".join(f"{path} (by {who})" for path, who in blame.items())
    return CodespaceError(
        ErrorCode.REVERT_CONFLICT,
        f"{len(blame)} of {total} files were changed since: {told[: limits.ERROR_EXCERPT_BYTES_MAX]}.",
        detail={"changed": [{"path": path, "changed_by": who} for path, who in blame.items()]},
    )


async def _writers(
    world: World, undone: Sequence[Undone], changed: Mapping[str, tuple[int, int]]
) -> dict[str, str]:
    """Return path -> newest operation that wrote it within its part of the log, as far as the search goes."""
    begun = [(await world.log.read_stream(StreamId(each.operation_id)))[0].position for each in undone]
    key = undone[0].state.minted.workspace_key
    names = {str(each.operation_id) for each in undone}
    found: dict[str, str] = {}
    start = min(begun[older] for older, _ in changed.values())
    async for recorded in world.log.read_log(after=start, limit=_LATER_EVENTS_MAX):
        event = recorded.event
        if not isinstance(event, OperationMinted) or event.workspace_key != key or event.check_only:
            continue
        for path in {row.path for row in event.plan} & changed.keys():
            older, newer = changed[path]
            is_within = begun[older] < recorded.position and (newer < 0 or recorded.position < begun[newer])
            if is_within and recorded.stream_id not in names:
                found[path] = recorded.stream_id
    return found
