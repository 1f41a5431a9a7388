"""What confines a command: the ladder, whose best level that works here is taken.

    3  bubblewrap and the system call filter (`bubblewrap`)
    2  Landlock and the system call filter (`landlock_confinement`)
    1  nothing but a session, a reaper and limits of its own

This module is the seam: `loop`, `gate` and `reaper` know nothing of how a command is confined.

- `probe(request)` finds out, by trying, what can be enforced on this machine. The first call starts processes and may
  take a few milliseconds, seconds at worst; a fork of this process inherits what it found.
- `confine(request)` is called in the reaper of one command. It answers with a `Confinement`: `argv_prefix` goes before
  the command (as `/usr/bin/bwrap … --`; its first word is executed, so it is a path), `environment` is all that
  `execve` is given, `entering` is what `enter` is given, and `report` is what the caller is told.
- `enter(entering)` is called in the child as its last step before the gate, with the working directory set and only
  descriptors 0 to 2, the gate's and the confinement's open. It may raise OSError: nothing runs then. Its effects have
  to survive `execve`. It is told what to do in a message, since the child may be older than the request.
- `descriptors` are open for the child up to and over its `execve` (as for `bwrap --seccomp FD`), from number
  `inheritance.FIRST_DESCRIPTOR` on: confine opens them, `gate` puts them there, the reaper closes its own.
- The forked child and what is below it may at first be `wrappers`, not the command: the reaper signals what is below
  them, doesn't count them, and asks `wait_status` what the end of the first says of the command's.
- `finish` is called when the tree is gone, or never was.

`request` is the `start` message: `root`, `network` (bool), `sandbox` ("auto", "require", "off"), `hidden_paths`,
`read_only_paths`, `tty`, `argv`, `environment`; and `program`, the file to execute. Refusals are SandboxError: then
nothing is started.
"""

from __future__ import annotations

from adapters.spawner import bubblewrap, landlock_confinement
from adapters.spawner.probe import Found, find_out
from adapters.spawner.sandbox_confinement import Confinement, SandboxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.wire import Message

__all__ = ["Confinement", "Found", "SandboxError", "confine", "enter", "limit_to", "probe"]

_found: Found | None = None


def probe(request: Message) -> Message:
    """Return what is enforced here: `level`, `kind`, `is_network_enforced`, `gaps`; the latter for `request`."""
    found = _find_out_once()
    if request.get("sandbox") != "off":
        if found.bubblewrap is not None:
            return bubblewrap.report(request)
        if found.landlock_abi:
            return landlock_confinement.report(request, found.landlock_abi)
    return {
        "level": 1,
        "kind": "none",
        "is_network_enforced": False,
        "gaps": ["files outside the workspace", "network", "other processes of this user"],
    }


def confine(request: Message) -> Confinement:
    """Return how the command of `request` will be confined. Raises SandboxError."""
    found = _find_out_once()
    try:
        if request["sandbox"] != "off":
            if found.bubblewrap is not None:
                return bubblewrap.confine(request, *found.bubblewrap)
            if found.landlock_abi:
                return landlock_confinement.confine(request, found.landlock_abi)
    except OSError as error:
        raise SandboxError(f"The sandbox can't be set up: {error}.", error.errno) from error
    if request["sandbox"] == "require":
        raise SandboxError("No sandbox works on this machine, and this workspace requires one.")
    return Confinement(probe(request), {"HOME": request["root"], **request["environment"]})


def enter(entering: Message) -> None:
    """Be confined from now on, as far as the child does that itself. Raises OSError."""
    match entering["kind"]:
        case "landlock":
            landlock_confinement.enter(entering)
        case "without_terminal":
            bubblewrap.give_up_terminal()


def limit_to(level: int) -> Found:
    """Take no level above `level` from now on, in this process and its forks; return what is left."""
    global _found  # noqa: PLW0603 - found out once a process
    found = _find_out_once()
    _found = Found(found.bubblewrap if level >= 3 else None, found.landlock_abi if level >= 2 else 0)
    return _found


def _find_out_once() -> Found:
    global _found  # noqa: PLW0603 - found out once a process
    if _found is None:
        _found = find_out()
    return _found
