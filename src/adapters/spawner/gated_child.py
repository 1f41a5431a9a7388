"""The child's side of a gate: settle in, enter what confines it, say `ready`, wait for one byte, become the program.

Settling in is what no program changes: a session, descriptors, signals and limits of its own. A child may do that long
before its program is known (`spare`). Nothing here returns into the parent's code, nor raises into it, and every page
that it touches first is copied: what can be worked out before the fork is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal

from adapters.spawner import inheritance, sandbox
from adapters.spawner.report import READY, not_ready
from adapters.spawner.sandbox_confinement import NOT_RUN_CODE
from adapters.spawner.tree import end_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from adapters.wire import Message

NOT_FOUND_CODE = 127
ORDERS = 5
"""Where a child that is forked before its program is known is told of it."""
_REPORT, _GO = 3, 4


class Program:
    """What a child is to become."""

    __slots__ = ("argv", "descriptors", "entering", "environment", "path", "root")

    def __init__(
        self, *, path: str, argv: list[str], environment: dict[str, str], root: str, entering: Message | None,
        descriptors: tuple[int, ...],
    ) -> None:
        self.path = path
        self.argv = argv
        self.environment = environment
        self.root = root
        self.entering = entering
        """What `sandbox.enter` is given."""
        self.descriptors = descriptors
        """The program has them from `inheritance.FIRST_DESCRIPTOR` on."""


def be_child(
    report: int, go: int, live: Callable[[], None], *, streams: tuple[int, int, int] | None, others: Mapping[int, int]
) -> NoReturn:
    """Settle in, keep descriptors 0 to 2, the gate's and `others` alone, and `live`; the process ends after that.

    Args:
        report: where to say `ready`, or what went wrong.
        go: where the byte comes from.
        live: what to do in the end; it may `become` a program.
        streams: for 0 to 2. None: it leads a session and has its streams already.
        others: the number that each shall have, and the number that it has.
    """
    try:
        own = {_REPORT: report, _GO: go, **others}
        # First of all: what its parent does at a signal would be told on the command's own output.
        inheritance.restore_signals()
        # One that is stopped doesn't see that its gate is shut.
        _attempt(report, "It can't be tied to its reaper", end_with_parent, signal.SIGKILL)
        if streams is not None:
            _attempt(report, "A session of its own can't be had", os.setsid)
            own.update(enumerate(streams))
        _attempt(report, "Its descriptors can't be had", inheritance.put_in_place, own)
        inheritance.close_all_except((0, 1, 2, *own))
        live()
    finally:
        os._exit(NOT_RUN_CODE)


def become(program: Program) -> NoReturn:
    """Enter the directory and the sandbox, wait at the gate, and be the program, whose descriptors are in place."""
    _attempt(_REPORT, f"The working directory {program.root} can't be entered", os.chdir, program.root)
    _attempt(_REPORT, "The limit of open files can't be restored", inheritance.restore_limits)
    if program.entering is not None:
        _attempt(_REPORT, "The sandbox can't be entered", sandbox.enter, program.entering)
    os.write(_REPORT, READY)
    os.close(_REPORT)
    try:
        if os.read(_GO, 1) == b"g":
            os.execve(program.path, program.argv, program.environment)  # noqa: S606 - that is what it is for
    except BaseException as error:
        _tell_on_own_output(program, error)
        is_missing = isinstance(error, OSError) and error.errno == errno.ENOENT
        os._exit(NOT_FOUND_CODE if is_missing else NOT_RUN_CODE)
    os._exit(NOT_RUN_CODE)


def _attempt(report: int, problem: str, action: Callable[..., None], *arguments: object) -> None:
    """Do it; or report why it can't be done, and end."""
    try:
        action(*arguments)
    except BaseException as error:
        code = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(code) if code is not None else f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):  # whoever would read it is gone, and so is the reason to tell
            os.write(report, not_ready(problem, reason, code))
        os._exit(NOT_RUN_CODE)


def _tell_on_own_output(program: Program, error: BaseException) -> None:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    with contextlib.suppress(OSError):  # nobody reads its output any more
        os.write(2, os.fsencode(f"codespace-es: {program.path} couldn't be executed: {reason}\n"))
