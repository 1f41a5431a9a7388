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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, TypeAlias

from codespace_es.v4a.linear_search import occurrences
from codespace_es.v4a.white_space import WHITE_SPACE

MatchKind: TypeAlias = Literal["exact", "trailing_space", "surrounding_space", "folded_punctuation"]

PASSES: tuple[MatchKind, ...] = ("exact", "trailing_space", "surrounding_space", "folded_punctuation")
"""In the order in which they are tried."""

PLACES_SHOWN_MAX = 10
_FOLDED = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " ")
)
_SCANS_BEFORE_INDEX = 16
"""So many times the lines are scanned for one line before an index of all lines is worth its price."""
_COMPARISONS_PER_LINE_MAX = 4
_PROBES_MAX = 64
_PLACES_COUNTED_MAX = 1_000_000
"""So many candidates are counted for all blocks of one file; from then on each count stops at PLACES_SHOWN_MAX."""


def _loosened(lines: list[str], kind: MatchKind) -> list[str]:
    """Return `lines`, as the pass before `kind` compares them, as `kind` does; the same list if no line differs.

    Whole lists at a time, since a call a line would be most of the price.
    """
    if kind == "trailing_space":
        loosened = list(map(str.rstrip, lines, repeat(WHITE_SPACE)))
    elif kind == "surrounding_space":
        loosened = list(map(str.lstrip, lines, repeat(WHITE_SPACE)))
    elif kind == "folded_punctuation" and not all(map(str.isascii, lines)):
        loosened = [line if line.isascii() else line.translate(_FOLDED) for line in lines]
    else:
        return lines
    return lines if loosened == lines else loosened


def folded(lines: Sequence[str]) -> list[str]:
    """Return each of `lines` as the loosest pass compares it."""
    result = list(lines)
    for kind in PASSES:
        result = _loosened(result, kind)
    return result


@dataclass(frozen=True, slots=True)
class Match:
    """Where a block was found, and how."""

    start: int
    """0-based line."""
    kind: MatchKind
    candidates: int
    """Places in range that the same pass would have accepted, this one included; at least so many where very many
    were counted before."""
    places: tuple[int, ...]
    """The first of them, 0-based."""


class ChunkLocator:
    """Finds blocks among the lines of one file. What a pass has to prepare it prepares once."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self._forms = [_Form(self.lines)]
        """As the passes compare the lines, as far as a pass was needed; passes that see no difference share one."""
        self._places_counted = 0

    def locate(self, block: Sequence[str], *, start_index: int, is_end_of_file: bool = False) -> Match | None:
        """Return the place of `block` at or below `start_index`, or None.

        With `is_end_of_file` the only place in question is the one that touches the end. An empty block is nowhere.
        """
        length = len(block)
        last_start = len(self.lines) - length
        first_start = max(start_index, last_start) if is_end_of_file else start_index
        if not block or first_start > last_start:
            return None
        tried: tuple[_Form, list[str]] | None = None
        wanted = list(block)
        for number, kind in enumerate(PASSES):
            wanted = _loosened(wanted, kind)
            form = self._form(number)
            if tried is not None and tried[0] is form and tried[1] is wanted:
                continue
            is_costly = self._places_counted > _PLACES_COUNTED_MAX
            places = form.places(wanted, first_start, places_max=PLACES_SHOWN_MAX if is_costly else len(form.lines))
            if places:
                self._places_counted += len(places)
                return Match(places[0], kind, len(places), tuple(places[:PLACES_SHOWN_MAX]))
            tried = (form, wanted)
        return None

    def folded_lines(self) -> list[str]:
        """Return the lines as the loosest pass compares them. They are the locator's: don't change them."""
        return self._form(len(PASSES) - 1).lines

    def folded_positions(self) -> dict[str, list[int]]:
        """Return where each of the distinct `folded_lines` stands, ascending. It is the locator's: don't change it."""
        return self._form(len(PASSES) - 1).positions()

    def _form(self, number: int) -> "_Form":
        while len(self._forms) <= number:
            last = self._forms[-1]
            lines = _loosened(last.lines, PASSES[len(self._forms)])
            self._forms.append(last if lines is last.lines else _Form(lines))
        return self._forms[number]


class _Form:
    """The lines as one pass compares them."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._scanned = 0
        self._positions: dict[str, list[int]] | None = None

    def positions(self) -> dict[str, list[int]]:
        """Return where every distinct line stands, ascending."""
        if self._positions is None:
            positions: dict[str, list[int]] = {}
            for index, line in enumerate(self.lines):
                if line in positions:
                    positions[line].append(index)
                else:
                    positions[line] = [index]
            self._positions = positions
        return self._positions

    def places(self, wanted: list[str], first_start: int, *, places_max: int) -> list[int]:
        """Return where `wanted` stands at or below `first_start`, ascending. Linear in lines and block.

        At most `places_max` of the places are looked for, though all of them may be returned.
        """
        lines, length = self.lines, len(wanted)
        budget = _COMPARISONS_PER_LINE_MAX * (len(lines) + length)
        probe = self._probe(wanted)
        last_start = len(lines) - length
        found: list[int] = []
        for position in self._occurrences(wanted[probe], first_start + probe, last_start + probe):
            place = position - probe
            # Both ends first: a slice costs its length, whether or not it is equal.
            if lines[place] == wanted[0] and lines[place + length - 1] == wanted[-1]:
                budget -= length
                if lines[place : place + length] == wanted:
                    found.append(place)
                    if len(found) == places_max:
                        break
            budget -= 1
            if budget < 0:
                return occurrences(lines, wanted, first_start)
        return found

    def _probe(self, wanted: list[str]) -> int:
        """Return the index of the line of `wanted` to follow: the rarest as far as that is known, else the longest."""
        positions = self._positions
        if positions is None:
            return wanted.index(max(wanted, key=len))
        return min(range(min(len(wanted), _PROBES_MAX)), key=lambda index: len(positions.get(wanted[index], ())))

    def _occurrences(self, line: str, start: int, last: int) -> Iterator[int]:
        """Yield where `line` stands from `start` to `last`, ascending."""
        if self._positions is None and self._scanned > _SCANS_BEFORE_INDEX * len(self.lines):
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
                position = self.lines.index(line, start, last + 1)
            except ValueError:
                return
            yield position
            start = position + 1
