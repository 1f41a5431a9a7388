"""Opening files beneath a root by descriptor, never through a symbolic link; reading and patching both stand on it.

Every component is resolved by the kernel (`openat2`) or, where the kernel hasn't got that call, one `openat` at a time,
so a component that is swapped between check and use is refused and can't lead outside.
Paths are text in UTF-8, whatever the locale; bytes that aren't UTF-8 are `surrogateescape`d.
"""

import contextlib
import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_OPENAT2: Final = 437
_RESOLVE: Final = 0x02 | 0x04 | 0x08
"""RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH. Source: openat2(2)."""
_HOW: Final = struct.Struct("=QQQ")
_PATH_ONLY: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
_PASSING: Final[int] = _PATH_ONLY or os.O_DIRECTORY
"""How the walk opens a component on its way."""
_DIRECTORY_FLAGS: Final = os.O_DIRECTORY | os.O_CLOEXEC
_CREATING: Final = os.O_CREAT | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)

_CODES: Final = {
    errno.EXDEV: ErrorCode.PATH_ESCAPE,
    errno.ELOOP: ErrorCode.SYMLINK_REJECTED,
    errno.ENOTDIR: ErrorCode.PATH_NOT_DIRECTORY,
    errno.ENOENT: ErrorCode.FILE_NOT_FOUND,
    errno.EISDIR: ErrorCode.SPECIAL_FILE_REJECTED,
    errno.ENXIO: ErrorCode.SPECIAL_FILE_REJECTED,
    errno.ENODEV: ErrorCode.SPECIAL_FILE_REJECTED,
}
_MESSAGES: Final = {
    ErrorCode.PATH_ESCAPE: "{path!r} leads out of the workspace.",
    ErrorCode.SYMLINK_REJECTED: "{path!r} is, or leads through, a symbolic link.",
    ErrorCode.PATH_NOT_DIRECTORY: "A parent of {path!r} is not a directory.",
    ErrorCode.FILE_NOT_FOUND: "{path!r} doesn't exist.",
    ErrorCode.SPECIAL_FILE_REJECTED: "{path!r} is not a regular file.",
    ErrorCode.FILE_OPERATION_FAILED: "{path!r}: {reason}.",
}

_SENTENCE_CHARACTERS_MAX: Final = 300
"""More than any one name has."""


def open_root(root: str) -> int:
    """Return a descriptor of the directory `root`, good for opening beneath it only; the caller closes it.

    The root is the trust anchor: absolute, and without links since they were resolved when the server began. One that
    stands in its way now would lead to a directory with another identity and another lease. Raises OSError, ELOOP then.
    """
    top = os.open(b"/", _PATH_ONLY | _DIRECTORY_FLAGS)
    try:
        return open_beneath(top, root.strip("/") or ".", _PATH_ONLY | os.O_DIRECTORY)
    finally:
        os.close(top)


def open_beneath(root_fd: int, path: str, flags: int, mode: int = 0) -> int:
    """Return a descriptor of `path` beneath `root_fd`, opened with `flags` (always close-on-exec).

    `path` is relative and has no `..`; `.` is the root itself. `mode` counts only where `flags` create a file.

    Raises:
        OSError: unmapped; ELOOP for a symbolic link anywhere in `path`, EXDEV for a path that is absolute or climbs.
    """
    name = _encode(path)
    if name.startswith(b"/") or (b".." in name and b".." in name.split(b"/")):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    if b"\0" in name:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    if kernel_has_openat2():
        return open_by_kernel(root_fd, name, flags, mode)
    return open_by_walk(root_fd, name, flags, mode)


def open_parent(root_fd: int, path: str) -> tuple[int, str]:
    """Return a descriptor of the directory that holds `path`, and the last component of `path`.

    The descriptor is readable, so it can be listed and fsynced; the caller closes it. Raises OSError as `open_beneath`.
    """
    parent, _, leaf = path.rpartition("/")
    return open_beneath(root_fd, parent or ".", os.O_RDONLY | os.O_DIRECTORY), leaf


