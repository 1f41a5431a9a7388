"""Level 3: bubblewrap, which runs the command in namespaces of its own, and the system call filter.

The whole file system is there to be read, the root to be written; `/tmp` and `/run` are the command's own and empty, so
are `/dev`, `/proc`, the process ids and, unless the network is enabled, the network. The hidden directories are empty.
All options and the environment travel in a file in memory: they don't stand in the process list, and nothing of the
environment (LD_PRELOAD, for one) acts on bubblewrap itself, which isn't confined yet.

Two processes stand between the forked child and the command: bubblewrap, and process 1 of the namespace. `die-with-
parent` isn't used: what the command leaves running would die with it at once, uncounted; the reaper ends it.
Source: decisions 20, 23, 24; reliability.md D7, D8; bwrap(1).
"""

from __future__ import annotations

import os
import signal
import stat

from adapters.spawner import seccomp
from adapters.spawner.sandbox_confinement import (
    Confinement,
    SandboxError,
    existing_directories,
    is_beneath,
    protectable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.spawner.wire import Message

NAMESPACE_OPTIONS = (
    ("--unshare-user", "--disable-userns"),
    ("--unshare-user",),
    (),
)
"""Beside `--unshare-all`, strictest first; which of them works is found out by trying."""
_SEARCHED = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_OWN = ("/tmp", "/run", "/var/run")  # noqa: S108 - hidden behind empty ones: sockets of other programs live there
_KERNEL_SETTINGS = (
    "acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "latency_stats", "mtrr", "pressure", "scsi",
    "slabinfo", "sys", "sysrq-trigger", "timer_stats",
)
"""In /proc. Root may write most of these without any capability, being their owner; one names a program to run."""
_SHOWN_AGAIN = ("/run/current-system", "/run/opengl-driver")
"""Where one distribution keeps its programs."""
_NOT_FATAL = frozenset(
    {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
     signal.SIGTTOU}
)
_WRAPPERS = 2


def find_program() -> str | None:
    """Return the path of a bubblewrap that only root or this user can have put there, else None."""
    for directory in (*os.environ.get("PATH", "").split(":"), *_SEARCHED):
        path = os.path.realpath(os.path.join(directory, "bwrap"))
        if not os.path.isabs(directory):
            continue
        try:
            status = os.stat(path)
        except OSError:
            continue
        is_ours = status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISREG(status.st_mode) and is_ours and os.access(path, os.X_OK):
            return path
    return None


def report(request: Message) -> Message:
    """Return what is enforced at this level for `request`."""
    gaps = [
        "reading every other file that its user may read",
        "Unix sockets outside /run and /tmp, by path",
        "abstract Unix sockets of other programs, where the network is enabled",
    ]
    root = request.get("root", "/")
    good, bad = protectable(root, request.get("read_only_paths", ()))
    gaps += [f"writing to {path}: it is missing or a link" for path in bad]
    gaps += [
        f"putting another {path} in its place, by renaming a folder above it"
        for path in good
        if os.path.dirname(path) != root
    ]
    return {"level": 3, "kind": "bubblewrap", "is_network_enforced": True, "gaps": gaps}


def confine(request: Message, program: str, namespace_options: tuple[str, ...]) -> Confinement:
    """Return how the command of `request` is confined at this level. Raises SandboxError, OSError."""
    machine = seccomp.machine()
    assert machine is not None, "this level was found to be available"
    if is_beneath(program, request["root"]):
        raise SandboxError(f"{program} lies in the workspace, so whoever writes there could have replaced it.")
    families = None if request["network"] else seccomp.OWN_NETWORK_FAMILIES
    filtering = _in_memory("filter", seccomp.assemble(machine, families=families, has_attributes=True))
    words = [*_options(request, namespace_options), "--seccomp", str(filtering)]
    options = _in_memory("options", b"".join(os.fsencode(word) + b"\0" for word in words))
    return Confinement(
        report(request),
        {},
        argv_prefix=(program, "--args", str(options), "--"),
        descriptors=(filtering, options),
        wrappers=_WRAPPERS,
        wait_status=true_wait_status,
    )


def _options(request: Message, namespace_options: tuple[str, ...]) -> Iterator[str]:
    root = request["root"]
    hidden = existing_directories(request["hidden_paths"])
    if root in hidden:
        raise SandboxError(f"{root} is the workspace, and hidden from commands.")
    yield from (*namespace_options, "--unshare-all", "--cap-drop", "ALL")
    if request["network"]:
        yield "--share-net"
    yield from ("--ro-bind", "/", "/")
    masked = existing_directories(_OWN)
    for path in masked:
        yield from ("--perms", "1777" if path.endswith("tmp") else "0755", "--tmpfs", path)
    yield from _shown_again(masked, has_network=request["network"])
    yield from ("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108 - its own
    for path in (f"/proc/{name}" for name in _KERNEL_SETTINGS):
        if os.path.exists(path):
            yield from ("--ro-bind", path, path)
    for path in hidden:
        if is_beneath(root, path):
            yield from ("--tmpfs", path)
    yield from ("--bind", root, root)
    for path in protectable(root, request["read_only_paths"])[0]:
        yield from ("--ro-bind", path, path)
    for path in hidden:
        is_masked = any(is_beneath(path, mask) for mask in masked) and not is_beneath(path, root)
        if not is_beneath(root, path) and not is_masked:
            yield from ("--perms", "0500", "--tmpfs", path, "--remount-ro", path)
    environment = request["environment"]
    if "HOME" not in environment:
        yield from ("--perms", "0700", "--dir", "/tmp/home", "--setenv", "HOME", "/tmp/home")  # noqa: S108 - its own
    for name, value in environment.items():
        yield from ("--setenv", name, value)
    yield from ("--chdir", root)


def _shown_again(masked: list[str], *, has_network: bool) -> Iterator[str]:
    """Show what programs need of a directory that is the command's own: programs, and whom to ask for names."""
    paths = [path for path in _SHOWN_AGAIN if os.path.exists(path)]
    resolver = os.path.realpath("/etc/resolv.conf")
    if has_network and os.path.isfile(resolver):
        paths.append(resolver)
    for path in paths:
        if any(is_beneath(path, mask) for mask in masked):
            yield from ("--ro-bind", path, path)


def _in_memory(name: str, content: bytes) -> int:
    """Return a descriptor to read `content` from."""
    descriptor = os.memfd_create(f"codespace-es-{name}", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def true_wait_status(status: int) -> int:
    """Return the command's wait status, from bubblewrap's.

    Bubblewrap ends with 128 + n when the command was ended by signal n, as shells do. A command that itself ends with
    such a code (a shell whose own last command was ended so) looks the same; it counts as ended by the signal too.
    """
    if not os.WIFEXITED(status):
        return status
    number = os.WEXITSTATUS(status) - 128
    return number if number in signal.valid_signals() and number not in _NOT_FATAL else status
