"""`apply_patch`: a V4A patch against the files as they are, previewed or applied, all or nothing.

In order: expected versions, by path; the format; every hunk's place; the files' rules. Source: contract B1.6, B3, A3.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

from anyio import to_thread
from pydantic import Field, StringConstraints

from codespace_es import policy
from codespace_es.admission import admit, require_usable_key, require_usable_work
from codespace_es.command_handlers.holding import HeldRequest
from codespace_es.command_handlers.writing import PatchRequest, PreparedPatch, write_patch
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.world import World
from codespace_es.v4a.parser import parse_patch
from codespace_es.v4a.patch import Patch, UpdateSection
from codespace_es.v4a.plan import Plan
from codespace_es.v4a.planner import plan_patch
from codespace_es.v4a.warning import PatchWarning
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Command, Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Caller, Version
from codespace_es.vocabulary.fingerprint import fingerprint
from codespace_es.vocabulary.identifiers import ApprovalId
from codespace_es.vocabulary.patch_result import PatchResult
from codespace_es.vocabulary.workspace import Workspace

ExpectedVersion = Annotated[str, StringConstraints(pattern=r"^(absent|sha256:[0-9a-f]{64})$")]


class ApplyPatch(Command):
    """Ask for a patch to be previewed or applied."""

    workspace_id: str = Field(description="Workspace to change.")
    patch: str = Field(description="V4A text.")
    expected_versions: dict[str, ExpectedVersion] = Field(
        default_factory=dict, description="path -> version from read, or 'absent'."
    )
    operation_key: str | None = Field(
        default=None, description="Your idempotency key."
    )
    check_only: bool = Field(default=False, description="Preview only.")
    work_id: str | None = Field(default=None, description="The work this belongs to.")


async def apply_patch(
    world: World, command: ApplyPatch, caller: Caller, *, resumed: ApprovalId | None = None,
    source_tool_name: str | None = None, is_gated: bool = True,
) -> PatchResult:
    """Return what the patch did or would do. Raises the codes of B1.6.

    `resumed` is the hold that allows it, `source_tool_name` the custom tool that wrote it, if one did. Without
    `is_gated` it belongs to a resolve, so nothing that is pending stands in its way.
    """
    workspace = admit(world.workspaces, command.workspace_id, "write")
    require_usable_key(command.operation_key)
    require_usable_work(command.work_id)
    _require_bounded(command)
    request = PatchRequest(
        workspace=workspace,
        source="apply_patch" if source_tool_name is None else "custom_tool",
        source_tool_name=source_tool_name,
        fingerprint=fingerprint(
            workspace=workspace.key,
            patch=command.patch,
            expected_versions=command.expected_versions,
            check_only=command.check_only,
        ),
        request=command.patch.encode(),
        prepare=lambda: preview_patch(world, workspace, command),
        operation_key=command.operation_key,
        check_only=command.check_only,
        work_id=command.work_id,
        held=lambda: to_thread.run_sync(held_patch, world, command),
        resumed=resumed,
        expected_versions=command.expected_versions,
        is_gated=is_gated,
    )
    return await write_patch(world, request, caller)


def preview_patch(world: World, workspace: Workspace, command: ApplyPatch) -> PreparedPatch:
    """Return what the patch would do to the files as they are. For a worker thread. Raises the refusals of planning."""
    return preview_patches(world, workspace, (command.patch,), command.expected_versions)


def preview_patches(
    world: World, workspace: Workspace, texts: Sequence[str], expected_versions: Mapping[str, Version]
) -> PreparedPatch:
    """Return what patches do one after the other, as one plan. For a worker thread. Raises the refusals of planning."""
    files = world.files.open(workspace.root)
    _require_versions(files, expected_versions)
    return plan_texts(world, workspace, texts, files)


def held_patch(world: World, command: ApplyPatch) -> HeldRequest:
    """Return the patch as it is held: with its files as they are now. For a worker thread.

    Raises:
        CodespaceError: WORKSPACE_NOT_FOUND, UNAUTHORIZED, and INVALID_PATCH for what is no text or too large.
    """
    workspace = admit(world.workspaces, command.workspace_id, "write")
    require_usable_key(command.operation_key)
    _require_bounded(command)
    seen = {}
    with suppress(CodespaceError):  # a patch that can't be understood is held all the same, and refused when it runs
        files = world.files.open(workspace.root)
        for path in _named_paths(parse_patch(command.patch)):
            with suppress(CodespaceError):  # so is one of a path that can't be looked at
                seen[path] = files.version(path)
    return HeldRequest(
        workspace=workspace,
        tool="apply_patch",
        command=command,
        title="Patch " + (", ".join(seen) or "nothing that can be read"),
        operation_key=command.operation_key,
        work_id=command.work_id,
        seen_versions=seen,
    )


def require_readable_patch(text: str) -> None:
    """Pass if `text` is a patch at all, whatever its files say. Raises INVALID_PATCH."""
    parse_patch(text)


def _named_paths(patch: Patch) -> Iterator[str]:
    for section in patch.sections:
        yield section.path
        if isinstance(section, UpdateSection) and section.move_to is not None:
            yield section.move_to


def _require_bounded(command: ApplyPatch) -> None:
    """Refuse what is too large to be recorded. Raises INVALID_PATCH, INVALID_ARGUMENT."""
    try:
        size = len(command.patch.encode())
    except UnicodeEncodeError as error:
        raise CodespaceError(
            ErrorCode.INVALID_PATCH, f"The patch isn't valid Unicode at character {error.start}."
        ) from error
    if size > limits.PATCH_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_PATCH, f"The patch has {size} bytes; the limit is {limits.PATCH_BYTES_MAX}."
        )
    if len(command.expected_versions) > limits.EXPECTED_VERSIONS_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"expected_versions has {len(command.expected_versions)} entries; "
            f"the limit is {limits.EXPECTED_VERSIONS_MAX}.",
            detail={"field": "expected_versions"},
        )
    longest = max((len(path.encode(errors="surrogatepass")) for path in command.expected_versions), default=0)
    if longest > limits.PATH_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"expected_versions has a path of {longest} bytes; the limit is {limits.PATH_BYTES_MAX}.",
            detail={"field": "expected_versions"},
        )


def _require_versions(files: WorkspaceFiles, expected_versions: Mapping[str, Version]) -> None:
    """Check every listed path in sorted order, whether or not the patch touches it. Raises VERSION_CONFLICT."""
    for path in sorted(expected_versions):
        expected = expected_versions[path]
        found = files.version(path)
        if found != expected:
            raise CodespaceError(
                ErrorCode.VERSION_CONFLICT,
                f"{path} is not at the expected version: " + _difference(expected, found),
                detail={"path": path, "expected": expected, "found": found},
            )


def _difference(expected: str, found: str) -> str:
    if found == ABSENT:
        return "it doesn't exist."
    if expected == ABSENT:
        return "it exists."
    return "its content has changed since it was read."


def plan_texts(
    world: World, workspace: Workspace, texts: Sequence[str], files: WorkspaceFiles | None = None
) -> PreparedPatch:
    """Return what patches do one after the other, as one plan. For a worker thread.

    Raises:
        CodespaceError: the codes of the format and of the files.
    """
    files = files or world.files.open(workspace.root)
    patch = Patch(tuple(section for text in texts for section in parse_patch(text).sections))
    plan = plan_patch(
        patch,
        files,
        matching=workspace.patch_matching,
        protected=policy.protects(workspace),
        new_file_mode=world.new_file_mode,
    )
    return prepared(plan)


def prepared(plan: Plan) -> PreparedPatch:
    """Return a plan as it is carried out and told of."""
    return PreparedPatch(
        plan=plan.files,
        images=plan.images,
        made_directories=plan.made_directories,
        files=plan.file_order,
        summaries=plan.summaries,
        diff=plan.diff,
        is_diff_truncated=plan.is_diff_truncated,
        notices=_notices(plan.warnings),
    )


def _notices(warnings: Sequence[PatchWarning]) -> tuple[Notice, ...]:
    """Return what is worth a look, the first of many."""
    told = [Notice(**asdict(warning)) for warning in warnings[: limits.PATCH_WARNINGS_MAX]]
    if len(warnings) > len(told):
        more = len(warnings) - len(told)
        told.append(Notice(kind="more_warnings", message=f"{more} more warnings of this patch aren't shown."))
    return tuple(told)
