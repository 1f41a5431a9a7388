"""Root's privileges, given up: whoever has them can take most walls down from inside.

A process of user 0 gets its capabilities back at `execve`, as far as the bounding set has them; so that goes first.
Source: capabilities(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4
_VERSION_3 = 0x20080522
_CAPABILITIES_MAX = 64


def drop_capabilities() -> None:
    """Have no capability, and get none back by becoming another program. Raises OSError."""
    if os.geteuid() == 0 or os.getuid() == 0:
        for capability in range(_CAPABILITIES_MAX):
            if _LIBRARY.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) != 0:
                if ctypes.get_errno() == errno.EINVAL:
                    break  # this kernel has no more of them
                raise _error()
    _LIBRARY.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", _VERSION_3, 0)
    if _LIBRARY.capset(header, bytes(24)) != 0:
        raise _error()


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
