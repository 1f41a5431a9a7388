"""Level 2: Landlock and the system call filter, entered by the child itself. No other program, no namespace.

The command may change what lies beneath its root, a private temporary directory that ends with it, and the devices that
programs need. It may read everything but the hidden directories, whose names it can still list.
Source: decisions 23, 24; reliability.md section 2.
"""

from __future__ import annotations

import contextlib
import os

from adapters.spawner import seccomp
from adapters.spawner.landlock import (
    ABI_REFER,
    ABI_SCOPES,
    ABI_TRUNCATE,
    READ_FILE,
    TRUNCATE,
    WRITE_FILE,
    Ruleset,
    all_but,
)
from adapters.spawner.landlock_privileges import drop_capabilities
from adapters.spawner.sandbox_confinement import Confinement, existing, is_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.wire import Message

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - semaphores live there, so programs with several processes need it
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - only a new directory of one's own is made in it


def report(request: Message, abi: int) -> Message:
    """Return what is enforced at this level for `request`."""
    gaps = [
        "mode, owner and times of files outside the workspace that are its user's",
        "reading every other file that its user may read",
        "names in the hidden directories",
        "shared memory of its user's programs (/dev/shm)",
        "Unix sockets of other programs, by path",
        "sight of other processes",
        "writing to the protected paths of the workspace (.git)",
    ]
    if any(is_beneath(path, request.get("root", "")) for path in existing(request.get("hidden_paths", ()))):
        gaps.append("the hidden directories: they lie in the workspace")
    if abi < ABI_SCOPES:
        gaps.append("signals to other processes of its user, and their abstract Unix sockets (Landlock before ABI 6)")
    if abi < ABI_TRUNCATE:
        gaps.append("truncating files outside the workspace (Landlock before ABI 3)")
    if abi < ABI_REFER:
        gaps.append("moving files between directories of the workspace is refused (Landlock before ABI 2)")
    return {"level": 2, "kind": "landlock", "is_network_enforced": True, "gaps": gaps}


def confine(request: Message, abi: int) -> Confinement:
    """Return how the command of `request` is confined at this level. Raises OSError."""
    machine = seccomp.machine()
    assert machine is not None, "this level was found to be available"
    has_network = request["network"]
    private = _make_private_directory()
    environment = {"HOME": private, "TMPDIR": private, **request["environment"]}
    families = None if has_network else seccomp.NO_NETWORK_FAMILIES
    program = seccomp.assemble(machine, families=families, has_attributes=False)
    entering = {
        "kind": "landlock", "abi": abi, "writable": [request["root"], private], "network": has_network,
        "hidden_paths": existing(request["hidden_paths"]), "filter": program.hex(),
    }
    return Confinement(
        report(request, abi), environment, entering=entering, finish=lambda: remove_tree(private)
    )


def enter(entering: Message) -> None:
    """Be confined as `confine` has told. Raises OSError."""
    rules = Ruleset(entering["abi"], hides=True, has_network=entering["network"])
    for path in entering["writable"]:
        rules.allow_all_beneath(path)
    if os.path.isdir(_SHARED_MEMORY):
        rules.allow_all_beneath(_SHARED_MEMORY)
    for name in _DEVICES:
        rules.allow(f"/dev/{name}", WRITE_FILE | READ_FILE | TRUNCATE)
    for path in all_but(entering["hidden_paths"]):
        if path != "/dev":  # root reads disks there
            rules.allow(path, READ_FILE)
    drop_capabilities()
    seccomp.forbid_new_privileges()
    rules.enforce()
    seccomp.install(bytes.fromhex(entering["filter"]))


def _make_private_directory() -> str:
    for place in _TEMPORARY:
        path = os.path.join(os.path.realpath(place), f"codespace-es-{os.getpid()}-{os.urandom(6).hex()}")
        with contextlib.suppress(OSError):  # the next place may do; the last one's error is told
            os.mkdir(path, 0o700)
            return path
    raise OSError(f"A private temporary directory can't be made in any of {', '.join(_TEMPORARY)}.")


def remove_tree(path: str) -> None:
    """Remove a directory with all that is in it, following no link. What the command made unremovable stays."""
    for _, folders, files, directory in os.fwalk(path, topdown=False):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):  # stays
                try:
                    os.unlink(name, dir_fd=directory)
                except IsADirectoryError:
                    os.rmdir(name, dir_fd=directory)
    with contextlib.suppress(OSError):  # stays, with what is in it
        os.rmdir(path)
