"""What is left when all sections have run: one row a path, the images, the directories, and how to show it."""

from collections.abc import Sequence

from codespace_es.v4a.diff import DiffWriter, FileDiff, file_diff
from codespace_es.v4a.overlay import Overlay, VirtualFile
from codespace_es.v4a.plan import Plan
from codespace_es.v4a.warning import PatchWarning
from codespace_es.vocabulary.event import ABSENT, Digest
from codespace_es.vocabulary.file_change import ChangeKind, PlannedFile

_UNCHANGED = "+0 -0"


def net_change(overlay: Overlay, warnings: Sequence[PatchWarning]) -> Plan:
    """Return the plan for what `overlay` has become."""
    rows: list[PlannedFile] = []
    images: dict[Digest, bytes] = {}
    made: dict[str, None] = {}
    linked: list[PatchWarning] = []
    for path, before in overlay.before.items():
        after = overlay.now[path]
        if before is None and after is None:
            continue
        rows.append(_row(path, before, after))
        for file in (before, after):
            if file is not None:
                images[file.digest] = file.content
        if before is None:
            made.update(dict.fromkeys(overlay.missing_directories(path)))
        if after is not None and after.links > 1 and not rows[-1].is_no_change:
            message = f"the file had {after.links} names: this one gets a file of its own"
            linked.append(PatchWarning("hard_link_broken", path, message))
    summaries, writer = _shown(overlay, rows)
    return Plan(
        files=tuple(rows), images=images, made_directories=tuple(made), summaries=summaries, diff=writer.text,
        is_diff_truncated=writer.is_truncated, warnings=(*warnings, *linked),
    )


def _row(path: str, before: VirtualFile | None, after: VirtualFile | None) -> PlannedFile:
    moved_from = None if after is None or after.origin == path else after.origin
    kind: ChangeKind
    if after is None:
        kind = "delete"
    elif before is not None:
        kind = "update"
    else:
        kind = "add" if moved_from is None else "move"
    return PlannedFile(
        path=path,
        kind=kind,
        moved_from=moved_from,
        before=ABSENT if before is None else before.digest,
        after=ABSENT if after is None else after.digest,
        before_bytes=None if before is None else len(before.content),
        after_bytes=None if after is None else len(after.content),
        mode=None if after is None else after.mode,
        before_mode=None if before is None else before.mode,
    )


def _shown(overlay: Overlay, rows: Sequence[PlannedFile]) -> tuple[dict[str, str], DiffWriter]:
    """Return `+n -m` a path and the diff of all; a moved file is shown once, at its destination."""
    writer = DiffWriter()
    summaries: dict[str, str] = {}
    moved = {row.moved_from for row in rows if row.kind == "move"}
    for row in rows:
        if row.kind == "delete" and row.path in moved:
            summaries[row.path] = _UNCHANGED
            continue
        shown = _file_diff(overlay, row)
        summaries[row.path] = shown.summary
        writer.write(shown)
    return summaries, writer


def _file_diff(overlay: Overlay, row: PlannedFile) -> FileDiff:
    source = row.path if row.kind != "move" or row.moved_from is None else row.moved_from
    before, after = overlay.before[source], overlay.now[row.path]
    old_path = None if before is None else source
    new_path = None if after is None else row.path
    if before is not None and after is not None and after.origin == source and after.edits is not None:
        return FileDiff.of_edits(old_path, new_path, after.text, after.edits)
    return file_diff(
        old_path, new_path, b"" if before is None else before.content, b"" if after is None else after.content
    )
