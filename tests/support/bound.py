"""To be bound by permissions on files, also where the tests run as root: a check, or a whole program.

Root is, once it has given up the rights to read, write and search whatever it likes: an owner is bound by what the
owner may. `python -m support.bound COMMAND …` gives them up, then is the program.
"""

import ctypes
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from support.warm_parent import run

Answer = TypeVar("Answer")

_VERSION_3 = 0x20080522  # <linux/capability.h>
_OVERRIDES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

_LIBC = ctypes.CDLL(None, use_errno=True)


def give_up_overrides() -> None:
    """Bind this thread, and all that it starts, for good."""
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of the first 32 capabilities, then of the rest
    if _LIBC.capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    for number in range(3):
        sets[number] &= ~_OVERRIDES
    if _LIBC.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")


def bound(check: Callable[[], Answer]) -> Answer:
    """Return what `check` returns in a thread that is bound."""
    with ThreadPoolExecutor(1, initializer=give_up_overrides) as thread:
        return thread.submit(check).result()


def bound_program(command: list[str]) -> list[str]:
    """Return the command line that runs a Python program bound."""
    return [sys.executable, "-m", "support.bound", *command]


if __name__ == "__main__":
    give_up_overrides()
    run(sys.argv[1:])
