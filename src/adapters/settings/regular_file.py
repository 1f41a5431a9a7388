"""Reading a file that somebody has named: a regular one only, so that nobody is waited for."""

import errno
import os
import stat
from pathlib import Path

_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""A FIFO without a writer doesn't block, a terminal doesn't become ours."""


def read_regular(path: Path, *, bytes_max: int | None = None) -> bytes:
    """Return what stands in the regular file to which `path` leads, `bytes_max` of it at most.

    Raises:
        OSError: it can't be read; ENXIO for a FIFO, a device or anything else that isn't a regular file.
    """
    _require_regular(path, os.stat(path))  # a device may do something when it is opened
    descriptor = os.open(path, _READING)
    with os.fdopen(descriptor, "rb") as file:
        _require_regular(path, os.fstat(descriptor))
        return file.read(-1 if bytes_max is None else bytes_max)


def is_other_than_regular(path: Path) -> bool:
    """Tell whether something stands there that isn't a regular file, for who lets others read it."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False  # whoever reads it says so


def _require_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "it isn't a regular file", str(path))
