"""Running commands: a child forked and held at a gate, let go once that is on record, watched until its tree is gone.

The runner runs processes only, and knows nothing of the log. It may be a process of its own or be reached over a
socket; when the link falls it ends every tree it has. Source: decisions 17 to 23; contract A5, B5.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from codespace_es.ports.locks import Held
from codespace_es.vocabulary.identifiers import ProcessId

EndCause = Literal["caller", "timeout", "stop", "shutdown"]


@dataclass(frozen=True, slots=True)
class Orphan:
    """A command whose runner may be gone, as the system knows it."""

    process_id: ProcessId
    pid: int
    started_ticks: int
    boot_id: str
    pid_namespace: int


class NotStartedError(Exception):
    """Certain: nothing was started (missing or unusable executable, sandbox, limits). Carries the system's errno."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class LimitReachedError(Exception):
    """As many live at once as may, or as much input waits as may. Nothing was started, nothing was queued."""


class RunnerLostError(Exception):
    """The link to the runner has fallen; `is_dispatched` tells whether a request may have reached it."""

    def __init__(self, message: str, *, is_dispatched: bool) -> None:
        super().__init__(message)
        self.is_dispatched = is_dispatched


class InputClosedError(Exception):
    """The child's input is closed, by us or by it."""


class NotTerminalError(Exception):
    """The process has no terminal."""


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What is truly enforced here, found out by trying; never what was asked for."""

    level: int
    """3 bubblewrap + seccomp, 2 Landlock + seccomp, 1 neither."""
    kind: Literal["bubblewrap", "landlock", "none"]
    is_network_enforced: bool
    """`restricted` really has no network."""
    gaps: tuple[str, ...]
    """What it doesn't hold, in words."""


@dataclass(frozen=True, slots=True)
class RunnerCommand:
    """Everything the runner has to know of one command."""

    process_id: ProcessId
    argv: tuple[str, ...]
    root: str
    """Working directory and the only place that a confined command may write."""
    environment: Mapping[str, str]
    """All of it: nothing else is inherited."""
    tty: bool
    stdin: Literal["pipe", "null"]
    rows: int
    columns: int
    is_network_enabled: bool
    sandbox: Literal["auto", "require", "off"]
    hidden_paths: tuple[str, ...]
    """Directories and files that the command must not see or write (the data directory), where the sandbox can."""
    read_only_paths: tuple[str, ...]
    """Beneath the root, protected against writing (.git), where the sandbox can do that."""
    output_retention_bytes: int
    head_bytes: int


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """A piece of the combined output."""

    start: int
    """Absolute position of the first byte."""
    content: bytes
    is_end: bool
    """Nothing will follow this chunk."""
    retained_from: int
    total: int


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a leader ended, reported when its whole tree is gone and its output is at its end."""

    wait_status: int | None
    """As `waitpid` gives it; None if it was lost."""
    duration_ms: int
    swept: int
    """Descendants that had to be ended."""
    is_output_cut: bool
    output_bytes: int
    retained_from: int
    tail: bytes
    head: bytes
    """The first bytes, empty where the tail reaches back to the beginning."""


class GatedChild(Protocol):
    """A forked child that waits at its gate: nothing of the program has run."""

    pid: int
    started_ticks: int
    boot_id: str
    pid_namespace: int
    sandbox: SandboxReport

    async def go(self) -> "LiveProcess":
        """Let it run. Raises RunnerLostError; whether it ran is then open."""
        ...

    async def abandon(self) -> None:
        """Make sure that it never runs, and is gone. Never raises."""
        ...


class LiveProcess(Protocol):
    """A child that was let go, until its tree is gone; its output is kept in a window of bounded size.

    A child that prints faster than anybody reads doesn't grow the server: the window drops its oldest bytes.
    """

    @property
    def leader_status(self) -> int | None:
        """The leader's wait status once it has exited, maybe before the rest of its tree; None while it runs."""
        ...

    async def read(self, cursor: int, *, wait_ms: int, bytes_max: int) -> OutputChunk:
        """Return retained output from max(cursor, retained_from) on; wait up to `wait_ms` for the first new byte.

        A cursor beyond the total is echoed with an empty chunk. Cuts anywhere: characters are the caller's affair.
        """
        ...

    def peek(self) -> OutputChunk:
        """Return an empty chunk that tells where the output stands."""
        ...

    def require_room(self, size_bytes: int) -> None:
        """Pass if a `write` of so many bytes would be taken now. Nothing but another `write` makes the room smaller.

        Raises:
            InputClosedError, LimitReachedError, RunnerLostError: as `write`.
        """
        ...

    async def write(self, content: bytes, *, is_eof: bool) -> None:
        """Queue input, in order of the calls; return when it was taken by the pipe or terminal, or queued for it.

        A child that never reads can't block anybody else. `is_eof` closes a pipe behind the content; a terminal gets
        its end-of-file character, and stays open. A long line reaches a terminal whole, in the pieces it can take.

        Raises:
            InputClosedError: there is no input, or it was closed, or the child is gone.
            LimitReachedError: too much is queued already; nothing of this was.
            RunnerLostError: the link has fallen.
        """
        ...

    async def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size; the child gets SIGWINCH. Raises NotTerminalError, RunnerLostError."""
        ...

    async def end(self, *, signal: int, grace_ms: int) -> None:
        """Signal the tree, continue what is stopped, and kill what is left of it after `grace_ms`. Returns at once."""
        ...

    async def wait(self) -> ProcessEnd:
        """Return how it ended, when the whole tree is gone and all it printed was taken. Raises RunnerLostError."""
        ...


class Runner(Protocol):
    """Starts commands. At most the operator's number live at once; the slot is taken before anything is made."""

    async def start(
        self, command: RunnerCommand, *, lease: Held | None, meanwhile: Callable[[], Awaitable[None]] | None = None
    ) -> GatedChild:
        """Fork a child and hold it at its gate. The runner holds a duplicate of `lease` until the tree is gone.

        `meanwhile` is awaited while the child is on its way. Cancelled, or if that raises, it makes sure that the
        child never runs.

        Raises:
            LimitReachedError: the operator's number live; nothing was started.
            NotStartedError: nothing was started.
            RunnerLostError: the link has fallen.
        """
        ...

    async def end_orphan(self, orphan: Orphan) -> int:
        """End what is left of a command that no runner watches any more; return how many processes that were.

        Returns once they are gone. What was started at another boot or in another pid namespace can't be seen.
        """
        ...

    async def sandbox(self) -> SandboxReport:
        """Return what commands are confined by here. Cheap after the first call. Raises RunnerLostError."""
        ...

    async def on_loss(self, listener: Callable[[], Awaitable[None]]) -> None:
        """Have `listener` called once the link falls: its trees are dead or dying."""
        ...
