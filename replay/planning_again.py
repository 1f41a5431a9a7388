"""Planning a recorded patch again, with today's parser and planner, on the files as they were recorded then.

An undo is planned again from the plans of what it undid.
"""

import json
from collections.abc import Mapping

from codespace_es.aggregates.operation import OperationMinted
from codespace_es.v4a.inverse import invert_plans
from codespace_es.v4a.parser import parse_patch
from codespace_es.v4a.planner import plan_patch
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import FileImage, PlannedFile
from codespace_es.vocabulary.identifiers import StreamId
from replay.files_at import read_version
from replay.source import LogSource, first_of

_NEW_FILE_MODE = 0o644


class NotPlannableError(LookupError):
    """What the planner would need isn't stored."""


class _RecordedTree:
    """The files that a patch found, as its own plan and the stored contents tell; nothing else was there."""

    def __init__(self, images: Mapping[str, FileImage], made: tuple[str, ...]) -> None:
        self._images = images
        self._made = made

    def normalize(self, path: str) -> str:
        """Return `path` folded as text. Raises PATH_ESCAPE."""
        kept: list[str] = []
        for part in path.split("/"):
            if (part == ".." and not kept) or path.startswith("/"):
                raise CodespaceError(ErrorCode.PATH_ESCAPE, f"{path!r} leads out of the workspace.")
            if part == "..":
                kept.pop()
            elif part not in ("", "."):
                kept.append(part)
        return "/".join(kept) or "."

    def read_image(self, path: str, *, bytes_max: int) -> FileImage | None:
        """Return a recorded file, None where there was none."""
        image = self._images.get(path)
        if image is not None and len(image.content) > bytes_max:
            raise CodespaceError(ErrorCode.INVALID_PATCH, f"{path!r} is too large.")
        return image

    def missing_directories(self, path: str) -> tuple[str, ...]:
        """Return those parents of `path` that the patch made."""
        return tuple(directory for directory in self._made if path.startswith(directory + "/"))

    def did_you_mean(self, _path: str) -> str | None:
        """Return nothing: names beside those of the patch aren't recorded."""
        return None


def plan_again(source: LogSource, stream_id: StreamId, minted: OperationMinted) -> str | None:
    """Return how today's plan for a recorded patch differs from the recorded one; None if it is the same.

    Raises:
        NotPlannableError: it wasn't a patch text, or its contents aren't stored.
    """
    if minted.source == "revert" and minted.plan:
        return _difference(minted.plan, _undo_again(source, stream_id, minted))
    if minted.source != "apply_patch" or not minted.plan:
        raise NotPlannableError("it has no patch text with a plan")
    request = read_version(source, minted.request.digest, (stream_id,))
    if request is None:
        raise NotPlannableError("its patch text isn't stored")
    images: dict[str, FileImage] = {}
    for row in minted.plan:
        if row.before == ABSENT:
            continue
        content = read_version(source, row.before, (stream_id,))
        if content is None:
            raise NotPlannableError("the files it found aren't stored")
        images[row.path] = FileImage(content, row.before_mode if row.before_mode is not None else _NEW_FILE_MODE)
    tree = _RecordedTree(images, minted.made_directories)
    added_modes = (row.mode for row in minted.plan if row.kind == "add" and row.mode is not None)
    try:
        plan = plan_patch(
            parse_patch(request.decode("utf-8")), tree, matching="lenient", protected=lambda _: False,
            new_file_mode=next(added_modes, _NEW_FILE_MODE),
        )
    except UnicodeDecodeError:
        return "its patch text isn't UTF-8"
    except CodespaceError as refusal:
        return f"it would be refused: {refusal}"
    return _difference(minted.plan, plan.files)


def _undo_again(source: LogSource, stream_id: StreamId, minted: OperationMinted) -> tuple[PlannedFile, ...]:
    """Return the plan that undoes what a recorded undo was asked to undo. Raises NotPlannableError."""
    request = read_version(source, minted.request.digest, (stream_id,))
    if request is None:
        raise NotPlannableError("what it was asked to undo isn't stored")
    try:
        asked = json.loads(request)
        names = (str(asked["operation_id"]), *map(str, asked.get("also", ())))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotPlannableError("what it was asked to undo can't be read") from None
    undone = {}
    for name in names:
        opening = first_of(source, name)
        if opening is None or not isinstance(opening.event, OperationMinted):
            raise NotPlannableError("what it undid isn't recorded")
        undone[opening.position] = opening.event.plan
    return invert_plans([undone[position] for position in sorted(undone, reverse=True)])


def _difference(recorded: tuple[PlannedFile, ...], today: tuple[PlannedFile, ...]) -> str | None:
    if recorded == today:
        return None
    was, now = ({row.path: row for row in rows} for rows in (recorded, today))
    changed = sorted(path for path in was | now if was.get(path) != now.get(path))
    return f"its plan would differ for {', '.join(changed)}" if changed else "its plan would be in another order"
