"""Level 3: bubblewrap, which runs the command in namespaces of its own, and the system call filter.

The whole file system is there to be read, the root to be written; `/tmp` and `/run` are the command's own and empty, so
are `/dev`, `/proc`, the process ids and, unless the network is enabled, the network. The hidden directories are empty.
All options and the environment travel in a file in memory: they don't stand in the process list, and nothing of the
environment (LD_PRELOAD, for one) acts on bubblewrap itself, which isn't confined yet.

The command leads a session of its own, so neither `kill 0` nor what is typed at its terminal reaches what confines it.
Two processes stand between the forked child and the command: bubblewrap, and process 1 of the namespace. `die-with-
parent` isn't used: what the command leaves running would die with it at once, uncounted; the reaper ends it.
Source: decisions 20, 23, 24; reliability.md D7, D8; bwrap(1).
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import termios
from functools import partial

from adapters.spawner import seccomp
from adapters.spawner.inheritance import FIRST_DESCRIPTOR
from adapters.spawner.sandbox_confinement import (
    NOT_RUN_CODE,
    Confinement,
    SandboxError,
    existing,
    is_beneath,
    protectable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.wire import Message

NAMESPACE_OPTIONS = (
    ("--unshare-user", "--disable-userns"),
    ("--unshare-user",),
    (),
)
"""Beside `--unshare-all`, strictest first; which of them works is found out by trying."""
_SEARCHED = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_OWN = ("/tmp", "/run", "/var/run")  # noqa: S108 - hidden behind empty ones: sockets of other programs live there
_KERNEL_SETTINGS = ("sys",)
"""In /proc: even without a capability root, their owner, may write them (one names a program that the kernel runs), and
anybody those of namespaces of their own."""
_ROOTS_KERNEL_SETTINGS = (
    "acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "latency_stats", "mtrr", "scsi", "slabinfo",
    "sysrq-trigger", "timer_stats",
)
"""Those that only root may write."""
_SHOWN_AGAIN = ("/run/current-system", "/run/opengl-driver")
"""Where one distribution keeps its programs."""
_HOME = "/tmp/home"  # noqa: S108 - in the command's own
_NOT_FATAL = frozenset(
    {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
     signal.SIGTTOU}
)
_WRAPPERS = 2
_FAILED = 1
_TOLD_BYTES_MAX = 4096


def find_program() -> str | None:
    """Return the path of a bubblewrap that only root or this user can have put there, else None."""
    for directory in (*filter(os.path.isabs, os.environ.get("PATH", "").split(":")), *_SEARCHED):
        path = os.path.realpath(os.path.join(directory, "bwrap"))
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
    root = request["root"]
    if root == "/" or root in existing(request["hidden_paths"]):
        raise SandboxError(f"The workspace {root} can't be confined: it is everything, or hidden from commands.")
    _require_in_sight(request)
    if is_beneath(program, root):
        raise SandboxError(f"{program} lies in the workspace, so whoever writes there could have replaced it.")
    families = None if request["network"] else seccomp.OWN_NETWORK_FAMILIES
    taker = _terminal_taker() if request["tty"] else ()
    words = list(_options(request, namespace_options))
    if not taker:
        words.append("--new-session")
    filtering = _in_memory("filter", seccomp.assemble(machine, families=families, has_attributes=True))
    words += ["--seccomp", str(FIRST_DESCRIPTOR)]
    words += ["--json-status-fd", str(FIRST_DESCRIPTOR + 2)]
    options = _in_memory("options", b"".join(os.fsencode(word) + b"\0" for word in words))
    told, tells = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    return Confinement(
        report(request),
        {},
        argv_prefix=(program, "--args", str(FIRST_DESCRIPTOR + 1), "--", *taker),
        entering={"kind": "without_terminal"} if taker else None,
        descriptors=(filtering, options, tells),
        wrappers=_WRAPPERS,
        wait_status=partial(_wait_status, told),
        finish=partial(os.close, told),
    )


def _options(request: Message, namespace_options: tuple[str, ...]) -> Iterator[str]:
    yield from (*namespace_options, "--unshare-all", "--cap-drop", "ALL")
    if request["network"]:
        yield "--share-net"
    masked = existing(_OWN)
    yield from _system(masked, has_network=request["network"])
    yield from _workspace(request, masked)
    environment = request["environment"]
    if "HOME" not in environment:
        yield from ("--perms", "0700", "--dir", _HOME, "--setenv", "HOME", _HOME)
    for name, value in environment.items():
        yield from ("--setenv", name, value)
    yield from ("--chdir", request["root"])


def _system(masked: list[str], *, has_network: bool) -> Iterator[str]:
    """Show the machine, to be read, and nothing in `masked` but what programs can't do without."""
    yield from ("--ro-bind", "/", "/")
    for path in masked:
        yield from ("--perms", "1777" if path.endswith("tmp") else "0755", "--tmpfs", path)
    resolver = [os.path.realpath("/etc/resolv.conf")] if has_network else []
    for path in (*_SHOWN_AGAIN, *resolver):
        if os.path.exists(path) and _is_in(path, masked):
            yield from ("--ro-bind", path, path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108 - its own
    settings = _KERNEL_SETTINGS + (_ROOTS_KERNEL_SETTINGS if os.geteuid() == 0 else ())
    for path in (f"/proc/{name}" for name in settings):
        if os.path.exists(path):
            yield from ("--ro-bind", path, path)


def _workspace(request: Message, masked: list[str]) -> Iterator[str]:
    """Let the root be written, what is protected in it be read, and hide what is to be hidden, in the order it lies."""
    root = request["root"]
    hidden = existing(request["hidden_paths"])
    for path in hidden:
        if is_beneath(root, path):
            yield from ("--tmpfs", path)
    yield from ("--bind", root, root)
    for path in protectable(root, request["read_only_paths"])[0]:
        yield from ("--ro-bind", path, path)
    for path in hidden:
        is_gone_already = _is_in(path, masked) and not is_beneath(path, root)
        if is_beneath(root, path) or is_gone_already:
            continue
        if os.path.isdir(path):
            yield from ("--perms", "0500", "--tmpfs", path, "--remount-ro", path)
        else:
            yield from ("--ro-bind", os.devnull, path)


def _is_in(path: str, directories: list[str]) -> bool:
    return any(is_beneath(path, directory) for directory in directories)


def _require_in_sight(request: Message) -> None:
    """Refuse a program that the command couldn't see. Raises SandboxError."""
    root = request["root"]
    program = os.path.realpath(os.path.join(root, request["program"]))
    if is_beneath(program, root):
        return
    if _is_in(program, existing(request["hidden_paths"])):
        raise SandboxError(f"{program} is hidden from commands.", errno.ENOENT)
    if _is_in(program, existing(_OWN)) and not _is_in(program, list(_SHOWN_AGAIN)):
        raise SandboxError(
            f"{program} lies in a directory of which a confined command gets an empty one of its own. "
            "Put it into the workspace.",
            errno.ENOENT,
        )


def _terminal_taker() -> tuple[str, ...]:
    """Return what makes the command the leader of the terminal's session.

    What confines it may not be in that session, nor in its process group: it would die of an interrupt that is typed.
    Raises SandboxError.
    """
    for directory in _SEARCHED:
        path = os.path.join(directory, "setsid")
        if os.path.exists(path):
            return (path, "-c")
    raise SandboxError("A terminal can't be given to a confined command: setsid (of util-linux) is missing.")


def give_up_terminal() -> None:
    """Leave the terminal without a session. Its session's leader, this process, is told by a hang-up."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    fcntl.ioctl(0, termios.TIOCNOTTY)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _in_memory(name: str, content: bytes) -> int:
    """Return a descriptor to read `content` from."""
    descriptor = os.memfd_create(f"codespace-es-{name}", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _wait_status(told: int, status: int) -> int:
    """Return the command's wait status, from bubblewrap's and what it has told of the command.

    It tells an exit code of what it has executed only. Whatever keeps it from that ends it with 1, and it has said why
    on standard error, which is the command's: that counts as any program does that couldn't be executed.
    """
    try:
        content = os.read(told, _TOLD_BYTES_MAX)
    except BlockingIOError:
        content = b""
    if status == _FAILED << 8 and b'"exit-code"' not in content:
        return NOT_RUN_CODE << 8
    return true_wait_status(status)


def true_wait_status(status: int) -> int:
    """Return the command's wait status, from bubblewrap's.

    Bubblewrap ends with 128 + n when the command was ended by signal n, as shells do. A command that itself ends with
    such a code (a shell whose own last command was ended so) looks the same; it counts as ended by the signal too.
    """
    if not os.WIFEXITED(status):
        return status
    number = os.WEXITSTATUS(status) - 128
    return number if number in signal.valid_signals() and number not in _NOT_FATAL else status
