"""What is kept of an output: its last bytes, at their absolute positions, its first bytes, and its exact length.

0 ── head ── head_bytes        retained_from ── kept ── total
"""

import os
import weakref
from typing import Final, Protocol

_IN_MEMORY_BYTES_MAX: Final = 1024 * 1024
_READ_BYTES: Final = 64 * 1024


class Ring(Protocol):
    """`capacity` bytes that are written round and round."""

    capacity: int

    def write(self, offset: int, content: memoryview) -> None:
        """Put `content` at `offset`; it doesn't go beyond the capacity."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset`; they don't go beyond the capacity."""
        ...

    def room(self, offset: int) -> tuple[memoryview, ...]:
        """Return the whole ring from `offset` round to it, to be written in place; empty if it isn't worth that."""
        ...

    def close(self) -> None:
        """Let go of it. A second call does nothing."""
        ...


class MemoryRing:
    """A ring in memory that grows with what it holds."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._content = bytearray()
        self._whole: memoryview | None = None
        """All of it, once it has been filled."""

    def write(self, offset: int, content: memoryview) -> None:
        """Put `content` at `offset`."""
        if offset > len(self._content):
            self._content.extend(bytes(offset - len(self._content)))
        self._content[offset : offset + len(content)] = content

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset`."""
        return bytes(memoryview(self._content)[offset : offset + size])

    def room(self, offset: int) -> tuple[memoryview, ...]:
        """Return the ring from `offset` round to it, once it has been filled for the first time."""
        if self._whole is None:
            if len(self._content) < self.capacity or self.capacity < _READ_BYTES:
                return ()
            self._whole = memoryview(self._content)  # never resized from here on
        return self._whole[offset:], self._whole[:offset]

    def close(self) -> None:
        """Drop the content."""
        self._whole = None
        self._content = bytearray()


class FileRing:
    """A ring in a file that has no name: it goes with the last reference to this, or with the process."""

    def __init__(self, capacity: int) -> None:
        import tempfile

        self.capacity = capacity
        with tempfile.TemporaryFile(prefix="codespace-es-output-", buffering=0) as file:
            self._descriptor = os.dup(file.fileno())
        self._closing = weakref.finalize(self, os.close, self._descriptor)

    def write(self, offset: int, content: memoryview) -> None:
        """Put `content` at `offset`. Raises OSError when the disk is full."""
        while content:
            written = os.pwrite(self._descriptor, content, offset)
            content, offset = content[written:], offset + written

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset`."""
        return os.pread(self._descriptor, size, offset)

    def room(self, offset: int) -> tuple[memoryview, ...]:  # noqa: ARG002 - the protocol's
        """Return nothing: it isn't in memory."""
        return ()

    def close(self) -> None:
        """Close the file."""
        self._closing()


def make_ring(capacity: int) -> Ring:
    """Return a ring for so many bytes: in memory up to 1 MiB, else on disk. Raises OSError."""
    return MemoryRing(capacity) if capacity <= _IN_MEMORY_BYTES_MAX else FileRing(capacity)


class OutputWindow:
    """A window on an output. Positions count bytes since its beginning."""

    def __init__(self, ring: Ring, *, head_bytes: int) -> None:
        if ring.capacity < 1:
            raise ValueError("a window keeps at least one byte")
        self._ring = ring
        self._head = bytearray()
        self._head_bytes = head_bytes
        self._lost_before = 0
        self.total = 0
        """Length of the output so far."""

    @property
    def retained_from(self) -> int:
        """The first position that is still kept; the head aside."""
        return max(self._lost_before, self.total - self._ring.capacity)

    @property
    def head(self) -> bytes:
        """The first bytes of the output."""
        return bytes(self._head)

    def take_from(self, descriptor: int) -> int:
        """Add what can be read at once, and return how many bytes that is; 0 at the end.

        A long output is read right into the ring: what is copied only to fall out again costs as much as the rest.

        Raises:
            BlockingIOError: nothing is there yet.
            OSError: it can't be read.
        """
        room = self._ring.room(self.total % self._ring.capacity) if len(self._head) == self._head_bytes else ()
        if room:
            count = os.readv(descriptor, room)
            self.total += count
            return count
        content = os.read(descriptor, _READ_BYTES)
        self.append(content)
        return len(content)

    def append(self, content: bytes) -> None:
        """Add `content`; what no longer fits in falls out at the other end.

        If the disk that it is kept on is full, what was kept is lost, and from here on it is kept in memory.
        """
        missing = self._head_bytes - len(self._head)
        if missing > 0:
            self._head += content[:missing]
        try:
            self._keep(content)
        except OSError:
            self._ring.close()
            self._ring = MemoryRing(_IN_MEMORY_BYTES_MAX)
            self._lost_before = self.total
            self._keep(content)
        self.total += len(content)

    def _keep(self, content: bytes) -> None:
        capacity = self._ring.capacity
        kept = memoryview(content)[-capacity:]
        position = self.total + len(content) - len(kept)
        while kept:
            offset = position % capacity
            piece = kept[: capacity - offset]
            self._ring.write(offset, piece)
            kept, position = kept[len(piece) :], position + len(piece)

    def read(self, cursor: int, bytes_max: int) -> tuple[int, bytes]:
        """Return the position and the bytes from max(cursor, retained_from) on; nothing beyond the total."""
        start = max(cursor, self.retained_from)
        size = min(bytes_max, self.total - start)
        if size <= 0:
            return start, b""
        capacity = self._ring.capacity
        offset = start % capacity
        first = self._ring.read(offset, min(size, capacity - offset))
        return start, first if len(first) == size else first + self._ring.read(0, size - len(first))

    def close(self) -> None:
        """Let go of what is kept; the counts stay."""
        self._ring.close()
