"""Where all hunks of one section stand in one file, and the edits that come of it.

`at` is the first line that is still free: 0 for the first hunk, then the line below the last block found. All hunks
match the file as it is at the start of the section.
Source: V4A reference, section 5; decisions 4, 5 and 8.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codespace_es.v4a.chunk_locator import ChunkLocator, Match
from codespace_es.v4a.hunk_lines import HunkLines
from codespace_es.v4a.line_ends import BYTE_ORDER_MARK, Edit, TextFile
from codespace_es.v4a.nearest import nearest_place
from codespace_es.v4a.patch import Hunk, SeekLine
from codespace_es.v4a.refusal import excerpt, refusal
from codespace_es.v4a.warning import PatchWarning, WarningKind
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.workspace import PatchMatching

_LINE_NUMBERS = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")
"""What stands behind `@@ ` in a unified diff."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What a section does to a file's lines."""

    edits: tuple[Edit, ...]
    """Sorted, without overlap."""
    keeps_mark: bool
    """False where a hunk names the byte-order mark itself and removes it."""
    warnings: tuple[PatchWarning, ...]


def place_hunks(hunks: Sequence[Hunk], file: TextFile, *, path: str, matching: PatchMatching) -> Placement:
    """Return the edits of `hunks` to `file`.

    Raises:
        CodespaceError: INVALID_PATCH for the first hunk that has no place, with `hunk`, `patch_line`, `expected` and
            `nearest` in `detail`; under strict matching also for a place that isn't exact or isn't the only one.
    """
    placer = _Placer(file, path, matching)
    for hunk in hunks:
        placer.place(hunk)
    return placer.placement()


