"""`ast_edit`: what a structural replacement would do, shown and staged. Nothing is changed by it.

1. Every pattern is matched against the files as they are; what the replacements make of them is the proposal.
2. What could never be applied isn't staged: overlapping replacements, a protected file.
3. The exact bytes go on the session's stack with the version of each file; `resolve` writes these bytes, or none.

Source: the pending-actions paper, ast_edit and ast_grep; decisions 27, 28, 33.
"""

from collections.abc import Sequence
from typing import Any

from anyio import to_thread
from pydantic import BaseModel, Field

from codespace_es import policy
from codespace_es.admission import admit, require_usable_work
from codespace_es.command_handlers.gating import require_resolved
from codespace_es.command_handlers.matching import (
    SkippedPath,
    checked_scope,
    hints_of,
    remarks_of,
    require_short,
    skipped_paths,
)
from codespace_es.command_handlers.stacks import Session
from codespace_es.command_handlers.staging import LoggedPendingActions
from codespace_es.ports.pending_actions import NewAction, StagedEdit, StagedEdits
from codespace_es.ports.structural_search import RewriteFindings, Rewriting, RewrittenFile
from codespace_es.ports.world import World
from codespace_es.v4a.diff import DiffWriter, file_diff
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command, Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.workspace import Workspace

NOTHING_STAGED = "Nothing is changed, and nothing is staged."


class CodeEdit(BaseModel):
    """A pattern and what its matches become."""

    pat: str
    out: str


class EditCode(Command):
    """Ask for a structural replacement to be previewed."""

    workspace_id: str = Field(description="Workspace to change.")
    ops: list[CodeEdit] = Field(description="pat: as in ast_grep; out: new code with its $A, $$$A.")
    paths: list[str] = Field(default_factory=list)
    lang: str | None = None
    selector: str | None = None
    limit: int | None = Field(default=None, ge=1, description="Replacements at most.")
    work_id: str | None = Field(default=None, description="The work this belongs to.")


class BrokenFile(BaseModel):
    """A file that wouldn't parse any more."""

    path: str
    line: int = Field(description="1-based, of the new text.")


class PreviewedFile(BaseModel):
    """What one file would become."""

    path: str
    count: int = Field(description="Replacements.")
    diff: str = Field(description="Unified; lines cut at 120 characters.")


