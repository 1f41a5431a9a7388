"""Landlock: what a process and all it becomes may do to files, sockets and strangers. No privilege is needed.

Three system calls, the same numbers everywhere. What a kernel can do is told by its ABI version, and every mask is
computed from that: a right that isn't handled isn't restricted. Source: landlock(7), linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

WRITE_FILE, READ_FILE = 1 << 1, 1 << 2
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (1 << bit for bit in range(6, 13))
_REFER, TRUNCATE = 1 << 13, 1 << 14
_DEVICES = _MAKE_CHAR | _MAKE_BLOCK
_TCP = 0b11
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

ABI_REFER, ABI_TRUNCATE, ABI_TCP, ABI_SCOPES = 2, 3, 4, 6


def abi_version() -> int:
    """Return which version this kernel offers; 0 when it has none, or it is switched off."""
    version: int = _LIBRARY.syscall(
        ctypes.c_long(_CREATE_RULESET), ctypes.c_void_p(None), ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG)
    )
    return max(0, version)


def writing(abi: int) -> int:
    """Return every right by which files are changed."""
    rights = WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
    rights |= _DEVICES
    if abi >= ABI_REFER:
        rights |= _REFER
    if abi >= ABI_TRUNCATE:
        rights |= TRUNCATE
    return rights


class Ruleset:
    """Rules in the making; nothing is restricted before `enforce`."""

    def __init__(self, abi: int, *, hides: bool, has_network: bool) -> None:
        """Restrict writing, signals and abstract sockets; reading if `hides`, TCP unless `has_network`."""
        self._abi = abi
        self._rights = writing(abi) | (READ_FILE if hides else 0)
        fields = [self._rights]
        if abi >= ABI_TCP:
            fields.append(0 if has_network else _TCP)
        if abi >= ABI_SCOPES:
            fields.append(_ABSTRACT_SOCKETS | _SIGNALS)
        attributes = struct.pack(f"={len(fields)}Q", *fields)
        self._descriptor = self._call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))

    def allow_all_beneath(self, path: str) -> None:
        """Let everything be done beneath `path`, device files excepted. Raises OSError."""
        self._allow(path, self._rights & ~_DEVICES)

    def allow(self, path: str, rights: int) -> bool:
        """Allow `rights` on `path` and beneath, as far as they are restricted; return whether there is such a path."""
        try:
            self._allow(path, rights & self._rights)
        except OSError:
            return False
        return True

    def _allow(self, path: str, rights: int) -> None:
        if not rights:
            return
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                rights &= WRITE_FILE | READ_FILE | TRUNCATE
            self._call(
                _ADD_RULE, self._descriptor, ctypes.c_int(_PATH_BENEATH), struct.pack("=Qi", rights, descriptor),
                ctypes.c_uint(0),
            )
        finally:
            os.close(descriptor)

    def enforce(self) -> None:
        """Restrict this process, and whatever it becomes, for good. It needs `no_new_privs`. Raises OSError."""
        self._call(_RESTRICT_SELF, self._descriptor, ctypes.c_uint(0))
        os.close(self._descriptor)

    def _call(self, number: int, *arguments: object) -> int:
        result: int = _LIBRARY.syscall(ctypes.c_long(number), *arguments)
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result


def all_but(hidden: Sequence[str], directory: str = "/") -> Iterator[str]:
    """Return what together covers all files now beneath `directory` but those beneath `hidden`.

    Symbolic links are left out: what they lead to is covered where it is. So is a directory that can't be listed. What
    appears later in a directory above a hidden one isn't covered.
    """
    start = "" if directory == "/" else directory
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        path = f"{start}/{name}"
        if path in hidden or os.path.islink(path):
            continue
        if is_any_beneath(hidden, path):
            yield from all_but(hidden, path)
        else:
            yield path


def is_any_beneath(paths: Iterable[str], directory: str) -> bool:
    """Return whether one of `paths` is `directory` or lies beneath it. All are absolute and without links."""
    return any(path == directory or path.startswith(directory.rstrip("/") + "/") for path in paths)
