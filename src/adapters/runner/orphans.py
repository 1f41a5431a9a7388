"""Ending what is left of a command that no runner watches any more: all of its watchers were killed at one blow.

Its tree may have lost its root, so it is known by its leader, if that is still the very same process, by whatever is
beneath it, and by the tag that each process of a command has in its environment. Source: reliability.md section 4.
"""

import os
import signal
import time
from typing import Final

from anyio import to_thread

from adapters.spawner.reaper import EXECUTION_TAG
from adapters.spawner.tree import Member, boot_id, descendants, pid_namespace, send_signal, started_ticks
from codespace_es.ports.runner import Orphan

_PASS_SECONDS: Final = 0.01
_PASSES_MAX: Final = 200


async def end_orphan(orphan: Orphan) -> int:
    """Kill what is left of `orphan`, and return how many processes that were, once they are gone. See the port."""
    return await to_thread.run_sync(_end, orphan)


def _end(orphan: Orphan) -> int:
    if (orphan.boot_id, orphan.pid_namespace) != (boot_id(), pid_namespace()):
        return 0  # another boot has ended it, and another pid namespace isn't ours to look into
    killed: set[tuple[int, int]] = set()
    for _ in range(_PASSES_MAX):
        members = _members(orphan)
        if not members:
            break
        for member in members:
            if send_signal(member, signal.SIGKILL):
                killed.add((member.pid, member.started_ticks))
        time.sleep(_PASS_SECONDS)
    return len(killed)


def _members(orphan: Orphan) -> list[Member]:
    """Return the living processes that belong to `orphan`."""
    tag = f"{EXECUTION_TAG}={orphan.process_id}".encode()
    roots = {orphan.pid} if _is_alive(orphan.pid, orphan.started_ticks) else set()
    roots.update(int(name) for name in os.listdir("/proc") if name.isdecimal() and tag in _environment(name))
    found: dict[int, Member] = {}
    for pid in roots:
        try:
            found[pid] = Member(pid, started_ticks(pid))
        except OSError:
            continue  # it ended while we looked
        found.update((member.pid, member) for member in descendants(pid))
    return [member for member in found.values() if _is_alive(member.pid, member.started_ticks)]


def _environment(pid: str) -> list[bytes]:
    """Return the variables of a process; none of one that has ended, or is another user's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _is_alive(pid: int, start: int) -> bool:
    """Return whether the process that was started then is still there, and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(fields[19]) == start and fields[0] not in (b"Z", b"X")
