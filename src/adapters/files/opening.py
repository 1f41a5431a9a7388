"""Descriptors that were checked: the root, a regular file, and a guess at what a missing name should have been."""

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from adapters.beneath import open_beneath, open_root, path_error, shown_name
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import WALK_ENTRIES_MAX

_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
"""A FIFO without a writer doesn't block, a terminal doesn't become ours."""


@contextmanager
def opened_root(root: str) -> Iterator[int]:
    """Give a descriptor of the directory that `root` names now, for opening beneath it. It is never kept.

    Raises:
        CodespaceError: FILE_OPERATION_FAILED when there is no such directory.
    """
    try:
        descriptor = open_root(root)
    except OSError as error:
        shown, reason = shown_name(root), error.strerror
        if error.errno == errno.ELOOP:
            reason = "since the server began it was replaced by a symbolic link, or leads through one"
        raise CodespaceError(
            ErrorCode.FILE_OPERATION_FAILED, f"The workspace root {shown!r} can't be opened: {reason}.",
            detail={"root": shown},
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular(root_fd: int, path: str) -> tuple[int, os.stat_result]:
    """Return a readable descriptor of the regular file at `path` and its status; the caller closes it. Never blocks.

    Raises:
        OSError: as `open_beneath`; ENXIO for anything that isn't a regular file.
    """
    descriptor = open_beneath(root_fd, path, _READING)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "Not a regular file", path)
    return descriptor, status


def missing_file(root_fd: int, path: str) -> CodespaceError:
    """Return FILE_NOT_FOUND for `path`, with `did_you_mean` where a name looks the same."""
    error = path_error(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), path)
    meant = lookalike(root_fd, path)
    if meant is None:
        return error
    return CodespaceError(
        ErrorCode.FILE_NOT_FOUND,
        f"{shown_name(path)!r} doesn't exist, but {meant!r} does: it differs only in letter case or Unicode form.",
        detail={**error.detail, "did_you_mean": meant},
    )


def lookalike(root_fd: int, path: str) -> str | None:
    """Return the existing path that differs from `path` only in letter case, Unicode form or kind of space, or None.

    Of several the first by code points. Never raises for what can't be listed: then there is no guess.
    """
    found = ""
    for part in path.split("/"):
        name = _same_looking_name(root_fd, found or ".", part)
        if name is None:
            return None
        found = f"{found}/{name}" if found else name
    return None if found == path else found


def _same_looking_name(root_fd: int, directory: str, wanted: str) -> str | None:
    with suppress(OSError):
        descriptor = open_beneath(root_fd, directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            names = [os.fsencode(name) for name in os.listdir(descriptor)[:WALK_ENTRIES_MAX]]
        finally:
            os.close(descriptor)
        if wanted.encode() in names:
            return wanted
        look = _look(wanted)
        # A name that isn't UTF-8 can't be said in a path, so it is no suggestion.
        readable = sorted(name.decode("utf-8", "ignore") for name in names)
        return next((name for name in readable if _look(name) == look and name.encode() in names), None)
    return None


def _look(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
