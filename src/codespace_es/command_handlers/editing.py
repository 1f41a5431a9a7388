"""Staged edits: exactly the bytes that a preview has shown, against the files as they are.

Every file is compared with what the preview saw, before anything is written; one difference refuses all. What follows
is a patch like any other: written through the patch transaction, recorded, undone by operation_revert.
Source: the pending-actions paper, *ast_edit*: the preview is the proposal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from anyio import from_thread

from codespace_es import policy
from codespace_es.aggregates.pending.events import PendingActionPushed, StagedEditRow
from codespace_es.command_handlers.patching import prepared
from codespace_es.command_handlers.stacks import Session
from codespace_es.command_handlers.writing import PreparedPatch
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.world import World
from codespace_es.v4a.net_change import net_change
from codespace_es.v4a.overlay import Overlay, VirtualFile
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Digest, Version

_NO_FILE_ANY_MORE = (
    ErrorCode.SYMLINK_REJECTED, ErrorCode.PATH_NOT_DIRECTORY, ErrorCode.SPECIAL_FILE_REJECTED, ErrorCode.FILE_NOT_FOUND,
)
"""What the preview saw as a file, or as nothing, is something else now."""

_CHANGED_NAMED_MAX = 100


def plan_staged(world: World, session: Session, action: PendingActionPushed) -> PreparedPatch:
    """Return what the staged edits do to the files as they are. For a worker thread. Raises as `plan_edits`."""

    def image(digest: Digest) -> bytes | None:
        return from_thread.run(world.log.read_body, session.stream_id, digest)

    return plan_edits(
        world.files.open(session.workspace.root), action.edits, image,
        protected=policy.protects(session.workspace), new_file_mode=world.new_file_mode,
    )


def plan_edits(
    files: WorkspaceFiles, edits: Sequence[StagedEditRow], image: Callable[[Digest], bytes | None], *,
    protected: Callable[[str], bool], new_file_mode: int,
) -> PreparedPatch:
    """Return what the edits do to the files as they are. For a worker thread.

    Args:
        files: The workspace.
        edits: One a path.
        image: The staged bytes; None where they are gone.
        protected: True for a path that must not be written.
        new_file_mode: Permission bits of a file that an edit makes.

    Raises:
        CodespaceError: STALE_PREVIEW naming what has changed; PATH_PROTECTED, INVALID_PATCH and what reading raises.
    """
    for edit in edits:
        if protected(edit.path):
            raise CodespaceError(
                ErrorCode.PATH_PROTECTED, f"{edit.path} is protected now.", detail={"path": edit.path}
            )
    overlay = Overlay(files)
    found = {edit.path: _version(overlay, edit.path) for edit in edits}
    changed = [edit.path for edit in edits if found[edit.path] != edit.before]
    if changed:
        raise _stale(changed, found)
    for edit in edits:
        _put(overlay, edit, image, new_file_mode)
    return prepared(net_change(overlay, ()))


def _version(overlay: Overlay, path: str) -> Version | None:
    """Return the version of what is at `path`, None for what can't be a file of the preview."""
    try:
        file = overlay.file(path)
    except CodespaceError as error:
        if error.code in _NO_FILE_ANY_MORE:
            return None
        raise
    return ABSENT if file is None else file.digest


def _put(overlay: Overlay, edit: StagedEditRow, image: Callable[[Digest], bytes | None], new_file_mode: int) -> None:
    if edit.after == ABSENT:
        overlay.remove(edit.path)
        return
    content = image(edit.after)
    if content is None:
        raise CodespaceError(
            ErrorCode.STALE_PREVIEW, f"Preview is stale: the staged bytes of {edit.path} were removed from the log."
        )
    file = overlay.file(edit.path)
    if file is None:
        overlay.put(edit.path, VirtualFile(content, new_file_mode, None))
    else:
        overlay.put(edit.path, replace(file, content=content, edits=None))


def _stale(changed: Sequence[str], found: Mapping[str, Version | None]) -> CodespaceError:
    shown = ", ".join(changed)[: limits.ERROR_EXCERPT_BYTES_MAX]
    have = "has" if len(changed) == 1 else "have"
    return CodespaceError(
        ErrorCode.STALE_PREVIEW,
        f"Preview is stale: {shown} {have} changed since it was made. Nothing was written.",
        detail={"changed": [
            {"path": path, **({} if found[path] is None else {"found": found[path]})}
            for path in changed[:_CHANGED_NAMED_MAX]
        ]},
    )
