"""Showing what changed: counts of lines, and a unified diff with a limit.

Where one section edited a file its own edits are the diff; else lines are aligned by those that occur once on either
side (patience), which takes time linear in the lines but for sorting.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codespace_es.v4a.line_ends import Edit, TextFile, text_file
from codespace_es.vocabulary.limits import DIFF_BYTES_MAX

_CONTEXT_LINES = 3
_NO_LINE_END = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file's part of a diff: edits of its old lines. A path is None where there is no file on that side."""

    old_path: str | None
    new_path: str | None
    lines: Sequence[str]
    """The old lines, without their ends."""
    edits: Sequence[Edit]
    is_old_terminated: bool = True
    is_new_terminated: bool = True
    is_binary: bool = False

    @classmethod
    def of_edits(
        cls, old_path: str | None, new_path: str | None, text: TextFile | None, edits: Sequence[Edit]
    ) -> "FileDiff":
        """Return the diff of one update, which also ends a last line that had no end; of nothing without a text."""
        if text is None:
            return cls(old_path, new_path, [], ())
        shown = [kept for edit in edits if (kept := _trimmed(text.lines, edit)) is not None]
        if not text.is_terminated:
            shown = _with_last_line(text.lines, shown)
        return cls(old_path, new_path, text.lines, shown, text.is_terminated)

    @property
    def summary(self) -> str:
        """Lines added and removed, as `+n -m`."""
        added = sum([len(edit.new_lines) for edit in self.edits])
        return f"+{added} -{sum([edit.end - edit.start for edit in self.edits])}"


class DiffWriter:
    """Collects the diffs of a patch up to the limit."""

    def __init__(self, *, bytes_max: int = DIFF_BYTES_MAX) -> None:
        self._room = bytes_max
        self._parts: list[str] = []
        self.is_truncated = False

    @property
    def text(self) -> str:
        """What has been written, whole lines."""
        return "".join(self._parts)

    def write(self, diff: FileDiff) -> None:
        """Add one file's diff, as far as there is room; nothing at all comes after the first cut."""
        for line in () if self.is_truncated else _unified(diff):
            self._room -= len(line.encode())
            if self._room < 0:
                self.is_truncated = True
                return
            self._parts.append(line)


def file_diff(old_path: str | None, new_path: str | None, old: bytes, new: bytes) -> FileDiff:
    """Return the diff of two contents; of content that isn't UTF-8 it only says that it differs."""
    try:
        old_text, new_text = text_file(old.decode("utf-8")), text_file(new.decode("utf-8"))
    except UnicodeDecodeError:
        return FileDiff(old_path, new_path, [], (), is_binary=True)
    old_lines, new_lines = _whole_lines(old_text), _whole_lines(new_text)
    edits = [
        Edit(start, end, tuple(new_text.lines[new_start:new_end]))
        for start, end, new_start, new_end in differences(old_lines, new_lines)
    ]
    return FileDiff(old_path, new_path, old_text.lines, edits, old_text.is_terminated, new_text.is_terminated)


