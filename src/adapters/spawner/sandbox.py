"""What confines a command. Here: level 1, nothing but its own session, its reaper and its limits.

This module is the seam for the other levels; `gate` and `reaper` know nothing of how a command is confined.

- `probe(request)` finds out, by trying, what can be enforced on this machine. It may start processes, and may take
  milliseconds; whoever needs it often keeps the answer.
- `confine(request)` is called in the reaper of one command, before anything of it is forked. It answers with a
  `Confinement`: `argv_prefix` goes before the command (as `/usr/bin/bwrap … --`; its first word is executed, so it is a
  path), `enter` is called in the forked child as its last step before the gate, with the working directory set and
  only descriptors 0 to 2, the gate's and `descriptors` open, and `report` is what the caller is told. `enter` may raise
  OSError: nothing runs then. Its effects have to survive `execve` (Landlock, seccomp, no_new_privs).
- `descriptors` are kept open for the child up to and over its `execve` (as for `bwrap --seccomp FD`): confine opens
  them, the child's side is made inheritable by `gate`, the reaper closes its own.

`request` is the `start` message: `root`, `network` (bool), `sandbox` ("auto", "require", "off"), `hidden_paths`,
`read_only_paths`, `tty`, `argv`, `environment`. Refusals are SandboxError: then nothing is started.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.spawner.wire import Message


class SandboxError(Exception):
    """The command can't be confined as it has to be. Carries the system's errno, if it had one."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class Confinement:
    """How one command will be confined."""

    __slots__ = ("argv_prefix", "descriptors", "enter", "report")

    def __init__(
        self,
        report: Message,
        *,
        argv_prefix: tuple[str, ...] = (),
        enter: Callable[[], None] | None = None,
        descriptors: tuple[int, ...] = (),
    ) -> None:
        self.report = report
        self.argv_prefix = argv_prefix
        self.enter = enter
        self.descriptors = descriptors


def probe(request: Message) -> Message:  # noqa: ARG001 - what can be enforced may depend on what is asked for
    """Return what is enforced here: `level`, `kind`, `is_network_enforced`, `gaps`."""
    return {
        "level": 1,
        "kind": "none",
        "is_network_enforced": False,
        "gaps": ["files outside the workspace", "network", "other processes of this user"],
    }


def confine(request: Message) -> Confinement:
    """Return how the command of `request` will be confined. Raises SandboxError."""
    report = probe(request)
    if request["sandbox"] == "require" and report["level"] < 2:
        raise SandboxError("No sandbox works on this machine, and this workspace requires one.")
    return Confinement(report)