def path_error(error: OSError, path: str) -> CodespaceError:
    """Return the contract's error for what went wrong when `path` was opened; the system's reason is in the message."""
    code = _CODES.get(error.errno or 0, ErrorCode.FILE_OPERATION_FAILED)
    shown = shown_name(path)
    reason = error.strerror or type(error).__name__
    return CodespaceError(code, _MESSAGES[code].format(path=cut_name(shown), reason=reason), detail={"path": shown})


def cut_name(shown: str) -> str:
    """Return `shown` short enough for a sentence: of a long path, its beginning."""
    return shown if len(shown) <= _SENTENCE_CHARACTERS_MAX else f"{shown[:_SENTENCE_CHARACTERS_MAX - 1]}…"


def shown_name(name: str | bytes) -> str:
    r"""Return `name` fit for any encoder: bytes that aren't UTF-8 stand as `\xNN`."""
    if isinstance(name, bytes):
        return name.decode("utf-8", "backslashreplace")
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _encode(path: str) -> bytes:
    try:
        return path.encode("utf-8", "surrogateescape") or b"."
    except UnicodeEncodeError:
        raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ), shown_name(path)) from None


@cache
def _system_call() -> Callable[[int, int, bytes, bytes, int], int]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    call.restype = ctypes.c_long
    return call


@cache
def kernel_has_openat2() -> bool:
    """Return whether `openat2` can be used here: the kernel knows it, and no filter forbids it."""
    if not sys.platform.startswith("linux"):
        return False
    top = os.open(b"/", _PATH_ONLY | _DIRECTORY_FLAGS)
    try:
        os.close(open_by_kernel(top, b".", _PATH_ONLY | os.O_DIRECTORY, 0))
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def open_by_kernel(root_fd: int, name: bytes, flags: int, mode: int) -> int:
    """Open `name` by one `openat2`. Raises OSError."""
    how = _HOW.pack(flags | os.O_CLOEXEC, mode if flags & _CREATING else 0, _RESOLVE)
    call = _system_call()
    while True:
        descriptor = call(_OPENAT2, root_fd, name, how, _HOW.size)
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), shown_name(name))


def open_by_walk(root_fd: int, name: bytes, flags: int, mode: int) -> int:
    """Open `name` component by component, refusing a link at each. Raises OSError with the numbers `openat2` gives."""
    parts = [part for part in name.split(b"/") if part not in {b"", b"."}] or [b"."]
    if name.endswith(b"/"):
        flags |= os.O_DIRECTORY
    directory = root_fd
    try:
        for part in parts[:-1]:
            below = _open_component(directory, part, _PASSING, 0, is_on_the_way=True)
            if directory != root_fd:
                os.close(directory)
            directory = below
        return _open_component(directory, parts[-1], flags, mode, is_on_the_way=False)
    finally:
        if directory != root_fd:
            os.close(directory)


def _open_component(directory: int, part: bytes, flags: int, mode: int, *, is_on_the_way: bool) -> int:
    try:
        descriptor = os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=directory)
    except OSError as error:
        # O_DIRECTORY answers ENOTDIR for a link as well; the caller is to be told which it was.
        if error.errno == errno.ENOTDIR and _is_link(directory, part):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), shown_name(part)) from None
        raise
    if not flags & _PATH_ONLY:
        return descriptor
    # O_PATH with O_NOFOLLOW opens the link itself: asking the descriptor can't be raced, asking the name could.
    kind = os.fstat(descriptor).st_mode
    number = errno.ELOOP if stat.S_ISLNK(kind) else errno.ENOTDIR
    if stat.S_ISLNK(kind) or (is_on_the_way and not stat.S_ISDIR(kind)):
        os.close(descriptor)
        raise OSError(number, os.strerror(number), shown_name(part))
    return descriptor


def _is_link(directory: int, part: bytes) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISLNK(os.stat(part, dir_fd=directory, follow_symlinks=False).st_mode)
    return False