class _Placer:
    def __init__(self, file: TextFile, path: str, matching: PatchMatching) -> None:
        self._file = file
        self._path = path
        self._is_strict = matching == "strict"
        self._locator = ChunkLocator(file.lines)
        self._at = 0
        self._edits: list[Edit] = []
        self._warnings: list[PatchWarning] = []
        self._keeps_mark = True

    def placement(self) -> Placement:
        return Placement(
            tuple(sorted(self._edits, key=lambda edit: edit.start)), self._keeps_mark, tuple(self._warnings)
        )

    def place(self, hunk: Hunk) -> None:
        seeks_found = [self._has_sought(hunk, seek) for seek in hunk.seek_lines]
        lines = HunkLines(hunk.marks, hunk.texts)
        if lines.is_pure_addition:
            self._append(hunk, lines, is_below_seek_line=any(seeks_found))
            return
        match = self._locate(lines, is_end_of_file=hunk.is_end_of_file)
        if match is None and lines.ends_in_blank:
            shorter = lines.without_last_blank()
            if not shorter.has_old_lines:
                self._place_unanchored(hunk, shorter)
                return
            match = self._locate(shorter, is_end_of_file=hunk.is_end_of_file)
            if match is not None and not lines.is_last_blank_idle:
                message = "the hunk's last blank line isn't there; the rest of the hunk was matched without it"
                self._report("blank_line_absent", hunk, message, line=match.start + 1)
            lines = shorter if match is not None else lines
        if match is None:
            raise self._no_place(hunk, lines)
        self._take(hunk, lines, match)

    def _has_sought(self, hunk: Hunk, seek: SeekLine) -> bool:
        """Move below the line that `seek` names; return false if it names none and is a unified diff's line numbers."""
        match = self._locate(HunkLines(" ", (seek.text,)), is_end_of_file=False)
        if match is None:
            if _LINE_NUMBERS.fullmatch(seek.text):
                return False
            reason = f"the line that '@@ {excerpt(seek.text, 120)}' names is not there"
            raise self._not_found(hunk, [seek.text], [seek.patch_line_number], reason)
        self._at = match.start + 1
        if match.kind != "exact":
            self._report("seek_match", hunk, "the @@ line was found by a loose match", match=match)
        return True

    def _append(self, hunk: Hunk, lines: HunkLines, *, is_below_seek_line: bool) -> None:
        end = len(self._file.lines)
        self._edits += lines.edits(end)
        if is_below_seek_line:
            message = "a hunk of additions alone goes to the end of the file, not below its @@ line"
            self._report("seek_ignored", hunk, message, line=end + 1, candidates=1)

    def _locate(self, lines: HunkLines, *, is_end_of_file: bool) -> Match | None:
        block = lines.old_lines
        if self._file.has_mark and self._at == 0 and block[0].startswith(BYTE_ORDER_MARK):
            top = ChunkLocator(self._file.lines[: len(block)])
            match = top.locate([block[0].removeprefix(BYTE_ORDER_MARK), *block[1:]], start_index=0)
            if match is not None and not (is_end_of_file and len(block) < len(self._file.lines)):
                self._keeps_mark = self._keeps_mark and not lines.removes_first
                return match
        return self._locator.locate(block, start_index=self._at, is_end_of_file=is_end_of_file)

    def _take(self, hunk: Hunk, lines: HunkLines, match: Match) -> None:
        if match.kind != "exact" or match.candidates > 1:
            places = ", ".join([str(place + 1) for place in match.places])
            message = f"{match.kind} match at line {match.start + 1}; {match.candidates} such place(s), line {places}"
            self._report("hunk_match", hunk, message, match=match)
        self._edits += lines.edits(match.start)
        self._at = match.start + len(lines.old_lines)

    def _place_unanchored(self, hunk: Hunk, lines: HunkLines) -> None:
        """Place a hunk whose only old line is a blank one that isn't there: nothing but `at` anchors it."""
        edits = lines.edits(self._at)
        if edits and self._at == 0:
            reason = "its only old line is a blank one that the file doesn't have, so it has no place"
            raise self._refused(hunk, reason, hunk.lines_number)
        self._edits += edits
        if edits or "-" in hunk.marks:
            message = "the hunk's only old line, a blank one, isn't there"
            self._report("blank_line_absent", hunk, message, line=self._at + 1)

    def _report(
        self, kind: WarningKind, hunk: Hunk, message: str, *, match: Match | None = None, line: int | None = None,
        candidates: int | None = None,
    ) -> None:
        """Warn, or refuse where matching is strict."""
        if self._is_strict and kind != "seek_ignored":
            places = None if match is None else [place + 1 for place in match.places]
            raise self._refused(hunk, f"strict matching refuses this: {message}", hunk.patch_line_number, places=places)
        if match is not None:
            line, candidates = match.start + 1, match.candidates
        self._warnings.append(PatchWarning(
            kind, self._path, message, hunk=hunk.number, line=line, match=match.kind if match else None,
            candidates=candidates,
        ))

    def _no_place(self, hunk: Hunk, lines: HunkLines) -> CodespaceError:
        block = lines.old_lines
        elsewhere = self._locator.locate(block, start_index=0)
        if elsewhere is None:
            reason = "its lines are not in the file"
        elif hunk.is_end_of_file:
            reason = f"its lines stand at line {elsewhere.start + 1}, not at the end of the file"
        else:
            reason = (
                f"its lines stand at line {elsewhere.start + 1}, above line {self._at + 1} where the search begins:"
                " hunks stand in the order of the file, share no line, and lie below their @@ line"
            )
        return self._not_found(hunk, block, hunk.old_line_numbers, reason)

    def _not_found(self, hunk: Hunk, block: list[str], numbers: list[int], reason: str) -> CodespaceError:
        nearest = nearest_place(self._locator, block, start_index=self._at)
        index = 0 if nearest is None else nearest.block_index
        place = None if nearest is None else {"line": nearest.line_number, "lines": list(nearest.lines)}
        return self._refused(hunk, reason, numbers[index], expected=block[index], nearest=place)

    def _refused(self, hunk: Hunk, reason: str, patch_line: int, **detail: Any) -> CodespaceError:
        message = f"Hunk {hunk.number} of '{excerpt(self._path, 120)}' (patch line {patch_line}): {reason}."
        return refusal(ErrorCode.INVALID_PATCH, message, hunk=hunk.number, patch_line=patch_line, **detail)