def differences(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return `(start, end, new_start, new_end)` of each run of lines in which `old` and `new` differ, in order."""
    runs: list[tuple[int, int, int, int]] = []
    position, new_position = 0, 0
    for anchor, new_anchor in [*_anchors(old, new), (len(old), len(new))]:
        if anchor < position or new_anchor < new_position:
            continue
        start, new_start = position, new_position
        while start < anchor and new_start < new_anchor and old[start] == new[new_start]:
            start, new_start = start + 1, new_start + 1
        end, new_end = anchor, new_anchor
        while end > start and new_end > new_start and old[end - 1] == new[new_end - 1]:
            end, new_end = end - 1, new_end - 1
        if end > start or new_end > new_start:
            runs.append((start, end, new_start, new_end))
        position, new_position = anchor, new_anchor
    return runs


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of equal lines that are unique on either side, the longest series that ascends on both."""
    if not old or not new:
        return []
    counts, new_counts = Counter(old), Counter(new)
    new_places = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(index, new_places[line]) for index, line in enumerate(old) if counts[line] == 1 and line in new_places]
    tails: list[int] = []
    tail_pairs: list[int] = []
    previous: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        previous.append(tail_pairs[length - 1] if length else -1)
        tails[length : length + 1] = [place]
        tail_pairs[length : length + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = tail_pairs[-1] if tail_pairs else -1
    while number >= 0:
        chain.append(pairs[number])
        number = previous[number]
    return chain[::-1]


def _whole_lines(text: TextFile) -> list[str]:
    ends = [text.ends] * len(text.lines) if isinstance(text.ends, str) else [*text.ends, ""]
    lines = [line + end for line, end in zip(text.lines, ends, strict=False)]
    if lines and not text.is_terminated:
        lines[-1] = text.lines[-1]
    if text.has_mark:
        lines[:1] = ["\ufeff" + line for line in lines[:1]]
    return lines


def _trimmed(lines: Sequence[str], edit: Edit) -> Edit | None:
    """Return `edit` without the lines at its edges that it replaces by themselves; None if nothing is left."""
    start, end, new_start, new_end = edit.start, edit.end, 0, len(edit.new_lines)
    while start < end and new_start < new_end and lines[start] == edit.new_lines[new_start]:
        start, new_start = start + 1, new_start + 1
    while start < end and new_start < new_end and lines[end - 1] == edit.new_lines[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return Edit(start, end, edit.new_lines[new_start:new_end]) if end > start or new_end > new_start else None


def _with_last_line(lines: Sequence[str], edits: list[Edit]) -> list[Edit]:
    """Return `edits` with the last line among the changed ones: it gets its line end."""
    last = len(lines) - 1
    if any(edit.start <= last < edit.end for edit in edits):
        return edits
    above = [edit for edit in edits if edit.start <= last]
    below = [line for edit in edits if edit.start > last for line in edit.new_lines]
    return [*above, Edit(last, last + 1, (lines[last], *below))]


def _unified(diff: FileDiff) -> Iterator[str]:
    """Yield the lines of the diff, each with its LF."""
    is_renamed = diff.old_path is not None and diff.new_path is not None and diff.old_path != diff.new_path
    if is_renamed:
        yield f"rename from {diff.old_path}\nrename to {diff.new_path}\n"
    old_name = "/dev/null" if diff.old_path is None else f"a/{diff.old_path}"
    new_name = "/dev/null" if diff.new_path is None else f"b/{diff.new_path}"
    if diff.is_binary:
        yield f"Binary files {old_name} and {new_name} differ\n"
        return
    if not diff.edits and not (diff.old_path is None or diff.new_path is None):
        return
    yield f"--- {old_name}\n+++ {new_name}\n"
    shift = 0
    for group in _groups(diff.edits):
        yield from _hunk(diff, group, shift)
        shift += sum([len(edit.new_lines) - (edit.end - edit.start) for edit in group])


def _groups(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Yield edits together whose context would touch."""
    group: list[Edit] = []
    for edit in edits:
        if group and edit.start - group[-1].end > 2 * _CONTEXT_LINES:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _hunk(diff: FileDiff, group: list[Edit], shift: int) -> Iterator[str]:
    count = len(diff.lines)
    start = max(group[0].start - _CONTEXT_LINES, 0)
    end = min(group[-1].end + _CONTEXT_LINES, count)
    growth = sum([len(edit.new_lines) - (edit.end - edit.start) for edit in group])
    old_range = _range(start, end - start)
    yield f"@@ -{old_range} +{_range(start + shift, end - start + growth)} @@\n"
    position = start
    for edit in group:
        for index in range(position, edit.start):
            yield f" {diff.lines[index]}\n"
        for index in range(edit.start, edit.end):
            yield f"-{diff.lines[index]}\n"
        if edit.end == count and edit.end > edit.start and not diff.is_old_terminated:
            yield _NO_LINE_END
        for line in edit.new_lines:
            yield f"+{line}\n"
        if edit.end == count and edit.new_lines and not diff.is_new_terminated:
            yield _NO_LINE_END
        position = edit.end
    for index in range(position, end):
        yield f" {diff.lines[index]}\n"
    if position < end == count and not diff.is_old_terminated:
        yield _NO_LINE_END


def _range(start: int, count: int) -> str:
    """Return a unified diff's range: one line has no count, an empty one is named by the line above."""
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
