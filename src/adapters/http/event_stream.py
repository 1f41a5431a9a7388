"""`/operator/timeline/events`: the timeline as it is written, as server-sent events, each with its position as id.

A client that was cut off goes on behind the last id that it has (`Last-Event-ID`, or `?after=`): nothing is missed and
nothing comes twice. Between events a comment shows that the connection lives. Source: WHATWG HTML, server-sent events.
"""

import logging

import anyio
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adapters.http.json_calls import STATUSES, read_command, refused
from codespace_es.ports.log import EventLog, StoreUnavailableError, UnknownTopicError
from codespace_es.projections.timeline import TimelineEntry, project
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import RecordedEvent

STREAMS_MAX = 64
"""Streams that are open at once."""

_QUIET_SECONDS_MAX = 15.0
_RETRY_MS = 2_000
"""After so long a browser tries again."""

logger = logging.getLogger(__name__)


class FollowTimeline(Command):
    """Ask for every event from now on, or behind a position."""

    after: int | None = Field(
        default=None, ge=0, le=2**53, description="Begin behind this position; a Last-Event-ID header wins over it."
    )


class EventStreams:
    """Opens streams, as long as there aren't too many."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._open = anyio.Semaphore(STREAMS_MAX)

    async def answer(self, request: Request) -> Response:
        """Return the stream, or the refusal: INVALID_ARGUMENT, RESOURCE_QUEUE_FULL, STORE_UNAVAILABLE."""
        last_id = request.headers.get("last-event-id")
        given = {"after": last_id} if last_id else dict(request.query_params)
        try:
            after = await self._place(given)
        except CodespaceError as refusal:
            return refused(refusal, STATUSES)
        return _EventStream(self._log, after, self._open)

    async def _place(self, given: dict[str, str]) -> int:
        asked = read_command(FollowTimeline, given, is_text=True)
        assert isinstance(asked, FollowTimeline)
        if self._open.value == 0:
            raise CodespaceError(
                ErrorCode.RESOURCE_QUEUE_FULL, f"{STREAMS_MAX} streams are open; close one and try again."
            )
        try:
            head, _hash = await self._log.head()
        except StoreUnavailableError as error:
            told = str(error).rstrip(".")
            raise CodespaceError(ErrorCode.STORE_UNAVAILABLE, f"The event log is unavailable: {told}.") from error
        return head if asked.after is None else min(asked.after, head)


class _EventStream(Response):
    """One open stream. It ends with its connection, with the server, or with a log that can't be read."""

    media_type = "text/event-stream"

    def __init__(self, log: EventLog, after: int, streams: anyio.Semaphore) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._log = log
        self._after = after
        self._streams = streams
        self._writing = anyio.Lock()
        self._is_quiet = True

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until somebody ends it."""
        async with self._streams:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_alive, send)
                tasks.start_soon(_wait_for_the_end, receive, tasks.cancel_scope)
                await self._send_events(send)
                tasks.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b""})

    async def _send_events(self, send: Send) -> None:
        await self._write(send, f"retry: {_RETRY_MS}\n\n".encode())
        try:
            async for recorded in self._log.follow(after=self._after):
                await self._write(send, _frame(recorded))
        except (StoreUnavailableError, UnknownTopicError) as error:
            logger.warning("the timeline can't be followed: %s", error)

    async def _keep_alive(self, send: Send) -> None:
        while True:
            self._is_quiet = True
            await anyio.sleep(_QUIET_SECONDS_MAX)
            if self._is_quiet:
                await self._write(send, b": still here\n\n")

    async def _write(self, send: Send, frame: bytes) -> None:
        async with self._writing:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            self._is_quiet = False


def _frame(recorded: RecordedEvent) -> bytes:
    entry: TimelineEntry = project(recorded)
    return f"id: {entry.position}\ndata: {entry.model_dump_json(exclude_none=True)}\n\n".encode()


async def _wait_for_the_end(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
