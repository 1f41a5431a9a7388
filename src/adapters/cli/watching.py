"""A bar on stderr while a command walks through a long log, where somebody looks at it."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from replay.attended import Attended
from replay.source import LogSource

_PATIENCE_SECONDS = 0.5
"""What is over sooner needs no bar."""
_REDRAW_SECONDS = 0.1
_CELLS = 30


@contextmanager
def watched(source: LogSource) -> Iterator[LogSource]:
    """Give the log, with a bar for its long reads if stderr is a terminal; the bar is gone at the end."""
    if not sys.stderr.isatty():
        yield source
        return
    bar = Bar(source.head()[0], sys.stderr)
    try:
        yield Attended(source, bar.show)
    finally:
        bar.erase()


class Bar:
    """How far a walk through a log has come."""

    def __init__(self, head: int, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing is drawn yet."""
        self._head = head
        self._stream = stream
        self._clock = clock
        self._started = self._drawn_at = clock()
        self._is_drawn = False

    def show(self, position: int) -> None:
        """Draw the bar at `position`, if it is time to."""
        now = self._clock()
        if now - self._started < _PATIENCE_SECONDS or now - self._drawn_at < _REDRAW_SECONDS:
            return
        self._drawn_at = now
        self._is_drawn = True
        share = min(1.0, position / self._head) if self._head else 1.0
        cells = "#" * round(share * _CELLS)
        self._stream.write(f"\r{position:>12,} of {self._head:,}  [{cells:<{_CELLS}}] {share:4.0%}\x1b[K")
        self._stream.flush()

    def erase(self) -> None:
        """Leave the line as it was."""
        if self._is_drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
