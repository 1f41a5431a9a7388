"""Every place of a block in a sequence of lines, in time linear in both, however the lines repeat."""

from collections.abc import Sequence


def occurrences(lines: Sequence[str], block: Sequence[str], first_start: int) -> list[int]:
    """Return every index at or above `first_start` at which `block` (not empty) stands; places may overlap.

    Source: Knuth, Morris and Pratt, 1977.
    """
    found: list[int] = []
    borders = _borders(block)
    length = len(block)
    matched = 0
    for index in range(first_start, len(lines)):
        line = lines[index]
        while matched and (matched == length or block[matched] != line):
            matched = borders[matched - 1]
        if block[matched] == line:
            matched += 1
        if matched == length:
            found.append(index - length + 1)
    return found


def _borders(block: Sequence[str]) -> list[int]:
    """Return for each prefix the length of the longest proper prefix that it also ends with."""
    borders = [0] * len(block)
    matched = 0
    for index in range(1, len(block)):
        while matched and block[matched] != block[index]:
            matched = borders[matched - 1]
        if block[matched] == block[index]:
            matched += 1
        borders[index] = matched
    return borders
