"""The live timeline over real HTTP: each event once and in order, over a lost connection too, until the server ends."""

import json
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from adapters.http import event_stream
from adapters.http.event_stream import EventStreams
from codespace_es.aggregates.instance import InstanceStopped
from codespace_es.vocabulary.event import Envelope, RecordedEvent
from codespace_es.vocabulary.identifiers import AppendId, InstanceId, RequestId, StreamId
from support.http_client import OPERATOR_TOKEN, TOKEN, HttpServer, http_product, serving
from support.stdio_client import SECONDS_MAX

pytestmark = pytest.mark.anyio

EVENTS = "/operator/timeline/events"


async def read(response: httpx2.Response) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """Yield id and content of each event."""
    position = 0
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            position = int(value)
        elif name == "data":
            yield position, json.loads(value)


async def open_work(server: HttpServer, title: str) -> None:
    await server.ask("work_open", workspace_id="demo", title=title)


async def test_events_come_as_they_are_written_and_go_on_where_a_connection_was_lost(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    command = http_product(tmp_path, f"demo={tmp_path / 'ws'}")
    with anyio.fail_after(SECONDS_MAX):
        async with (
            serving(command, tmp_path, token=TOKEN, operator_token=OPERATOR_TOKEN) as server,
            server.operator() as operator,
        ):
            async with operator.stream("GET", EVENTS) as response, aclosing(read(response)) as events:
                assert response.headers["content-type"].startswith("text/event-stream")
                await open_work(server, "first")
                position, entry = await anext(events)
                while entry["topic"] != "steering.work_opened.v1":
                    position, entry = await anext(events)
                assert "first" in entry["summary"]
            await open_work(server, "second")
            await open_work(server, "third")
            positions: list[int] = []
            titles: list[str] = []
            last = {"Last-Event-ID": str(position)}
            going_on = operator.stream("GET", f"{EVENTS}?after=0", headers=last)
            async with going_on as response, aclosing(read(response)) as events:
                while len(titles) < 2:
                    number, entry = await anext(events)
                    positions.append(number)
                    titles += [entry["summary"]] if entry["topic"] == "steering.work_opened.v1" else []
                server.kill(signal.SIGTERM)
                async for number, _entry in events:
                    positions.append(number)
            assert ["second" in titles[0], "third" in titles[1]] == [True, True]
            assert positions == list(range(position + 1, position + 1 + len(positions)))
            assert await server.process.wait() == 0
            assert TOKEN not in server.log
            assert OPERATOR_TOKEN not in server.log


class _NoNews:
    """A log in which nothing happens."""

    async def head(self) -> tuple[int, bytes]:
        return 7, bytes(32)

    async def follow(self, *, after: int) -> AsyncIterator[Any]:
        self.after = after
        await anyio.sleep_forever()
        yield


async def answered(streams: EventStreams, **query: str) -> Any:
    scope = {
        "type": "http", "method": "GET", "path": EVENTS, "headers": [],
        "query_string": "&".join(f"{name}={value}" for name, value in query.items()).encode(),
    }
    from starlette.requests import Request

    return await streams.answer(Request(scope))


async def test_a_quiet_stream_shows_that_it_lives_and_ends_with_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_QUIET_SECONDS_MAX", 0.01)
    log = _NoNews()
    sent: list[bytes] = []
    is_gone = anyio.Event()

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if message.get("body", b"").startswith(b":"):
            is_gone.set()

    async def receive() -> dict[str, str]:
        await is_gone.wait()
        return {"type": "http.disconnect"}

    response = await answered(EventStreams(log))  # type: ignore[arg-type]  # what is asked of a log is there
    with anyio.fail_after(5):
        await response({}, receive, send)
    assert log.after == 7
    assert sent[1:3] == [b"retry: 2000\n\n", b": still here\n\n"]


class _MuchNews:
    """A log in which much has happened, and that counts what is asked for."""

    told = 0

    async def head(self) -> tuple[int, bytes]:
        return 10**9, bytes(32)

    async def follow(self, *, after: int) -> AsyncIterator[RecordedEvent]:
        envelope = Envelope(
            recorded_at=datetime(2026, 1, 1, tzinfo=UTC), instance_id=InstanceId("inst-x"),
            append_id=AppendId("apd-x"), request_id=RequestId("req-x"), channel="mcp",
        )
        while True:
            self.told += 1
            yield RecordedEvent(
                after + self.told, StreamId("inst-x"), 1, InstanceStopped(reason="eof"),
                envelope.model_dump_json(exclude_none=True).encode(),
            )


async def test_for_a_client_that_reads_nothing_nothing_is_made() -> None:
    """So a stream costs no memory, however slow its client is and however much happens."""
    log = _MuchNews()
    is_full, is_gone = anyio.Event(), anyio.Event()
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if len(sent) == 5:
            is_full.set()
            await anyio.sleep_forever()

    async def receive() -> dict[str, str]:
        await is_gone.wait()
        return {"type": "http.disconnect"}

    response = await answered(EventStreams(log), after="0")  # type: ignore[arg-type]  # what is asked of a log is there
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(response, {}, receive, send)
            await is_full.wait()
            await anyio.wait_all_tasks_blocked()
            assert (log.told, len(sent)) == (3, 5)  # beside the answer's head and how soon to try again
            tasks.cancel_scope.cancel()


async def test_there_is_room_for_so_many_streams_and_for_one_more_when_one_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_stream, "STREAMS_MAX", 1)
    streams = EventStreams(_NoNews())  # type: ignore[arg-type]  # what is asked of a log is there
    has_begun, is_gone = anyio.Event(), anyio.Event()

    async def send(_message: Any) -> None:
        has_begun.set()

    async def receive() -> dict[str, str]:
        await is_gone.wait()
        return {"type": "http.disconnect"}

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(await answered(streams), {}, receive, send)
            await has_begun.wait()
            assert (await answered(streams)).status_code == 429
            is_gone.set()
        assert (await answered(streams)).status_code == 200