class EditPreview(Answer):
    """What would be done, and how to have it done."""

    message: str = Field(description="That nothing is changed yet, and the call that applies or discards it.")
    action_id: str | None = Field(default=None, description="For resolve; left out if nothing is staged.")
    label: str | None = Field(default=None, description="What is staged.")
    applied: bool = Field(default=False, description="Never: resolve applies.")
    total_replacements: int = Field(description="Over all files.")
    files_touched: int = Field(description="Files that would change.")
    files_searched: int = Field(description="Files whose text was looked at.")
    limit_reached: bool = Field(description="There is more to replace.")
    incomplete: bool = Field(description="A cap of the walk cut the search.")
    parse_errors: tuple[BrokenFile, ...] = Field(description="Files that wouldn't parse any more, 20 at most.")
    files: tuple[PreviewedFile, ...] = Field(description="By path.")
    diff_truncated: bool | None = Field(default=None, description="Not all diffs are shown.")
    skipped: tuple[SkippedPath, ...] | None = Field(default=None, description="Files that couldn't be looked at.")

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of the answer, which begins with what it is."""
        return {"message": self.message, **super().to_wire()}


async def preview_edit(world: World, command: EditCode, caller: Caller) -> EditPreview:
    """Return the preview, staged.

    Raises:
        CodespaceError: UNAUTHORIZED, PATH_PROTECTED, PENDING_ACTION_UNRESOLVED, the codes of the port and of staging.
    """
    workspace = admit(world.workspaces, command.workspace_id, "write")
    require_usable_work(command.work_id)
    scope = checked_scope(command.paths, command.lang, command.selector)
    rewritings = _checked(command.ops)
    await require_resolved(world, workspace, command.work_id, caller)
    found = await world.structural.rewrite(
        world.files.open(workspace.root), scope, rewritings, limit=command.limit
    )
    preview, action = await to_thread.run_sync(_proposed, workspace, found)
    if action is None:
        return preview
    pushed = await LoggedPendingActions(world, Session(workspace, command.work_id), caller).push(action)
    return preview.model_copy(update={
        "message": pushed.how_to_resolve,
        "action_id": pushed.action_id,
        "warnings": (*preview.warnings, *pushed.notices),
    })


def _checked(edits: Sequence[CodeEdit]) -> tuple[Rewriting, ...]:
    if not 1 <= len(edits) <= limits.STRUCTURAL_REWRITINGS_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"ops has {len(edits)} entries; it has to be from 1 to {limits.STRUCTURAL_REWRITINGS_MAX}.",
            detail={"field": "ops"},
        )
    for number, edit in enumerate(edits):
        require_short(f"ops.{number}.pat", edit.pat)
        require_short(f"ops.{number}.out", edit.out)
    return tuple(Rewriting(edit.pat, edit.out) for edit in edits)


def _proposed(workspace: Workspace, found: RewriteFindings) -> tuple[EditPreview, NewAction | None]:
    """Return what is shown, and what is to be staged, if anything. For a worker thread. Raises PATH_PROTECTED."""
    _require_unprotected(workspace, found.files)
    preview = _preview_of(found)
    if preview.label is None:
        return preview, None
    edits = tuple(StagedEdit(each.path, each.before.version, each.after) for each in found.files)
    return preview, NewAction(preview.label, "ast_edit", StagedEdits(edits), preview.to_wire())


def _require_unprotected(workspace: Workspace, files: Sequence[RewrittenFile]) -> None:
    is_protected = policy.protects(workspace)
    protected = [each.path for each in files if is_protected(each.path)]
    if protected:
        raise CodespaceError(
            ErrorCode.PATH_PROTECTED,
            f"{len(protected)} of {len(files)} files are protected here, {protected[0]} first: leave them out with "
            "paths.",
            detail={"path": protected[0], "paths": protected[: limits.STRUCTURAL_LISTED_MAX]},
        )


def _preview_of(found: RewriteFindings) -> EditPreview:
    """Return what is shown of `found`, before it is staged."""
    count = sum(each.replacement_count for each in found.files)
    files, is_truncated = _shown(found.files)
    broken = [BrokenFile(path=each.path, line=each.broken_line) for each in found.files if each.broken_line is not None]
    return EditPreview(
        message=NOTHING_STAGED,
        label=f"AST Edit: {count} replacement(s) in {len(files)} file(s)" if files else None,
        total_replacements=count,
        files_touched=len(files),
        files_searched=found.coverage.files_searched,
        limit_reached=found.is_limit_reached,
        incomplete=found.coverage.is_incomplete,
        parse_errors=tuple(broken[: limits.STRUCTURAL_LISTED_MAX]),
        files=files,
        diff_truncated=is_truncated or None,
        skipped=skipped_paths(found.coverage),
        warnings=tuple(_remarks(found, len(broken))),
    )


def _shown(files: Sequence[RewrittenFile]) -> tuple[tuple[PreviewedFile, ...], bool]:
    """Return each file with its diff, as far as there is room for diffs."""
    room = limits.DIFF_BYTES_MAX
    shown = []
    is_truncated = False
    for each in files:
        diff = ""
        if not is_truncated:
            writer = DiffWriter(bytes_max=room)
            writer.write(file_diff(each.path, each.path, each.before.content, each.after))
            room -= len(writer.text.encode())
            is_truncated = writer.is_truncated
            diff = "\n".join(map(_cut, writer.text.split("\n")))
        shown.append(PreviewedFile(path=each.path, count=each.replacement_count, diff=diff))
    return tuple(shown), is_truncated


def _cut(line: str) -> str:
    most = limits.STRUCTURAL_DIFF_LINE_CHARACTERS_MAX
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _remarks(found: RewriteFindings, broken_count: int) -> list[Notice]:
    notices: list[Notice] = []
    if not found.match_count:
        notices += hints_of(found.coverage)
    elif not found.files:
        notices.append(Notice(
            kind="no_change", message=f"{found.match_count} matches read already as their replacement would."
        ))
    if found.unbound:
        notices.append(Notice(
            kind="unbound_metavariable",
            message=f"{', '.join(found.unbound)} isn't in its pattern, so it becomes nothing.",
        ))
    if broken_count:
        notices.append(Notice(
            kind="parse_errors",
            message=f"{broken_count} files wouldn't parse any more; parse_errors names {limits.STRUCTURAL_LISTED_MAX} "
            "at most.",
        ))
    if found.is_limit_reached:
        notices.append(Notice(kind="limit_reached", message="There is more to replace: apply this, then call again."))
    return [*notices, *remarks_of(found.coverage)]
