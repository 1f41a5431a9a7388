"""Gives a command its input in the order it was written, as fast as it takes it, and never waits for it."""

import os
from typing import Final

import anyio
from anyio.abc import TaskGroup

from adapters.runner.input_queue import CanonicalMode, InputQueue
from adapters.runner.terminal_mode import canonical_mode, end_of_file_character
from codespace_es.ports.runner import InputClosedError, LimitReachedError

QUEUED_BYTES_MAX: Final = 16 * 1024 * 1024
_TURN_PIECES: Final = 16


class InputPump:
    """Moves bytes from a queue to a descriptor, which it owns."""

    def __init__(self, descriptor: int, tasks: TaskGroup, *, is_terminal: bool) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._tasks = tasks
        self._is_terminal = is_terminal
        self._queue = InputQueue()
        self._waiting: anyio.CancelScope | None = None
        self._is_closed = False
        self._is_end_queued = False

    def write(self, content: bytes, *, is_eof: bool) -> None:
        """Write what is taken now, and queue the rest.

        Raises:
            InputClosedError: it can't be written any more.
            LimitReachedError: too much waits already; nothing was queued.
        """
        self.require_room(len(content))
        self._queue.put(content, is_eof=is_eof)
        self._is_end_queued = is_eof and not self._is_terminal
        if self._waiting is not None:
            return
        if not self._write_some():
            raise InputClosedError("The command has closed its input.")
        if not self._queue.is_empty:
            self._waiting = anyio.CancelScope()
            self._tasks.start_soon(self._write_rest, self._waiting)

    def require_room(self, size_bytes: int) -> None:
        """Pass if so many bytes would be taken now. Raises InputClosedError, LimitReachedError."""
        if self._is_closed or self._is_end_queued:
            raise InputClosedError("The input is closed.")
        if self._queue.size_bytes + size_bytes > QUEUED_BYTES_MAX:
            raise LimitReachedError(
                f"{self._queue.size_bytes} bytes of input wait for the command to read them; "
                f"with these {size_bytes} they would be more than {QUEUED_BYTES_MAX}."
            )

    def close(self) -> None:
        """Close the input and drop what waits. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.clear()
            if self._waiting is None:
                os.close(self._descriptor)
            else:  # whoever waits for it closes it: its number may be another's in the same moment
                self._waiting.cancel()

    async def _write_rest(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                while not self._queue.is_empty:
                    await anyio.wait_writable(self._descriptor)
                    self._write_some()
        finally:
            self._waiting = None
            if self._is_closed:
                os.close(self._descriptor)

    def _write_some(self) -> bool:
        """Write until the other side takes no more, or everybody else should get a turn.

        Return False when there is no other side any more.
        """
        for _ in range(_TURN_PIECES):
            if self._queue.is_at_end and not self._is_terminal:
                self._queue.take_end()
                self.close()
                return True
            mode = self._mode()
            piece = self._queue.next_piece(mode)
            if not piece:
                return True
            try:
                count = os.write(self._descriptor, piece)
            except BlockingIOError:
                return True
            except OSError:  # EPIPE of a pipe, EIO of a terminal: nobody reads it any more
                self.close()
                return False
            self._queue.take(count, mode)
        return True

    def _mode(self) -> CanonicalMode | None:
        if not self._is_terminal:
            return None
        mode = canonical_mode(self._descriptor)
        if mode is None and self._queue.is_at_end:  # in raw mode too, the end is that character, and nothing else
            return CanonicalMode(end_of_file_character(self._descriptor), b"\n", b"")
        return mode
