"""What a spawner has said of one command so far. Passive: the link delivers, whoever waits looks."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from adapters.runner.changes import Changes
from adapters.spawner.report import REPORT_BYTES_MAX, require_ready
from adapters.wire import Message
from codespace_es.ports.runner import NotStartedError, RunnerLostError, SandboxReport


@dataclass(slots=True)
class AtGate:
    """A child waits, or is on its way to its gate. The descriptors are this process' now."""

    pid: int
    started_ticks: int
    sandbox: SandboxReport
    report: int | None
    """Readable once the child is ready, or couldn't be set up; None when that was read."""
    go: int
    """Whoever writes a byte there lets it run."""
    output: int
    input: int | None

    async def until_ready(self) -> None:
        """Return when the child is ready. Raises NotReadyError: it isn't, and ends."""
        assert self.report is not None, "a child reports once"
        await anyio.wait_readable(self.report)
        report, self.report = self.report, None
        try:
            require_ready(os.read(report, REPORT_BYTES_MAX))
        finally:
            os.close(report)

    def close(self) -> None:
        """Close all of them: it never runs then."""
        for descriptor in (self.report, self.go, self.output, self.input):
            if descriptor is not None:
                os.close(descriptor)


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
        self._began: float | None = None
        self._duration_ms = 0
        self.leader_status: int | None = None
        self.gone: Gone | None = None
        self.is_lost = False
        self._on_over = [on_over]
        self._tell_reaper: Callable[[Message], None] | None = None

    @property
    def is_over(self) -> bool:
        """Nothing more will be said."""
        return self.gone is not None or self.refusal is not None or self.is_lost

    def when_over(self, action: Callable[[], None]) -> None:
        """Have `action` called as soon as it is over, at once if it is."""
        if self.is_over:
            action()
        else:
            self._on_over.append(action)

    @property
    def is_reached(self) -> bool:
        """A reaper has it."""
        return self._tell_reaper is not None

    def reach(self, tell: Callable[[Message], None]) -> None:
        """Have it from now on with the reaper that `tell` tells something; one that is ending answers by that."""
        self._tell_reaper = tell
        self.changes.notify()

    def tell(self, kind: str, **fields: object) -> None:
        """Tell its reaper something."""
        assert self._tell_reaper is not None, "a reaper has it"
        self._tell_reaper({"kind": kind, "process_id": self.process_id, **fields})

    def begin(self) -> None:
        """Note that it is let go now."""
        self._began = time.monotonic()

    @property
    def is_begun(self) -> bool:
        """It was let go."""
        return self._began is not None

    def deliver(self, message: Message, descriptors: Sequence[int]) -> None:
        """Take in what the spawner or the reaper says, until it is over: lost, there may be more on its way."""
        if self.is_over:
            for descriptor in descriptors:
                os.close(descriptor)
            return
        match message["kind"]:
            case "gated":
                report, go, output, *inputs = descriptors
                self.at_gate = AtGate(
                    message["pid"], message["started_ticks"], report_of(message["sandbox"]), report, go, output,
                    inputs[0] if inputs else None,
                )
            case "not_started":
                self.refusal = NotStartedError(message["message"], message["errno"])
            case "leader_exited":
                self._note_end_of_leader(message["wait_status"])
            case "ended":
                self._note_end_of_leader(message["wait_status"])
                self.gone = Gone(message["wait_status"], self._duration_ms, message["swept"])
        self._notify()

    def _note_end_of_leader(self, wait_status: int | None) -> None:
        if self.leader_status is None and self._began is not None:
            self._duration_ms = round((time.monotonic() - self._began) * 1000)
        self.leader_status = wait_status

    def lose(self) -> None:
        """The link has fallen."""
        if not self.is_over:
            self.is_lost = True
            self._notify()

    def _notify(self) -> None:
        if self.is_over:
            for action in self._on_over:
                action()
        self.changes.notify()

    async def until_answered(self) -> None:
        """Return once it has a child, or is refused one. Raises RunnerLostError."""
        await self.until(lambda: self.at_gate is not None or self.refusal is not None)

    async def until_over(self) -> None:
        """Return once nothing more will be said. Raises RunnerLostError."""
        await self.until(lambda: self.is_over)

    async def until_gone(self) -> None:
        """Return once the whole tree has ended. Raises RunnerLostError."""
        await self.until(lambda: self.gone is not None)

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
