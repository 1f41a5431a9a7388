"""The tree of processes beneath one: who is in it, and how to signal each without ever hitting a stranger.

A descendant whose parent dies is given to the nearest living subreaper above it, so beneath a subreaper nobody gets
lost, whatever sessions and double forks it uses. Source: proc(5), prctl(2), pidfd_open(2).
"""

from __future__ import annotations

import ctypes
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GONE = "ZX"
_FREEZE_PASSES_MAX = 100


class Member:
    """A process that was seen alive: its number and, to tell it from a successor, its start in ticks since boot."""

    __slots__ = ("pid", "started_ticks")

    def __init__(self, pid: int, started_ticks: int) -> None:
        self.pid = pid
        self.started_ticks = started_ticks


def become_subreaper() -> None:
    """Make this process the parent of every orphan beneath it. Not inherited by a fork. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process can't become a subreaper")


def end_with_parent(number: int) -> None:
    """Have this process signalled when the one that started it has ended, however. Not inherited by a fork.

    Raises OSError.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process can't be tied to its parent")


def started_ticks(pid: int) -> int:
    """Return the start of process `pid`. Raises OSError when there is none."""
    return _read_stat(pid)[2]


def boot_id() -> str:
    """Return the id of this boot; empty where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def pid_namespace() -> int:
    """Return the inode of this process' pid namespace; 0 where the system has none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def descendants(root: int, *, except_beneath: frozenset[int] = frozenset()) -> list[Member]:
    """Return all living processes beneath `root`, nearest first, without it; nor `except_beneath` and what is below.

    One pass over /proc: what is forked meanwhile may be missed, so a caller repeats until there is nobody left.
    """
    children: dict[int, list[tuple[int, str, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                state, parent, start = _read_stat(int(name))
            except OSError:
                continue  # it ended while we looked
            children.setdefault(parent, []).append((int(name), state, start))
    found: list[Member] = []
    unvisited = [root]
    for parent in unvisited:
        for pid, state, start in children.get(parent, ()):
            if pid not in except_beneath:
                unvisited.append(pid)
                if state not in _GONE:
                    found.append(Member(pid, start))
    return found


def send_signal(member: Member, number: int) -> bool:
    """Signal exactly that process; return whether it could be: it is gone, or another user's, otherwise."""
    try:
        descriptor = os.pidfd_open(member.pid)
    except OSError:
        return False
    try:
        if started_ticks(member.pid) != member.started_ticks:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill_beneath(
    root: int, *, is_racing: bool, except_beneath: frozenset[int] = frozenset(),
    order: Callable[[list[Member]], list[Member]] = list,
) -> list[Member]:
    """Kill all that one look finds beneath `root`, in `order` (nearest first); return those that could be.

    When they fork as fast as they are killed, every kill makes room for a new one: then stop all of them first.
    """
    if is_racing:
        _freeze(root, except_beneath)
    members = order(descendants(root, except_beneath=except_beneath))
    return [member for member in members if send_signal(member, signal.SIGKILL)]


def _freeze(root: int, except_beneath: frozenset[int]) -> None:
    """Stop all beneath `root`, looking again until nobody new is found."""
    stopped: set[tuple[int, int]] = set()
    for _ in range(_FREEZE_PASSES_MAX):
        seen = descendants(root, except_beneath=except_beneath)
        fresh = [member for member in seen if (member.pid, member.started_ticks) not in stopped]
        if not fresh:
            return
        for member in fresh:
            send_signal(member, signal.SIGSTOP)
            stopped.add((member.pid, member.started_ticks))


def _read_stat(pid: int) -> tuple[str, int, int]:
    """Return state, parent and start of a process; its name may itself hold blanks and parentheses."""
    with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
        fields = file.read(1024).rpartition(b")")[2].split()
    if len(fields) < 20:
        raise ProcessLookupError(pid)
    return fields[0].decode("ascii"), int(fields[1]), int(fields[19])
