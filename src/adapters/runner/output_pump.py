"""Takes a command's output as it comes, so that the command is never held up and the server never held by it."""

import contextlib
import errno
import fcntl
import os
import termios
from typing import Final

import anyio

from adapters.runner.changes import Changes
from adapters.runner.output_window import OutputWindow

_TURN_BYTES: Final = 1024 * 1024
"""So much is read before everybody else gets a turn; about half a millisecond."""
_PIPE_BYTES: Final = 1024 * 1024
"""Room for what a fast writer prints while others have their turn; as much as a user without privileges may give."""
_MUCH_BYTES: Final = 64 * 1024
"""Who prints so much between two turns gets that room, and no other: all pipes of a user may have 64 MiB together."""
_TURN_READS: Final = 64
"""The same for a terminal, which hands out at most 4 KiB a read."""
_QUIET_SECONDS_MAX: Final = 0.5
"""After the tree is gone, an output that is held open by a stranger and silent for so long is cut."""
_REST_SECONDS_MAX: Final = 5.0


class OutputPump:
    """Moves bytes from a descriptor, which it owns, into a window until the output ends."""

    def __init__(self, descriptor: int, window: OutputWindow) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._window = window
        self._has_room = False
        self._scope = anyio.CancelScope()
        self._rest_until: float | None = None
        self.changes = Changes()
        self.is_finished = False
        """Nothing will be added to the window any more."""
        self.is_cut = False
        """It was left although somebody could still write to it."""

    def expect_end(self) -> None:
        """Nobody is left that should write: take what is there, and don't wait long for the end."""
        self._rest_until = anyio.current_time() + _REST_SECONDS_MAX
        self._limit_wait()

    def resize_terminal(self, rows: int, columns: int) -> None:
        """Give the terminal that size; its foreground gets SIGWINCH when it is another. Nothing if it is gone."""
        if not self.is_finished:
            with contextlib.suppress(OSError, termios.error):  # hung up: it has no size any more
                termios.tcsetwinsize(self._descriptor, (rows, columns))

    async def run(self) -> None:
        """Pump until the end."""
        try:
            with self._scope:
                await self._pump()
            self.is_cut = self._scope.cancelled_caught
        finally:
            os.close(self._descriptor)
            self.is_finished = True
            self.changes.notify()

    async def _pump(self) -> None:
        while await self._take_turn():
            self.changes.notify()
            self._limit_wait()
            await anyio.wait_readable(self._descriptor)

    def _limit_wait(self) -> None:
        if self._rest_until is not None:
            self._scope.deadline = min(anyio.current_time() + _QUIET_SECONDS_MAX, self._rest_until)

    async def _take_turn(self) -> bool:
        """Read what is there, but not too much at once; return whether more may come."""
        taken = 0
        for _ in range(_TURN_READS):
            try:
                count = self._window.take_from(self._descriptor)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno == errno.EIO:  # how a terminal says that nobody has it open any more
                    return False
                raise
            if not count:
                return False
            taken += count
            if taken >= _MUCH_BYTES and not self._has_room:
                self._make_room()
            if taken >= _TURN_BYTES:
                break
        return True

    def _make_room(self) -> None:
        self._has_room = True
        with contextlib.suppress(OSError):  # a terminal, or this user has too many pipes: it works as it is
            fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
