"""The terminal of a command: a pseudoterminal of its own, the command's controlling terminal.

ptyprocess does what it does well, the size; its `spawn`, `close` and `terminate` wait and sleep, so they aren't used.
"""

from __future__ import annotations

import pty
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptyprocess import PtyProcess


class Terminal:
    """The side of a pseudoterminal that isn't the command's."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self._terminal = load_ptyprocess()(pid, descriptor)
        self._terminal.delayafterclose = 0

    def fileno(self) -> int:
        """Return its descriptor."""
        descriptor: int = self._terminal.fd
        return descriptor

    def resize(self, rows: int, columns: int) -> None:
        """Give it that size; the foreground of the terminal gets SIGWINCH when it is another one. Raises OSError."""
        self._terminal.setwinsize(rows, columns)


    def close(self) -> None:
        """Hang up. Its own `close` would wait for a process that isn't only ours to wait for, and end it."""
        self._terminal.closed = True
        self._terminal.fileobj.close()


def fork_on_terminal() -> tuple[int, int]:
    """Fork; return (pid, descriptor) in the parent and (0, -1) in the child.

    The child leads a session of its own, the terminal controls it, and descriptors 0 to 2 are the terminal.
    """
    return pty.fork()


def load_ptyprocess() -> type[PtyProcess]:
    """Import ptyprocess, which only commands with a terminal need.

    Without `shutil`, which it takes one function from that isn't used here (it has its own), and which would load three
    compression libraries: a seventh of this process' memory.
    """
    is_without_shutil = "shutil" not in sys.modules
    if is_without_shutil:
        sys.modules["shutil"] = None  # type: ignore[assignment] # Python's own way to say that a module can't be had
    try:
        from ptyprocess import PtyProcess
    finally:
        if is_without_shutil:
            del sys.modules["shutil"]
    loaded: type[PtyProcess] = PtyProcess
    return loaded
