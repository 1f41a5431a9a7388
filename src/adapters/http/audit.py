"""The operator looks at the log: pages of the timeline, its state at a moment, an operation's diffs, its verification.

Each reads the log in a worker thread, as a tool beside the server would. What has to walk through the log walks
alone, within a bound where it is part of a page, and stops when the server ends.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeVar

import anyio
from anyio import from_thread, to_thread
from pydantic import Field

from codespace_es.aggregates.operation import OperationMinted
from codespace_es.ports.clock_and_ids import Clock
from codespace_es.ports.log import StoreUnavailableError, UnknownTopicError
from codespace_es.projections.operation_status import OperationReport
from codespace_es.projections.operation_status import project as report_of
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import StreamId
from replay.attended import Attended
from replay.removals import Removals
from replay.source import LogSource, first_of
from replay.state_at import LogState, state_at
from replay.story import FileStory, tell_files
from replay.timeline import Page, Timeline, Wanted
from replay.verify import VerifyReport, verify

__all__ = ["Audit", "LogState", "Page"]  # what is answered in the audit's own words goes out from here

OpenSource = Callable[[], AbstractContextManager[LogSource]]

PAGE_ENTRIES_MAX = 500
SCANNED_EVENTS_MAX = 20_000
"""Events that one page of a filtered timeline looks at."""
STATE_EVENTS_MAX = 200_000
"""How far into the log its state is told here; `codespace-es replay` has no such bound."""

_READERS_MAX = 4

_Told = TypeVar("_Told")


class AskTimeline(Command):
    """Ask for a page of the timeline: the newest events, those before a position, or those behind one."""

    after: int | None = Field(default=None, ge=0, le=2**53, description="Begin behind this position.")
    before: int | None = Field(default=None, ge=1, le=2**53, description="End before this position; without `after`.")
    limit: int = Field(default=100, ge=1, le=PAGE_ENTRIES_MAX, description="Entries on a page.")
    workspace: str | None = Field(default=None, description="Only of this workspace, by its name or key.")
    operation: str | None = Field(default=None, description="Only events of this id, or that name it.")
    topic: str | None = Field(default=None, description="Only this topic, or what begins with it.")
    session: str | None = Field(default=None, description="Only one server (inst-...), or clients so named.")
    text: str | None = Field(default=None, description="Only events that hold this text.")


class AskState(Command):
    """Ask what the log said at a moment."""

    position: int | None = Field(default=None, ge=0, le=2**53, description="The moment; without one: now.")


class AskOperation(Command):
    """Ask what an operation did, with the diffs of its recorded images."""

    operation_id: str = Field(description="An operation.")


class OperationStory(Answer):
    """An operation, who asked for it, and what it did to each file."""

    report: OperationReport = Field(description="As operation_status tells it.")
    began: str = Field(description="By which channel it was asked for.")
    client: str | None = Field(default=None, description="By which client.")
    files: tuple[FileStory, ...] = Field(description="Its plan, with a diff a file or why there is none.")

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object, in which the report is as it is elsewhere."""
        return {**super().to_wire(), "report": self.report.to_wire()}


class AskVerification(Command):
    """Ask what the last verification found."""


class Verify(Command):
    """Have the whole log verified."""


class Verification(Answer):
    """What verifying the log found."""

    state: str = Field(description="never, running or done.")
    verified_at: datetime | None = Field(default=None, description="When the last one ended, UTC.")
    report: VerifyReport | None = Field(default=None, description="What the last one found.")


