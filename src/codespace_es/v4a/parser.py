r"""From patch text to sections and hunks; knows no file, and raises nothing but INVALID_PATCH.

    patch   := begin env? section* end
    section := "*** Add File: " path    ("+" text)*
             | "*** Delete File: " path
             | "*** Update File: " path  ("*** Move to: " path)?  hunk*       (no hunk only with Move to)
    hunk    := ("@@" | "@@ " text)*  line+  ("*** End of File" blank*)?      (no @@ in the first hunk only)
    line    := " " text | "-" text | "+" text | ""

Outside an update section blanks around a header are forgiven; inside one a leading blank makes it context.
Source: V4A reference, sections 2 to 4; decision 4 for stacked `@@` and pure renames; decision 8 for paths.
"""

from codespace_es.v4a.envelope import END, open_envelope
from codespace_es.v4a.hunk_reader import HunkReader
from codespace_es.v4a.patch import AddSection, DeleteSection, Patch, Section, UpdateSection
from codespace_es.v4a.refusal import excerpt, refusal
from codespace_es.v4a.white_space import WHITE_SPACE, trim, trim_end
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import PATCH_SECTIONS_MAX

ADD = "*** Add File: "
DELETE = "*** Delete File: "
UPDATE = "*** Update File: "
MOVE = "*** Move to: "
_ENVIRONMENT = "*** Environment ID:"
_HEADERS = (ADD, DELETE, UPDATE)
_EXPECTED = f"expected '{ADD}PATH', '{DELETE}PATH', '{UPDATE}PATH' or '{END}'"


def parse_patch(text: str) -> Patch:
    """Return what `text` says, sections and hunks in its order.

    Raises:
        CodespaceError: INVALID_PATCH, with `section`, `hunk` and `patch_line` (all 1-based) in `detail` where known.
    """
    envelope = open_envelope(text)
    return _Reader(envelope.lines, envelope.first_line_number).read()


class _Reader:
    """Reads the lines of one patch from top to bottom."""

    def __init__(self, lines: list[str], first_line_number: int) -> None:
        self._lines = lines
        self._first_line_number = first_line_number
        self._last = len(lines) - 1
        self._index = 1
        self._sections: list[Section] = []

    def read(self) -> Patch:
        self._skip_environment()
        while not self._is_end(trim(self._lines[self._index])):
            if len(self._sections) == PATCH_SECTIONS_MAX:
                raise self._refusal(f"The patch has more than {PATCH_SECTIONS_MAX} sections.")
            self._sections.append(self._read_section())
        self._check_nothing_follows()
        if not self._sections:
            raise refusal(ErrorCode.INVALID_PATCH, "The patch is empty: there is no section between its markers.")
        return Patch(tuple(self._sections))

    def _skip_environment(self) -> None:
        line = trim(self._lines[1])
        if line.startswith(_ENVIRONMENT):
            if not trim(line.removeprefix(_ENVIRONMENT)):
                raise self._refusal("The Environment ID is blank.")
            self._index += 1

    def _read_section(self) -> Section:
        line = trim(self._lines[self._index])
        if line.startswith(ADD):
            return self._read_add(self._path(line, ADD))
        if line.startswith(DELETE):
            path, number = self._path(line, DELETE), self._number()
            self._index += 1
            return DeleteSection(path, number)
        if line.startswith(UPDATE):
            return self._read_update(self._path(line, UPDATE))
        raise self._refusal(f"'{excerpt(line, 100)}' is no section header: {_EXPECTED}.")

    def _read_add(self, path: str) -> AddSection:
        number = self._number()
        self._index += 1
        start = self._index
        lines = self._lines
        while lines[self._index].startswith("+"):
            self._index += 1
        line = trim(lines[self._index])
        if not (line.startswith(_HEADERS) or self._is_end(line)):
            message = f"Every line of an added file must start with '+', got '{excerpt(line, 100)}'."
            raise self._refusal(message, section_number=len(self._sections) + 1, path=path)
        return AddSection(path, tuple([line[1:] for line in lines[start : self._index]]), number)

    def _read_update(self, path: str) -> UpdateSection:
        number = self._number()
        self._index += 1
        move_to, move_line_number = None, None
        line = trim_end(self._lines[self._index])
        if line.startswith(MOVE):
            move_to, move_line_number = self._path(line, MOVE), self._number()
            self._index += 1
        reader = HunkReader(
            self._lines, self._index, first_line_number=self._first_line_number,
            section_number=len(self._sections) + 1, path=path,
        )
        hunks = reader.read(is_boundary=self._is_boundary)
        self._index = reader.index
        if not hunks and move_to is None:
            message = f"The update of '{excerpt(path, 100)}' has no hunk."
            raise self._refusal(message, section_number=len(self._sections) + 1, number=number, path=path)
        return UpdateSection(path, hunks, number, move_to, move_line_number)

    def _is_boundary(self, index: int, line: str) -> bool:
        """Tell whether `line`, its end trimmed, closes an update section."""
        return line.startswith(_HEADERS) or line == END or index == self._last

    def _is_end(self, line: str) -> bool:
        return line == END

    def _check_nothing_follows(self) -> None:
        for index in range(self._index + 1, len(self._lines)):
            line = trim(self._lines[index])
            if line and line != END:
                self._index = index
                raise self._refusal(f"Nothing may follow '{END}', got '{excerpt(line, 100)}'.")

    def _path(self, line: str, marker: str) -> str:
        path = line.removeprefix(marker)
        section_number = len(self._sections) + 1
        if path[0] in WHITE_SPACE:
            message = f"The path '{excerpt(path, 100)}' begins with a blank: write one blank behind the colon."
            raise self._refusal(message, section_number=section_number, path=path)
        if path.endswith("/"):
            message = f"The path '{excerpt(path, 100)}' ends with a slash: name a file."
            raise self._refusal(message, section_number=section_number, path=path)
        return path

    def _number(self) -> int:
        return self._first_line_number + self._index

    def _refusal(
        self, message: str, *, section_number: int | None = None, number: int | None = None, path: str | None = None
    ) -> CodespaceError:
        patch_line = self._number() if number is None else number
        return refusal(
            ErrorCode.INVALID_PATCH, f"Patch line {patch_line}: {message}",
            path=path, section=section_number, patch_line=patch_line,
        )
