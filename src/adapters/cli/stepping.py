"""Stepping with the keyboard: which key moves where, and the loop that shows a moment and waits for the next key."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

_PAGE = 10
_END = 2**62

_MOVES: Mapping[str, Callable[[int], int]] = MappingProxyType({
    "\x1b[C": lambda position: position + 1,
    "\x1bOC": lambda position: position + 1,
    "l": lambda position: position + 1,
    " ": lambda position: position + 1,
    "\x1b[D": lambda position: position - 1,
    "\x1bOD": lambda position: position - 1,
    "h": lambda position: position - 1,
    "\x1b[B": lambda position: position + _PAGE,
    "\x1bOB": lambda position: position + _PAGE,
    "\x1b[A": lambda position: position - _PAGE,
    "\x1bOA": lambda position: position - _PAGE,
    "\x1b[H": lambda _: 0,
    "\x1bOH": lambda _: 0,
    "g": lambda _: 0,
    "\x1b[F": lambda _: _END,
    "\x1bOF": lambda _: _END,
    "G": lambda _: _END,
})
_LEAVES = ("q", "\x1b", "\x03", "\x04", "")

KEYS_TOLD = "right, left: one event   down, up: ten   home, end: to the ends   q: leave"


def step(position: int, *, show: Callable[[int], int], next_key: Callable[[], str]) -> int:
    """Show moments until somebody leaves; return the last one shown.

    Args:
        position: Where to begin.
        show: Shows the moment nearest to a position and returns its own.
        next_key: Waits for a key and returns what the terminal sent for it; nothing when the input has ended.
    """
    position = show(position)
    try:
        while (key := next_key()) not in _LEAVES:
            move = _MOVES.get(key)
            if move is not None:
                position = show(move(position))
    except (KeyboardInterrupt, EOFError):
        return position
    return position
