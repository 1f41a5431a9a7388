"""A parsed patch: sections in order, and the hunks of the updates. Frozen, and free of any file.

Every `…_line_number` is the 1-based line of the patch text as it was sent.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SeekLine:
    """One `@@ text` line: the search for the hunk begins below the line that it names."""

    text: str
    patch_line_number: int


@dataclass(frozen=True, slots=True)
class Hunk:
    """A block of lines to find, and what becomes of each.

    Line i of the hunk has the mark `marks[i]` (blank, `-` or `+`), the text `texts[i]` (without the mark) and the patch
    line `lines_number + i`: the lines of a hunk stand one below the other.
    """

    number: int
    """1-based within its section."""
    seek_lines: tuple[SeekLine, ...]
    marks: str
    texts: tuple[str, ...]
    lines_number: int
    """Patch line of the first line."""
    patch_line_number: int
    """Where the hunk begins: its first `@@`, or its first line."""
    is_end_of_file: bool = False

    @property
    def old_lines(self) -> list[str]:
        """The lines that the file has to have: context and removals."""
        return [text for mark, text in zip(self.marks, self.texts, strict=True) if mark != "+"]

    @property
    def new_lines(self) -> list[str]:
        """The lines that will stand there: context and additions."""
        return [text for mark, text in zip(self.marks, self.texts, strict=True) if mark != "-"]

    @property
    def old_line_numbers(self) -> list[int]:
        """The patch line of each of `old_lines`."""
        return [self.lines_number + index for index, mark in enumerate(self.marks) if mark != "+"]


@dataclass(frozen=True, slots=True)
class AddSection:
    """`*** Add File`: a new file of these lines."""

    path: str
    lines: tuple[str, ...]
    patch_line_number: int


@dataclass(frozen=True, slots=True)
class DeleteSection:
    """`*** Delete File`."""

    path: str
    patch_line_number: int


@dataclass(frozen=True, slots=True)
class UpdateSection:
    """`*** Update File`, perhaps with `*** Move to`. Without hunks it is a pure rename."""

    path: str
    hunks: tuple[Hunk, ...]
    patch_line_number: int
    move_to: str | None = None
    move_line_number: int | None = None


Section: TypeAlias = AddSection | DeleteSection | UpdateSection


@dataclass(frozen=True, slots=True)
class Patch:
    """What a patch text says, in its order. Never empty."""

    sections: tuple[Section, ...]
