"""What the levels of the ladder have in common: what a confinement is, and how paths and environment are prepared."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapters.spawner.tree import Member
    from adapters.wire import Message


NOT_RUN_CODE = 126
"""Exit code of a command that was let go and couldn't be executed. Shells have it too."""


class SandboxError(Exception):
    """The command can't be confined as it has to be. Carries the system's errno, if it had one."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class Confinement:
    """How one command will be confined."""

    __slots__ = ("argv_prefix", "descriptors", "entering", "environment", "finish", "report", "wait_status", "wrappers")

    def __init__(
        self,
        report: Message,
        environment: dict[str, str],
        *,
        argv_prefix: tuple[str, ...] = (),
        entering: Message | None = None,
        descriptors: tuple[int, ...] = (),
        wrappers: int = 0,
        wait_status: Callable[[int], int] = int,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self.report = report
        self.environment = environment
        self.argv_prefix = argv_prefix
        self.entering = entering
        self.descriptors = descriptors
        self.wrappers = wrappers
        self.wait_status = wait_status
        self.finish = finish

    def wrappers_among(self, members: Sequence[Member], leader: int) -> int:
        """Return how many of the first `members` (nearest first) only confine the command, `leader` being forked.

        A wrapper that has ended isn't among them: the outermost does first, and its children are then nearest.
        """
        if not members or self.wrappers == 0:
            return 0
        return min(len(members), self.wrappers if members[0].pid == leader else self.wrappers - 1)


def existing(paths: Sequence[str]) -> list[str]:
    """Return the true paths of those that exist, outermost first."""
    return sorted({os.path.realpath(path) for path in paths if os.path.exists(path)}, key=len)


def protectable(root: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return those of `paths` that can be mounted over, and the others: missing ones, links, and what isn't in `root`.

    A link beneath a directory that may be written can be exchanged at any time, so it protects nothing.
    """
    good: list[str] = []
    bad: list[str] = []
    for path in paths:
        whole = os.path.normpath(os.path.join(root, path))
        try:
            mode = os.lstat(whole).st_mode
        except OSError:
            mode = 0
        is_good = is_beneath(whole, root) and (stat.S_ISDIR(mode) or stat.S_ISREG(mode))
        is_good = is_good and os.path.realpath(whole) == whole
        (good if is_good else bad).append(whole)
    return good, bad


def is_beneath(path: str, directory: str) -> bool:
    """Return whether `path` is `directory` or lies beneath it. Both are absolute and normal."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
