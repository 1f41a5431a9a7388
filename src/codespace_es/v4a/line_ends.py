"""A file as lines without their ends, and back: every kept line gets its own end again, byte for byte.

A file is cut at LF, CRLF and lone CR, and nowhere else. New lines get the first end found in the file. A byte-order
mark stands before the first line and is no part of it.
Source: V4A reference, section 6; decision 8 for the mark.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile("\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines `start` to `end` (0-based, half-open) of a file give way to `new_lines`."""

    start: int
    end: int
    new_lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextFile:
    """The lines of a file and what stands between them."""

    lines: list[str]
    ends: str | list[str]
    """One end for all, or one a line where they differ."""
    first_end: str
    """What new lines end in."""
    is_terminated: bool
    """The last line has an end; true for an empty file."""
    has_mark: bool
    """The file begins with a byte-order mark."""


def text_file(text: str) -> TextFile:
    """Return `text` cut into lines."""
    has_mark = text.startswith(BYTE_ORDER_MARK)
    if has_mark:
        text = text[1:]
    carriage_returns = text.count("\r")
    ends: str | list[str]
    if carriage_returns == 0:
        ends = "\n"
        lines = text.split("\n")
    elif text.count("\r\n") == carriage_returns == text.count("\n"):
        ends = "\r\n"
        lines = text.split("\r\n")
    else:
        ends = _LINE_END.findall(text)
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    is_terminated = not lines[-1]
    if is_terminated:
        lines.pop()
    first_end = ends if isinstance(ends, str) else ends[0]
    return TextFile(lines, ends, first_end, is_terminated, has_mark)


def edited_text(file: TextFile, edits: Sequence[Edit], *, keeps_mark: bool) -> str:
    """Return the text of `file` after `edits`, which are sorted and don't overlap.

    Kept lines keep their ends; new lines, and a last line that had none, get the first end of the file.
    """
    lines = _spliced(file.lines, edits)
    if not lines:
        text = ""
    elif isinstance(file.ends, str):
        text = file.first_end.join(lines) + file.first_end
    else:
        ends = [*file.ends, file.first_end] if len(file.ends) < len(file.lines) else file.ends
        new_ends = [Edit(edit.start, edit.end, (file.first_end,) * len(edit.new_lines)) for edit in edits]
        parts = [""] * (2 * len(lines))
        parts[::2] = lines
        parts[1::2] = _spliced(ends, new_ends)
        text = "".join(parts)
    if file.has_mark and keeps_mark and not _brings_mark(edits):
        return BYTE_ORDER_MARK + text
    return text


def _brings_mark(edits: Sequence[Edit]) -> bool:
    """Tell whether the first line is a new one that carries a mark of its own."""
    for edit in edits:
        if edit.start > 0:
            return False
        if edit.new_lines:
            return edit.new_lines[0].startswith(BYTE_ORDER_MARK)
    return False


def _spliced(kept: list[str], edits: Sequence[Edit]) -> list[str]:
    result: list[str] = []
    position = 0
    for edit in edits:
        result += kept[position : edit.start]
        result += edit.new_lines
        position = edit.end
    result += kept[position:]
    return result
