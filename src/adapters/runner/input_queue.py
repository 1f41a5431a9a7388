"""Input that waits for a child to take it, in order, and the pieces in which a terminal can take it.

A terminal in canonical mode keeps at most 4,096 bytes of a line and silently drops the rest of a longer one. Its
end-of-file character in the middle of a line hands over what there is so far without ending anything, so a long line is
sent in such pieces and reaches the child whole. For that the queue follows how full the line can be at most (`_most`)
and at least (`_least`): the character on an empty line would end the input. Source: termios(3).
"""

import re
from collections import deque
from dataclasses import dataclass
from typing import Final

PIECE_BYTES_MAX: Final = 64 * 1024
LINE_BYTES_MAX: Final = 4000
"""A line's share of the terminal's 4,096 bytes, with room to spare."""


@dataclass(frozen=True, slots=True)
class CanonicalMode:
    """What the characters do that a terminal in canonical mode acts on."""

    end_of_file: int
    line_ends: bytes
    """Each hands over the line; the next one is empty then."""
    erasers: bytes
    """Each may take away from the line, or not get into it."""


class InputQueue:
    """Bytes and ends of input, first in, first out."""

    def __init__(self) -> None:
        self._waiting: deque[memoryview | None] = deque()
        """None is an end of input."""
        self.size_bytes = 0
        self._inserted = b""
        self._most = 0
        self._least = 0

    @property
    def is_empty(self) -> bool:
        """Nothing waits, not even an end."""
        return not self._waiting and not self._inserted

    @property
    def is_at_end(self) -> bool:
        """An end of input is next."""
        return not self._inserted and bool(self._waiting) and self._waiting[0] is None

    def put(self, content: bytes, *, is_eof: bool) -> None:
        """Add `content`, and an end behind it."""
        if content:
            self._waiting.append(memoryview(content))
            self.size_bytes += len(content)
        if is_eof:
            self._waiting.append(None)

    def next_piece(self, mode: CanonicalMode | None) -> memoryview:
        """Return what can be written now, of which `take` says how much was. Empty when nothing waits.

        `mode` is given for a terminal in canonical mode. At an end of input (`is_at_end`) it is that mode's character.
        """
        if not self._inserted:
            if self.is_at_end and mode is not None:
                self._waiting.popleft()
                self._inserted = bytes([mode.end_of_file]) * (2 if self._least > 0 else 1)
            elif mode is not None and self._waiting and self._most >= LINE_BYTES_MAX and self._least > 0:
                self._inserted = bytes([mode.end_of_file])
        if self._inserted:
            return memoryview(self._inserted)
        if not self._waiting or self._waiting[0] is None:
            return memoryview(b"")
        room = PIECE_BYTES_MAX
        if mode is not None:
            room = LINE_BYTES_MAX - self._most if self._most < LINE_BYTES_MAX else LINE_BYTES_MAX
        return self._waiting[0][:room]

    def take(self, count: int, mode: CanonicalMode | None) -> None:
        """Remove the first `count` bytes of the last `next_piece`: they were written."""
        if self._inserted:
            self._inserted = self._inserted[count:]
            self._most = self._least = 0
            return
        first = self._waiting[0]
        assert first is not None, "an end isn't written"
        if mode is None:
            self._most = self._least = 0
        else:
            self._follow(bytes(first[:count]), mode)
        self.size_bytes -= count
        if count == len(first):
            self._waiting.popleft()
        else:
            self._waiting[0] = first[count:]

    def take_end(self) -> None:
        """Remove the end of input that is next."""
        assert self.is_at_end, "there is no end to take"
        self._waiting.popleft()

    def clear(self) -> None:
        """Drop all."""
        self._waiting.clear()
        self._inserted = b""
        self.size_bytes = 0

    def _follow(self, written: bytes, mode: CanonicalMode) -> None:
        end = max(written.rfind(character) for character in (*mode.line_ends, mode.end_of_file))
        if end >= 0:
            self._most = self._least = 0
            written = written[end + 1 :]
        self._most += len(written)
        last_eraser = max((match.end() for match in re.finditer(_any_of(mode.erasers), written)), default=0)
        self._least = len(written) - last_eraser + (0 if last_eraser else self._least)


def _any_of(characters: bytes) -> bytes:
    return b"[" + re.escape(characters) + b"]" if characters else b"(?!)"
