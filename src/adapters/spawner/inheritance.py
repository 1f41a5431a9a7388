"""What every command inherits from the process that forks it: descriptors, signals and limits, nothing by accident."""

from __future__ import annotations

import fcntl
import os
import resource
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIRST_DESCRIPTOR = 10
"""A program has its own descriptors, beside 0 to 2, from this number on."""
_MOVED_FROM = 32
"""Above every number that something is to have."""
_DESCRIPTORS_MAX = 1 << 20
"""No descriptor is higher on a system without a limit of its own."""
_OWN_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT,
                signal.SIGCHLD)
"""Ignored by Python, or with a handler of `waking`: the others are at their default (`prepare_process`)."""
_open_files_limits: tuple[int, int] | None = None
_set_disposition = getattr(signal.signal, "__wrapped__", signal.signal)
"""Without the wrapper that makes enumerations of numbers: it touches three times the pages."""


def prepare_process(open_files_max: int | None) -> None:
    """Give this process what every command of its inherits: default signals, none blocked.

    Once for all: after a fork each page that is touched costs, so a child does as little as it can. The limit of open
    files is for the commands; this process takes all it may have.
    """
    global _open_files_limits  # noqa: PLW0603 - the same for every command of this process and its forks
    for number in signal.valid_signals() - set(_OWN_SIGNALS):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if open_files_max is not None:
        soft = open_files_max if hard == resource.RLIM_INFINITY else min(open_files_max, hard)
    _open_files_limits = (soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def restore_signals() -> None:
    """Give a forked child what is left to restore of its signals: they are as a program expects them then."""
    signal.set_wakeup_fd(-1)
    for number in _OWN_SIGNALS:
        _set_disposition(number, signal.SIG_DFL)


def restore_limits() -> None:
    """Give a forked child the limit of open files that commands have. Raises OSError."""
    if _open_files_limits is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, _open_files_limits)


def put_in_place(descriptors: Mapping[int, int]) -> None:
    """Have each at its number, whatever is there: the number to have, the number now. Raises OSError.

    Streams and the program's own are still open when it runs, the others not.
    """
    moved = {number: fcntl.fcntl(now, fcntl.F_DUPFD_CLOEXEC, _MOVED_FROM) for number, now in descriptors.items()}
    for number, now in moved.items():
        os.dup2(now, number, inheritable=number <= 2 or number >= FIRST_DESCRIPTOR)
        os.close(now)


def close_all_except(kept: Sequence[int]) -> None:
    """Close every descriptor of this process but `kept`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    end = _DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else max(hard, *kept)
    below = 0
    for descriptor in sorted({*kept, end}):
        if descriptor > below:  # an empty range would wrap round and be all of them
            os.closerange(below, descriptor)
        below = descriptor + 1
