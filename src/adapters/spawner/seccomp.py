"""The filter of system calls: a program for the kernel's packet filter machine, assembled here.

1. Another architecture's calls (32-bit programs, x32) end the process: their numbers mean something else.
2. What `seccomp_calls` lists is refused with EPERM; `clone3` as if it didn't exist, since its arguments can't be seen
   and every C library falls back to `clone`; attributes as if no file system had them, at level 2.
3. New user namespaces, faked terminal input and sockets of families that aren't allowed are refused by argument.
4. Everything else is allowed.

It survives `execve`, is inherited and can't be taken off. Source: seccomp(2), linux/bpf_common.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct

from adapters.spawner.seccomp_calls import ARCHITECTURES, NOT_PERMITTED, NUMBERS, SET_ATTRIBUTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OWN_NETWORK_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""Harmless in a network namespace of one's own; other families (vsock, for one) may reach past it."""
NO_NETWORK_FAMILIES = (socket.AF_UNIX,)

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LOAD, _JUMP_EQUAL, _JUMP_ABOVE_OR_EQUAL, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32_BIT = 0x40000000
_CLONE_NEWUSER = 0x10000000
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_GET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 21, 2


def machine() -> str | None:
    """Return the architecture of this process if its calls are known, else None."""
    name = os.uname().machine
    return name if name in ARCHITECTURES and struct.calcsize("P") == 8 else None


def assemble(name: str, *, families: Iterable[int] | None, has_attributes: bool) -> bytes:
    """Return the filter for architecture `name`.

    Args:
        name: one of `ARCHITECTURES`.
        families: address families that sockets may have; None for all.
        has_attributes: whether extended attributes may be set.
    """
    numbers = NUMBERS[name]
    program = [
        _instruction(_LOAD, _ARCHITECTURE_OFFSET),
        _instruction(_JUMP_EQUAL, ARCHITECTURES[name], if_true=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _NUMBER_OFFSET),
    ]
    if name == "x86_64":
        program += [_instruction(_JUMP_ABOVE_OR_EQUAL, _X32_BIT, if_false=1), _instruction(_RETURN, _KILL_PROCESS)]
    refusals = dict.fromkeys(NOT_PERMITTED, errno.EPERM)
    refusals["clone3"] = errno.ENOSYS
    if not has_attributes:
        refusals.update(dict.fromkeys(SET_ATTRIBUTES, errno.EOPNOTSUPP))
    for call, code in refusals.items():
        if call in numbers:
            program += [_instruction(_JUMP_EQUAL, numbers[call], if_false=1), _instruction(_RETURN, _ERRNO | code)]
    for call in ("clone", "unshare"):
        namespaces = [_instruction(_JUMP_ANY_BIT, _CLONE_NEWUSER, if_false=1), _refuse()]
        program += _by_argument(numbers[call], 0, namespaces)
    program += _by_argument(
        numbers["ioctl"], 1, [i for v in _TERMINAL_INPUT for i in (_instruction(_JUMP_EQUAL, v, if_false=1), _refuse())]
    )
    if families is not None:
        allowed = [i for family in families for i in (_instruction(_JUMP_EQUAL, family, if_false=1), _allow())]
        program += _by_argument(numbers["socket"], 0, [*allowed, _refuse()])
    program.append(_allow())
    return b"".join(program)


def _by_argument(number: int, index: int, body: list[bytes]) -> list[bytes]:
    """Return instructions that run `body` on the low half of an argument of that call, and allow what it leaves."""
    checked = [_instruction(_LOAD, _ARGUMENTS_OFFSET + 8 * index), *body, _allow()]
    return [_instruction(_JUMP_EQUAL, number, if_false=len(checked)), *checked]


def _refuse() -> bytes:
    return _instruction(_RETURN, _ERRNO | errno.EPERM)


def _allow() -> bytes:
    return _instruction(_RETURN, _ALLOW)


def _instruction(code: int, operand: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def is_available() -> bool:
    """Return whether this kernel filters system calls, and those of this machine are known."""
    return machine() is not None and _LIBRARY.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def forbid_new_privileges() -> None:
    """Make set-user-id programs run as anybody else does, for good. Raises OSError."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def install(program: bytes) -> None:
    """Filter this process' calls, and those of whatever it becomes, for good. Raises OSError."""
    instructions = ctypes.create_string_buffer(program, len(program))
    packed = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(instructions))
    header = ctypes.create_string_buffer(packed, len(packed))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header))


def _prctl(option: int, first: int, second: int = 0) -> None:
    if _LIBRARY.prctl(option, *(ctypes.c_ulong(argument) for argument in (first, second, 0, 0))) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