class Audit:
    """Reads the log on behalf of the operator. Its methods answer commands, as the door's stories do."""

    def __init__(self, open_source: OpenSource, clock: Clock) -> None:
        """Take what opens the log for one thread to look at."""
        self._open = open_source
        self._clock = clock
        self._readers = anyio.CapacityLimiter(_READERS_MAX)
        self._walker = anyio.CapacityLimiter(1)
        self._verified: Verification | None = None
        self._running: anyio.Event | None = None

    async def timeline(self, asked: AskTimeline, _caller: Caller) -> Page:
        """Return a page. Raises INVALID_ARGUMENT, STORE_UNAVAILABLE."""
        if asked.after is not None and asked.before is not None:
            raise CodespaceError(
                ErrorCode.INVALID_ARGUMENT, "before: give it or after, not both.", detail={"field": "before"}
            )
        is_instance = asked.session is not None and asked.session.startswith("inst-")
        wanted = Wanted(
            workspace=asked.workspace, operation=asked.operation, topic=asked.topic, text=asked.text,
            instance=asked.session if is_instance else None, client=None if is_instance else asked.session,
        )

        def read(source: LogSource) -> Page:
            timeline = Timeline(source)
            if asked.after is not None:
                return timeline.read(wanted, after=asked.after, limit=asked.limit, scanned_max=SCANNED_EVENTS_MAX)
            return timeline.read_newest(
                wanted, before=asked.before, limit=asked.limit, scanned_max=SCANNED_EVENTS_MAX
            )

        return await self._read(read, self._readers)

    async def state(self, asked: AskState, _caller: Caller) -> LogState:
        """Return what the log said. Raises INVALID_ARGUMENT for a moment too far in, STORE_UNAVAILABLE."""

        def read(source: LogSource) -> LogState:
            head, _hash = source.head()
            position = head if asked.position is None else min(asked.position, head)
            if position > STATE_EVENTS_MAX:
                raise CodespaceError(
                    ErrorCode.INVALID_ARGUMENT,
                    f"position: the state is told here up to {STATE_EVENTS_MAX}; use codespace-es replay {position}.",
                    detail={"field": "position"},
                )
            return state_at(source, position)

        return await self._read(read, self._walker)

    async def operation(self, asked: AskOperation, _caller: Caller) -> OperationStory:
        """Return the story. Raises OPERATION_NOT_FOUND, STORE_UNAVAILABLE."""

        def read(source: LogSource) -> OperationStory:
            stream_id = StreamId(asked.operation_id)
            first = first_of(source, stream_id) if asked.operation_id.startswith("op-") else None
            minted = None if first is None else first.event
            if first is None or not isinstance(minted, OperationMinted):
                raise CodespaceError(
                    ErrorCode.OPERATION_NOT_FOUND, f"No operation {asked.operation_id[:100]!r} is recorded."
                )
            envelope = first.envelope
            return OperationStory(
                report=report_of(source.walk_stream(stream_id)), began=envelope.channel, client=envelope.client,
                files=tell_files(source, stream_id, minted, Removals(source)),
            )

        return await self._read(read, self._readers)

    async def verification(self, _asked: AskVerification, _caller: Caller) -> Verification:
        """Return what the last verification of this server found."""
        found = self._verified or Verification(state="never")
        return found if self._running is None else found.model_copy(update={"state": "running"})

    async def verify(self, _asked: Verify, _caller: Caller) -> Verification:
        """Return what verifying the log finds; who asks while it is verified waits for the same. STORE_UNAVAILABLE."""
        if self._running is not None:
            await self._running.wait()
            return self._verified or Verification(state="never")
        self._running = anyio.Event()
        try:
            report = await self._read(verify, self._walker)
            self._verified = Verification(state="done", verified_at=self._clock.now(), report=report)
            return self._verified
        finally:
            self._running.set()
            self._running = None

    async def _read(self, read: Callable[[LogSource], _Told], limiter: anyio.CapacityLimiter) -> _Told:
        def run() -> _Told:
            with self._open() as source:
                return read(Attended(source, lambda _position: from_thread.check_cancelled()))

        try:
            return await to_thread.run_sync(run, limiter=limiter)
        except (StoreUnavailableError, UnknownTopicError) as error:
            raise CodespaceError(ErrorCode.STORE_UNAVAILABLE, f"The event log is unavailable: {error}.") from error
