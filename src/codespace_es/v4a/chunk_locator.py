"""Where a block of lines stands among other lines: four passes, each looser than the one before. Knows no path.

1. `exact`: equal.
2. `trailing_space`: equal without white space at the end.
3. `surrounding_space`: equal without white space at both ends.
4. `folded_punctuation`: as 3, with typographic dashes, quotes and blanks taken for plain ones.

One pass must fit the whole block, over the whole range, before the next one begins; the first place of the first pass
that fits wins. The search follows the block's longest line from one occurrence to the next instead of trying every
place, and turns to a linear algorithm where lines repeat too often for that.
Source: V4A reference, section 5.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from codespace_es.v4a.linear_search import occurrences
from codespace_es.v4a.white_space import trim, trim_end

MatchKind: TypeAlias = Literal["exact", "trailing_space", "surrounding_space", "folded_punctuation"]

PLACES_SHOWN_MAX = 10
_FOLDED = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " ")
)
_SCANS_BEFORE_INDEX = 6
"""So many times the lines are scanned for one line before an index of all lines is worth its price."""
_COMPARISONS_PER_LINE_MAX = 4


def fold(text: str) -> str:
    """Return `text` as the loosest pass compares it."""
    text = trim(text)
    return text if text.isascii() else text.translate(_FOLDED)


def _as_is(text: str) -> str:
    return text


_PASSES: tuple[tuple[MatchKind, Callable[[str], str]], ...] = (
    ("exact", _as_is), ("trailing_space", trim_end), ("surrounding_space", trim), ("folded_punctuation", fold),
)


@dataclass(frozen=True, slots=True)
class Match:
    """Where a block was found, and how."""

    start: int
    """0-based line."""
    kind: MatchKind
    candidates: int
    """Places in range that the same pass would have accepted, this one included."""
    places: tuple[int, ...]
    """The first of them, 0-based."""


class ChunkLocator:
    """Finds blocks among the lines of one file. What a pass has to prepare it prepares once."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self._forms: dict[MatchKind, _Form] = {}

    def locate(self, block: Sequence[str], *, start_index: int, is_end_of_file: bool = False) -> Match | None:
        """Return the place of `block` at or below `start_index`, or None.

        With `is_end_of_file` the only place in question is the one that touches the end. An empty block is nowhere.
        """
        length = len(block)
        last_start = len(self.lines) - length
        first_start = max(start_index, last_start) if is_end_of_file else start_index
        if not block or first_start > last_start:
            return None
        for kind, key in _PASSES:
            wanted = list(block) if kind == "exact" else [key(line) for line in block]
            places = self._form(kind, key).places(wanted, first_start)
            if places:
                return Match(places[0], kind, len(places), tuple(places[:PLACES_SHOWN_MAX]))
        return None

    def places_of(self, line: str, *, places_max: int) -> list[int]:
        """Return the first lines equal to `line` in the loosest pass, at most `places_max` of them."""
        form = self._form("folded_punctuation", fold)
        return form.positions().get(fold(line), [])[:places_max]

    def _form(self, kind: MatchKind, key: Callable[[str], str]) -> "_Form":
        form = self._forms.get(kind)
        if form is None:
            lines = self.lines if kind == "exact" else [key(line) for line in self.lines]
            form = self._forms[kind] = _Form(lines)
        return form


class _Form:
    """The lines as one pass compares them."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._scanned = 0
        self._positions: dict[str, list[int]] | None = None

    def positions(self) -> dict[str, list[int]]:
        """Return where every distinct line stands, ascending."""
        if self._positions is None:
            self._positions = {}
            for index, line in enumerate(self._lines):
                self._positions.setdefault(line, []).append(index)
        return self._positions

    def places(self, wanted: list[str], first_start: int) -> list[int]:
        """Return every place of `wanted` at or below `first_start`, ascending. Linear in lines and block."""
        lines, length = self._lines, len(wanted)
        budget = _COMPARISONS_PER_LINE_MAX * (len(lines) + length)
        probe = max(range(length), key=lambda index: len(wanted[index]))
        last_start = len(lines) - length
        found: list[int] = []
        for position in self._occurrences(wanted[probe], first_start + probe, last_start + probe):
            place = position - probe
            # Both ends first: a slice costs its length, whether or not it is equal.
            if lines[place] == wanted[0] and lines[place + length - 1] == wanted[-1]:
                budget -= length
                if lines[place : place + length] == wanted:
                    found.append(place)
            budget -= 1
            if budget < 0:
                return occurrences(lines, wanted, first_start)
        return found

    def _occurrences(self, line: str, start: int, last: int) -> Iterator[int]:
        """Yield where `line` stands from `start` to `last`, ascending."""
        if self._positions is None and self._scanned > _SCANS_BEFORE_INDEX * len(self._lines):
            self.positions()
        if self._positions is not None:
            positions = self._positions.get(line, [])
            for index in range(bisect_left(positions, start), len(positions)):
                if positions[index] > last:
                    return
                yield positions[index]
            return
        self._scanned += last + 1 - start
        while start <= last:
            try:
                position = self._lines.index(line, start, last + 1)
            except ValueError:
                return
            yield position
            start = position + 1
