"""The new text of a match: a replacement with its metavariables filled in, indented as the match is.

1. A line of the replacement after its first gets the white space that begins the match's line in front, as it is:
   counting columns instead would mix tabs with spaces.
2. A captured piece of several lines keeps its shape: where its lines begin with the white space of its first line, they
   get that of their new place instead. Lines that begin within a string are never touched.
3. Line ends of the replacement are those of the file; what is captured stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from adapters.structural.patterns import METAVARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LINE_END = re.compile(r"\r\n|\n|\r")
_LINE_START = re.compile(r"(?<=\n)")
_WHITE = re.compile(r"[ \t\f\v]*")


@dataclass(frozen=True)
class Slot:
    """Where a metavariable stands in a replacement."""

    name: str
    indent: str
    """White space that begins its line there."""


@dataclass(frozen=True)
class Captured:
    """What a metavariable stands for in one match."""

    text: str
    indent: str
    """White space that begins the line on which it stands."""
    fixed_lines: frozenset[int] = frozenset()
    """Offsets within `text` of lines that begin within a string."""


@dataclass(frozen=True)
class Replacement:
    """New text for the characters `start` to `end` of a file."""

    start: int
    end: int
    text: str


class OverlapError(Exception):
    """Two replacements want the same text; the offsets of both are in `args`."""


def parse_template(replacement: str) -> list[str | Slot]:
    """Return `replacement` cut into text, its line ends as LF, and slots."""
    text = _LINE_END.sub("\n", replacement)
    parts: list[str | Slot] = []
    position = 0
    for match in METAVARIABLE.finditer(text):
        name = match["many"] or match["one"]
        if name is None:
            continue
        parts += [text[position : match.start()], Slot(name, leading_white_space(text, match.start()))]
        position = match.end()
    parts.append(text[position:])
    return [part for part in parts if part]


def leading_white_space(text: str, offset: int) -> str:
    """Return the white space that begins the line of `text` in which `offset` lies, up to `offset` at most."""
    start = text.rfind("\n", 0, offset) + 1
    found = _WHITE.match(text, start, offset)
    assert found is not None, "no white space is white space too"
    return found[0]


def fill_template(
    template: Sequence[str | Slot], captures: Mapping[str, Captured], *, indent: str, line_end: str
) -> str:
    """Return the text that takes the place of a match whose line begins with `indent`.

    A name that isn't captured becomes nothing. Blank lines get no white space.
    """
    pieces: list[str] = []
    for index, part in enumerate(template):
        if isinstance(part, Slot):
            captured = captures.get(part.name)
            if captured is not None:
                pieces.append(_moved(captured, indent + part.indent))
        else:
            pieces.append(_indented(part, indent, line_end, is_last=index == len(template) - 1))
    return "".join(pieces)


def _indented(text: str, indent: str, line_end: str, *, is_last: bool) -> str:
    first, *others = text.split("\n")
    lines = [first]
    for number, line in enumerate(others, start=1):
        is_continued = number == len(others) and not is_last
        lines.append(indent + line if line or is_continued else line)
    return line_end.join(lines)


def _moved(captured: Captured, indent: str) -> str:
    old = captured.indent
    if old == indent or "\n" not in captured.text:
        return captured.text
    lines = []
    offset = 0
    for line in _LINE_START.split(captured.text):
        is_movable = offset > 0 and offset not in captured.fixed_lines and line.startswith(old) and line.strip()
        lines.append(indent + line[len(old):] if is_movable else line)
        offset += len(line)
    return "".join(lines)


def chosen(replacements: Sequence[Replacement], limit: int | None) -> list[Replacement]:
    """Return the first `limit` replacements by place. Raises OverlapError if two of these want the same text."""
    kept = sorted(replacements, key=lambda each: (each.start, each.end))[:limit]
    for before, after in pairwise(kept):
        if after.start < before.end or after.start == before.start:
            raise OverlapError(before.start, after.start)
    return kept


def spliced(text: str, replacements: Sequence[Replacement]) -> str:
    """Return `text` with all replacements made, which are in order and don't overlap."""
    pieces: list[str] = []
    position = 0
    for each in replacements:
        pieces += [text[position : each.start], each.text]
        position = each.end
    pieces.append(text[position:])
    return "".join(pieces)
