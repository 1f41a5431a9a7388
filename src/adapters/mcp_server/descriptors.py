"""File descriptors of the wire: private copies, what kind they are, and where the standard ones point meanwhile."""

import fcntl
import logging
import os
import select
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from codespace_es.vocabulary import limits

logger = logging.getLogger(__name__)

CHUNK_BYTES = 256 * limits.KIB
"""How much is read or written at once."""


@contextmanager
def diverted_stdio() -> Iterator[tuple[int, int]]:
    """Yield private descriptors of stdin and stdout; meanwhile fd 0 reads the null device and fd 1 is stderr.

    On leaving, both standard descriptors are as they were and the private ones are closed. A stream that was closed
    when the process began is left alone, since its number belongs to something else by now; the null device stands for
    it.
    """
    has_input, has_output = sys.__stdin__ is not None, sys.__stdout__ is not None
    input_fd = _private_copy(0) if has_input else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    output_fd = _private_copy(1) if has_output else os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    was_blocking = os.get_blocking(output_fd)
    try:
        if has_input:
            _divert(0, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        if has_output:
            _divert(1, _stray_output())
        if is_pipe(output_fd):
            os.set_blocking(output_fd, False)
        yield input_fd, output_fd
    finally:
        os.set_blocking(output_fd, was_blocking)
        if has_input:
            os.dup2(input_fd, 0)
        if has_output:
            os.dup2(output_fd, 1)
        os.close(input_fd)
        os.close(output_fd)


def is_pipe(fd: int) -> bool:
    """Return whether the loop can wait for `fd` and never has to block on it."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def is_abandoned(fd: int) -> bool:
    """Return whether nobody reads what is written to `fd`, which the loop reported as readable.

    A pipe's writing end is never readable but for that; a socket is at its end, or has bytes that nobody asked for.
    """
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return True
    with socket.socket(fileno=os.dup(fd)) as view:
        try:
            return not view.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True


def has_bytes(fd: int) -> bool:
    """Return whether `read_chunk` would return at once, also with nothing."""
    asked = select.poll()
    asked.register(fd, select.POLLIN)
    return bool(asked.poll(0))


def read_chunk(fd: int) -> bytes:
    """Return what can be read now; nothing means the end, also when the other side broke off."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except OSError as error:
        logger.warning("The input ended with an error: %s", error)
        return b""


def write_whole(fd: int, content: bytes) -> None:
    """Write all of `content`, blocking."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view):]


def _private_copy(fd: int) -> int:
    """Return a duplicate above the standard range that no child inherits."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _stray_output() -> int:
    """Return where prints and children write meanwhile: stderr, or nowhere if there is none."""
    if sys.__stderr__ is None:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    return os.dup(2)


def _divert(fd: int, target: int) -> None:
    """Point `fd` at what `target` is open on; children inherit it there."""
    os.dup2(target, fd)
    os.close(target)
