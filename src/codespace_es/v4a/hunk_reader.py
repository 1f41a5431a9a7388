"""The body of one update section: from its lines to hunks.

Source: V4A reference, section 4; decision 4 for stacked `@@` lines.
"""

from collections.abc import Callable

from codespace_es.v4a.patch import Hunk, SeekLine
from codespace_es.v4a.refusal import excerpt, refusal
from codespace_es.v4a.white_space import trim, trim_end
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

END_OF_FILE = "*** End of File"
_MARKS = frozenset(" -+")


class HunkReader:
    """Reads hunks from a line of the patch up to the line that closes the section."""

    def __init__(
        self, lines: list[str], index: int, *, first_line_number: int, section_number: int, path: str
    ) -> None:
        self.index = index
        """0-based line that is read next."""
        self._lines = lines
        self._first_line_number = first_line_number
        self._section_number = section_number
        self._path = path
        self._hunks: list[Hunk] = []

    def read(self, *, is_boundary: Callable[[int, str], bool]) -> tuple[Hunk, ...]:
        """Return all hunks, in order; afterwards `index` is at the boundary.

        `is_boundary` is asked with an index and that line without white space at its end.
        """
        while True:
            line = trim_end(self._lines[self.index])
            if is_boundary(self.index, line):
                return tuple(self._hunks)
            if line == END_OF_FILE and not self._hunks:
                self.index += 1
                continue
            self._read_hunk(is_boundary)

    def _read_hunk(self, is_boundary: Callable[[int, str], bool]) -> None:
        start = self.index
        seek_lines = self._read_seek_lines()
        if self.index == start and self._hunks:
            raise self._refusal("A further hunk must start with '@@'")
        lines_start = self.index
        self._skip_lines(is_boundary)
        if self.index == lines_start:
            raise self._refusal("A hunk line must start with ' ', '-' or '+'")
        raw = self._lines[lines_start : self.index]
        hunk_end = self.index
        self._skip_end_of_file(is_boundary)
        self._hunks.append(Hunk(
            number=len(self._hunks) + 1,
            seek_lines=seek_lines,
            marks="".join([line[:1] or " " for line in raw]),
            texts=tuple([line[1:] for line in raw]),
            lines_number=self._first_line_number + lines_start,
            patch_line_number=self._first_line_number + start,
            is_end_of_file=self.index > hunk_end,
        ))

    def _read_seek_lines(self) -> tuple[SeekLine, ...]:
        seek_lines = []
        while (raw := self._lines[self.index]).startswith("@@"):
            line = trim_end(raw)
            if line.startswith("@@ "):
                seek_lines.append(SeekLine(line[3:], self._first_line_number + self.index))
            elif line != "@@":
                raise self._refusal("'@@' must stand alone or be followed by a blank and a line of the file")
            self.index += 1
        return tuple(seek_lines)

    def _skip_lines(self, is_boundary: Callable[[int, str], bool]) -> None:
        lines = self._lines
        while True:
            line = lines[self.index]
            if line and line[0] in _MARKS:
                # The patch's last line is its End even where blanks stand in front of it.
                if self.index == len(lines) - 1:
                    return
            elif line.startswith("@@"):
                return
            elif line:
                line = trim_end(line)
                if is_boundary(self.index, line) or line == END_OF_FILE:
                    return
                raise self._refusal("A hunk line must start with ' ', '-' or '+'")
            self.index += 1

    def _skip_end_of_file(self, is_boundary: Callable[[int, str], bool]) -> None:
        if trim_end(self._lines[self.index]) != END_OF_FILE:
            return
        self.index += 1
        while not trim(self._lines[self.index]):
            self.index += 1
        line = trim_end(self._lines[self.index])
        if not (line.startswith("@@") or is_boundary(self.index, line)):
            raise self._refusal(f"Nothing but a new hunk or section may follow '{END_OF_FILE}'")

    def _refusal(self, message: str) -> CodespaceError:
        patch_line = self._first_line_number + self.index
        return refusal(
            ErrorCode.INVALID_PATCH,
            f"Patch line {patch_line}: {message}, got '{excerpt(self._lines[self.index], 100)}'.",
            path=self._path, section=self._section_number, hunk=len(self._hunks) + 1, patch_line=patch_line,
        )
