"""Keys of a terminal, one at a time, however the bytes of an arrow key arrive."""

import codecs
import os
import re
import select
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SEQUENCE = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]")
_SEQUENCE_BEGINNING = re.compile(r"\x1b(?:[\[O][0-9;]*)?")
_REST_SECONDS = 0.05
"""How long the rest of an arrow key may take after its escape; else it was the escape key."""


class Keys:
    """The keys that a file descriptor delivers."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""

    def next(self) -> str:
        """Wait for a key and return what stands for it; nothing once the input has ended."""
        while not self._waiting or (
            _SEQUENCE_BEGINNING.fullmatch(self._waiting) and select.select([self._descriptor], [], [], _REST_SECONDS)[0]
        ):
            chunk = os.read(self._descriptor, 64)
            if not chunk:
                break
            self._waiting += self._decoder.decode(chunk)
        sequence = _SEQUENCE.match(self._waiting)
        key = sequence.group() if sequence is not None else self._waiting[:1]
        self._waiting = self._waiting[len(key):]
        return key


@contextmanager
def keyboard(descriptor: int) -> Iterator[Callable[[], str]]:
    """Give what waits for the next key of a terminal; keys aren't shown meanwhile, an interrupt interrupts."""
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSADRAIN)
    try:
        yield Keys(descriptor).next
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
