"""Lines out of chunks of bytes, in linear time and bounded memory."""

from dataclasses import dataclass

_END_BYTES = 4 * 1024
"""How much of either end of an oversized line is kept, to find its id."""


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A line above the limit, of which only the ends were kept."""

    head: bytes
    tail: bytes
    size_bytes: int


class LineSplitter:
    """Joins chunks and cuts them at newlines; blank lines are left out."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._chunks: list[bytes] = []
        self._size_bytes = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes | OversizedLine]:
        """Return the lines that `chunk` completes, without their ends."""
        *ended, rest = chunk.split(b"\n")
        lines: list[bytes | OversizedLine] = []
        for piece in ended:
            self._keep(piece)
            lines.extend(self.finish())
        self._keep(rest)
        return lines

    def finish(self) -> list[bytes | OversizedLine]:
        """Return the line that stands unfinished, if there is one."""
        line: bytes | OversizedLine
        if self._size_bytes > self._bytes_max:
            line = OversizedLine(self._head, self._tail, self._size_bytes)
        else:
            line = b"".join(self._chunks)
        self._chunks, self._size_bytes, self._head, self._tail = [], 0, b"", b""
        return [line] if isinstance(line, OversizedLine) or line.strip() else []

    def _keep(self, piece: bytes) -> None:
        self._size_bytes += len(piece)
        if self._size_bytes <= self._bytes_max:
            if piece:
                self._chunks.append(piece)
            return
        if self._chunks:
            whole = b"".join(self._chunks)
            self._head, self._tail, self._chunks = whole[:_END_BYTES], whole[-_END_BYTES:], []
        self._head += piece[: _END_BYTES - len(self._head)]
        self._tail = (self._tail + piece[-_END_BYTES:])[-_END_BYTES:]
