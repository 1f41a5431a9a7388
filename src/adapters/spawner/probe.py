"""Finds out which sandbox works here, by running a real command in each and looking at what came of it.

A level counts only if the command could write its root and nothing beside it, and had no network. Bounded in time.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import socket
import time

from adapters.spawner import bubblewrap, landlock_confinement, seccomp
from adapters.spawner.inheritance import FIRST_DESCRIPTOR, put_in_place
from adapters.spawner.landlock import abi_version
from adapters.spawner.sandbox_confinement import SandboxError
from adapters.spawner.tree import end_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.spawner.sandbox_confinement import Confinement
    from adapters.wire import Message

SECONDS_MAX = 5.0
"""For all of it."""
_PLACES = ("/var/tmp", "/tmp")  # noqa: S108 - a new directory in one of them
_SCRIPT = """
true >"$1" 2>/dev/null
true >"$2" || exit 1
for table in /proc/net/route /proc/net/ipv6_route; do
  [ -e $table ] || continue
  while read -r line; do
    case $line in Iface*|*lo) ;; *) exit 2 ;; esac
  done <$table
done
"""
"""Writes outside (which may seem to work, in a directory of its own), inside, and looks for a way into any network.

Interfaces tell nothing: some kernels give every new network a few that lead nowhere.
"""


class Found:
    """What works here."""

    __slots__ = ("bubblewrap", "landlock_abi")

    def __init__(self, bubblewrap: tuple[str, tuple[str, ...]] | None, landlock_abi: int) -> None:
        self.bubblewrap = bubblewrap
        """The program and the options by which it works."""
        self.landlock_abi = landlock_abi
        """0 if it can't be used."""


class _Scene:
    """A directory to try in: `root` to be written, `outside` not."""

    def __init__(self, place: str) -> None:
        self.path = place
        self.root = os.path.join(place, "root")
        self.outside = os.path.join(place, "outside")
        self.inside = os.path.join(self.root, "inside")
        os.mkdir(self.root, 0o700)

    def request(self) -> Message:
        return {
            "root": self.root, "network": False, "sandbox": "require", "hidden_paths": (), "read_only_paths": (),
            "tty": False, "argv": (), "program": "/bin/sh", "environment": {"PATH": "/usr/bin:/bin"},
        }

    def is_confined(self) -> bool:
        """Return whether what was tried wrote inside, and not outside; be ready for another try."""
        is_written = os.path.exists(self.inside)
        is_escaped = os.path.exists(self.outside)
        for path in (self.inside, self.outside):
            with contextlib.suppress(FileNotFoundError):  # often so: nothing was written
                os.unlink(path)
        return is_written and not is_escaped


def find_out() -> Found:
    """Return what works here. Takes at most about SECONDS_MAX."""
    if not seccomp.is_available():
        return Found(None, 0)
    until = time.monotonic() + SECONDS_MAX
    scene = _make_scene()
    if scene is None:
        return Found(None, 0)
    try:
        abi = abi_version()
        works = abi > 0 and _works(scene, lambda: landlock_confinement.confine(scene.request(), abi), until)
        return Found(_find_bubblewrap(scene, until), abi if works else 0)
    finally:
        landlock_confinement.remove_tree(scene.path)


def _make_scene() -> _Scene | None:
    for place in _PLACES:
        with contextlib.suppress(OSError):  # the next place may do
            path = os.path.join(os.path.realpath(place), f"codespace-es-probe-{os.getpid()}-{os.urandom(6).hex()}")
            os.mkdir(path, 0o700)
            return _Scene(path)
    return None


def _find_bubblewrap(scene: _Scene, until: float) -> tuple[str, tuple[str, ...]] | None:
    program = bubblewrap.find_program()
    if program is None:
        return None
    for options in bubblewrap.NAMESPACE_OPTIONS:
        if _works(scene, functools.partial(bubblewrap.confine, scene.request(), program, options), until):
            return program, options
    return None


def _works(scene: _Scene, confine: Callable[[], Confinement], until: float) -> bool:
    try:
        confinement = confine()
    except (OSError, SandboxError):
        return False
    pid = os.fork()
    if pid == 0:
        _be_child(scene, confinement)
    for descriptor in confinement.descriptors:
        os.close(descriptor)
    status = _wait(pid, until)
    confinement.finish()
    return scene.is_confined() and status == 0


def _wait(pid: int, until: float) -> int:
    """Return the wait status of a child, which is killed when it takes too long."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            with contextlib.suppress(ProcessLookupError):  # it leads no group yet
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(descriptor)
    return os.waitpid(pid, 0)[1]


def _be_child(scene: _Scene, confinement: Confinement) -> None:
    """Try it, and end. Nothing that happens here may reach the parent's code."""
    code = 1
    try:
        end_with_parent(signal.SIGKILL)  # nobody else would end it, were it stopped
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        os.chdir(scene.root)
        if confinement.argv_prefix:
            put_in_place(dict(enumerate(confinement.descriptors, FIRST_DESCRIPTOR)))
            program, *options = confinement.argv_prefix
            argv = [program, "--die-with-parent", *options, "/bin/sh", "-c", _SCRIPT, "sh", scene.outside, scene.inside]
            os.execve(program, argv, confinement.environment)  # noqa: S606 - that is what is tried
        if confinement.entering is not None:
            landlock_confinement.enter(confinement.entering)
        code = 0 if _is_refused(lambda: _create(scene.outside)) and _is_refused(_connectable) else 1
        _create(scene.inside)
    finally:
        os._exit(code)


def _is_refused(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except PermissionError:
        return True
    return False


def _create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _connectable() -> None:
    socket.socket(socket.AF_INET).close()
