"""Where a block that was not found was probably meant to stand, in bounded time.

Every line of the block votes for the places at which the block would begin if that line stood where an equal one does;
where no line is known at all, the line that shares most words decides.
"""

import re
from collections import Counter
from dataclasses import dataclass

from codespace_es.v4a.chunk_locator import ChunkLocator, folded
from codespace_es.vocabulary.limits import ERROR_EXCERPT_LINES_MAX

_VOTERS_MAX = 2_000
_PLACES_A_VOTER_MAX = 16
_WORDS_MAX = 8
_LINES_COMPARED_MAX = 20_000
_LINES_SHOWN_ABOVE = 2
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NearestPlace:
    """The most likely place of a block."""

    block_index: int
    """0-based first line of the block that has no place there."""
    line_number: int
    """1-based line of the file at which `lines` begin."""
    lines: tuple[str, ...]
    """The file's lines there, as they are."""


def nearest_place(locator: ChunkLocator, block: list[str], *, start_index: int) -> NearestPlace | None:
    """Return where `block` fits best, at or below `start_index` rather than above; None in a file without lines."""
    lines = locator.lines
    if not lines:
        return None
    folded_block = folded(block)
    place = _place_by_votes(locator, folded_block, start_index)
    if place is None:
        place = _place_by_words(lines, block)
    if place is None:
        place = min(start_index, len(lines) - 1)
    block_index = _first_difference(locator.folded_lines(), folded_block, place)
    first_shown = min(max(place + block_index - _LINES_SHOWN_ABOVE, place, 0), len(lines) - 1)
    shown = lines[first_shown : first_shown + ERROR_EXCERPT_LINES_MAX]
    return NearestPlace(block_index, first_shown + 1, tuple(shown))


def _place_by_votes(locator: ChunkLocator, block: list[str], start_index: int) -> int | None:
    votes: Counter[int] = Counter()
    positions = locator.folded_positions()
    step = 1 + len(block) // _VOTERS_MAX
    for block_index in range(0, len(block), step):
        line = block[block_index]
        if line:
            for position in positions.get(line, ())[:_PLACES_A_VOTER_MAX]:
                votes[position - block_index] += 1
    if not votes:
        return None
    return max(votes, key=lambda place: (votes[place], place >= start_index, -place))


def _place_by_words(lines: list[str], block: list[str]) -> int | None:
    block_index = next((index for index, line in enumerate(block) if _WORD.search(line)), None)
    if block_index is None:
        return None
    words = sorted(set(_WORD.findall(block[block_index])), key=len, reverse=True)[:_WORDS_MAX]
    best, best_score = None, 0
    for index, candidate in enumerate(lines[:_LINES_COMPARED_MAX]):
        score = sum([len(word) for word in words if word in candidate])
        if score > best_score:
            best, best_score = index - block_index, score
    return best


def _first_difference(lines: list[str], block: list[str], place: int) -> int:
    for block_index, line in enumerate(block):
        position = place + block_index
        if not 0 <= position < len(lines) or lines[position] != line:
            return block_index
    return 0
