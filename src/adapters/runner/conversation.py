"""What a spawner has said of one command so far. Passive: the link delivers, whoever waits looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.runner.changes import Changes
from adapters.wire import Message
from codespace_es.ports.runner import NotStartedError, RunnerLostError, SandboxReport


@dataclass(frozen=True, slots=True)
class AtGate:
    """A child waits. The streams are this process' now."""

    pid: int
    started_ticks: int
    sandbox: SandboxReport
    output: int
    input: int | None


@dataclass(frozen=True, slots=True)
class Gone:
    """The whole tree has ended, and the runner's copy of the lease is closed."""

    wait_status: int | None
    duration_ms: int
    swept: int


class Conversation:
    """One command's part of a link."""

    def __init__(self, process_id: str, *, on_over: Callable[[], None]) -> None:
        self.process_id = process_id
        self.changes = Changes()
        self.at_gate: AtGate | None = None
        self.refusal: NotStartedError | None = None
        self.is_running = False
        self.resizes = 0
        self.leader_status: int | None = None
        self.gone: Gone | None = None
        self.is_lost = False
        self._on_over = on_over

    @property
    def is_over(self) -> bool:
        """Nothing more will be said."""
        return self.gone is not None or self.refusal is not None or self.is_lost

    def deliver(self, message: Message, descriptors: Sequence[int]) -> None:
        """Take in what the spawner says."""
        match message["kind"]:
            case "gated":
                streams = (*descriptors, None)
                assert streams[0] is not None, "a gated child has an output"
                report = report_of(message["sandbox"])
                self.at_gate = AtGate(message["pid"], message["started_ticks"], report, streams[0], streams[1])
            case "not_started":
                self.refusal = NotStartedError(message["message"], message["errno"])
            case "running":
                self.is_running = True
            case "resized":
                self.resizes += 1
            case "leader_exited":
                self.leader_status = message["wait_status"]
            case "ended":
                self.leader_status = message["wait_status"]
                self.gone = Gone(message["wait_status"], message["duration_ms"], message["swept"])
        self._tell()

    def lose(self) -> None:
        """The link has fallen."""
        if not self.is_over:
            self.is_lost = True
            self._tell()

    def _tell(self) -> None:
        if self.is_over:
            self._on_over()
        self.changes.notify()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return as soon as `is_so`. Raises RunnerLostError when the link falls before."""
        while not is_so():
            if self.is_lost:
                raise RunnerLostError("The runner was lost; what it ran is ended.", is_dispatched=True)
            await self.changes.wait()


def report_of(message: Message) -> SandboxReport:
    """Return the report that a spawner sent."""
    return SandboxReport(
        level=message["level"],
        kind=message["kind"],
        is_network_enforced=message["is_network_enforced"],
        gaps=tuple(message["gaps"]),
    )
