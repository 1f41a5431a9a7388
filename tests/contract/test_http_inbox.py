"""The inbox over HTTP, in this process: real guard, app and door over a real log; statuses of the contract."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest

from adapters.http.app import build_app
from adapters.http.guard import Admittance
from adapters.http.inbox import inbox_routes
from adapters.log.reader import LogReader
from adapters.mcp_server.server import build_server
from codespace_es.command_handlers import steering
from codespace_es.command_handlers.finishing import FinishWorkCommand
from codespace_es.command_handlers.observing import ReadProcess
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.invocation import ExecCommand
from replay.timeline import Timeline, Wanted
from support.http_client import http_product, serving
from support.postgres import STORES, place_of
from support.server import Server
from support.stdio_client import SECONDS_MAX, ask

pytestmark = pytest.mark.anyio

TOKEN = "the-token"


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "ws").mkdir()
    async with Server(tmp_path, {"demo": tmp_path / "ws"}, sandbox="off", place=place_of(request)) as opened:
        yield opened


@pytest.fixture
async def inbox(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    app = build_app(
        build_server(server.codespace, server._life),
        Admittance.to_listener("127.0.0.1", 8787, token=TOKEN),
        routes=inbox_routes(server.codespace),
    )
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1:8787/inbox",
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as client:
        yield client


@pytest.fixture
async def work_id(server: Server) -> str:
    opened = await server.handle(steering.OpenWorkCommand(workspace_id="demo", title="Tidy up"))
    return str(opened.to_wire()["work_id"])


async def draft(inbox: httpx2.AsyncClient, work_id: str, **fields: Any) -> dict[str, Any]:
    told = await inbox.post(f"/works/{work_id}/intents", json={"body": "Do it.", **fields})
    assert told.status_code == 201, told.text
    return cast(dict[str, Any], told.json())


async def claim(server: Server, work_id: str) -> dict[str, Any]:
    return (await server.handle(steering.ClaimNextCommand(work_id=work_id))).to_wire()


async def test_without_the_token_nothing_is_written_and_the_token_is_not_told(
    inbox: httpx2.AsyncClient, work_id: str
) -> None:
    """Check 20."""
    told = await inbox.post(f"/works/{work_id}/intents", json={"body": "x"}, headers={"Authorization": ""})
    assert (told.status_code, told.json()["error"]) == (401, "unauthorized")
    assert TOKEN not in told.text
    assert (await inbox.get(f"/works/{work_id}/intents")).json() == []


async def test_a_draft_is_hidden_until_it_is_queued(server: Server, inbox: httpx2.AsyncClient, work_id: str) -> None:
    """Check 21."""
    intent = await draft(inbox, work_id, delivery="next_checkpoint")
    assert intent == {
        "intent_id": intent["intent_id"], "work_id": work_id, "workspace_id": "demo", "position": 1, "revision": 1,
        "kind": "follow_up", "delivery": "next_checkpoint", "body": "Do it.", "state": "draft",
    }
    assert await claim(server, work_id) == {}
    queued = await inbox.post(f"/intents/{intent['intent_id']}/queue", json={"revision": 1})
    assert (queued.status_code, queued.json()) == (200, {**intent, "state": "queued", "revision": 2})
    status = (await server.handle(steering.AskWork(work_id=work_id))).to_wire()
    assert (status["queued"], status["claimable_now"]) == (1, 1)
    assert (await claim(server, work_id))["item"]["content"] == "Do it."


async def test_a_stop_ends_what_runs_and_its_notice_is_frozen(
    server: Server, inbox: httpx2.AsyncClient, work_id: str
) -> None:
    """Check 22."""
    started = (await server.handle(ExecCommand(workspace_id="demo", command=["sleep", "600"]))).to_wire()
    told = (await inbox.post(f"/works/{work_id}/stop", json={"reason": "Wait."})).json()
    assert (told["ok"], told["killed"], told["elsewhere"]) == (True, 1, 0)
    notice = told["intent"]
    assert (notice["kind"], notice["state"], notice["body"]) == ("stop_notice", "claimed", "Wait.")
    edit = await inbox.patch(f"/intents/{notice['intent_id']}", json={"revision": 1, "body": "Go on."})
    assert (edit.status_code, edit.json()["code"]) == (409, "INTENT_ALREADY_CLAIMED")
    read = ReadProcess(process_id=started["process_id"], wait_ms=20_000)
    while not (await server.handle(read)).to_wire()["eof"]:
        pass


async def test_works_are_told_newest_first_and_one_by_one(
    server: Server, inbox: httpx2.AsyncClient, work_id: str
) -> None:
    second = (await server.handle(steering.OpenWorkCommand(workspace_id="demo"))).to_wire()["work_id"]
    listed = (await inbox.get("/works")).json()
    assert [each["work_id"] for each in listed] == [second, work_id]
    assert (await inbox.get("/works", params={"workspace_id": "demo"})).json() == listed
    assert (await inbox.get("/works", params={"workspace_id": "other"})).json() == []
    assert (await inbox.get(f"/works/{work_id}")).json() == listed[1] == {
        "work_id": work_id, "workspace_id": "demo", "title": "Tidy up", "state": "active", "queue_revision": 1,
    }


async def test_intents_are_edited_ordered_and_taken_back(inbox: httpx2.AsyncClient, work_id: str) -> None:
    first, second = [await draft(inbox, work_id, client_key=key) for key in ("a", "b")]
    assert await draft(inbox, work_id, client_key="a") == first
    for each in (first, second):
        await inbox.post(f"/intents/{each['intent_id']}/queue", json={"revision": 1})
    order = [second["intent_id"], first["intent_id"]]
    told = await inbox.post(f"/works/{work_id}/reorder", json={"intent_ids": order})
    assert [(each["intent_id"], each["position"]) for each in told.json()] == [(order[0], 1), (order[1], 2)]
    edited = await inbox.patch(f"/intents/{order[0]}", json={"revision": 2, "body": "Now.", "delivery": "next_work"})
    assert (edited.json()["body"], edited.json()["delivery"], edited.json()["revision"]) == ("Now.", "next_work", 3)
    assert (await inbox.post(f"/intents/{order[0]}/cancel")).json()["state"] == "cancelled"
    listed = (await inbox.get(f"/works/{work_id}/intents")).json()
    assert [(each["intent_id"], each["state"]) for each in listed] == [(order[1], "queued"), (order[0], "cancelled")]


async def test_on_a_closed_work_a_draft_waits_for_the_next_one(
    server: Server, inbox: httpx2.AsyncClient, work_id: str
) -> None:
    await server.handle(FinishWorkCommand(work_id=work_id))
    intent = await draft(inbox, work_id, delivery="next_checkpoint")
    assert ("work_id" not in intent, intent["delivery"]) == (True, "next_work")
    stopped = (await inbox.post(f"/works/{work_id}/stop")).json()["intent"]
    assert ("work_id" not in stopped, stopped["state"]) == (True, "queued")


async def test_a_refusal_is_the_error_body_with_the_status_of_the_contract(
    inbox: httpx2.AsyncClient, work_id: str
) -> None:
    intent = await draft(inbox, work_id)
    path = f"/intents/{intent['intent_id']}"
    for method, where, fields, status, code in (
        ("GET", "/works/work-x", None, 404, "WORK_NOT_FOUND"),
        ("POST", "/works/work-x/intents", {"body": "x"}, 404, "WORK_NOT_FOUND"),
        ("POST", "/intents/fb-x/cancel", None, 404, "INTENT_NOT_FOUND"),
        ("POST", f"{path}/queue", {"revision": 9}, 409, "INTENT_REVISION_CONFLICT"),
        ("PATCH", path, {"revision": 9, "body": "x"}, 409, "INTENT_REVISION_CONFLICT"),
        ("POST", f"/works/{work_id}/reorder", {"intent_ids": ["fb-x"]}, 400, "INVALID_ARGUMENT"),
        ("POST", f"/works/{work_id}/intents", {}, 400, "INVALID_ARGUMENT"),
        ("POST", f"/works/{work_id}/intents", {"body": "x", "kind": "order"}, 400, "INVALID_ARGUMENT"),
        ("POST", f"/works/{work_id}/intents", {"body": "x" * 2_000_000}, 400, "INVALID_ARGUMENT"),
        ("POST", f"/works/{work_id}/intents", ["body"], 400, "INVALID_ARGUMENT"),
        ("POST", f"{path}/queue", {"revision": "1"}, 400, "INVALID_ARGUMENT"),
        ("POST", f"{path}/queue", {}, 400, "INVALID_ARGUMENT"),
    ):
        told = await inbox.request(method, where, content=None if fields is None else json.dumps(fields))
        assert (told.status_code, told.json()["code"]) == (status, code), (method, where)
    assert (await inbox.post(f"{path}/queue", content=b"{")).status_code == 400
    assert (await inbox.post(f"{path}/cancel")).status_code == 200
    told = await inbox.post(f"{path}/queue", json={"revision": 1})
    assert (told.status_code, told.json()["code"]) == (400, "INTENT_NOT_EDITABLE")


async def test_the_work_is_that_of_the_path_and_the_text_that_of_the_body(
    inbox: httpx2.AsyncClient, work_id: str
) -> None:
    told = await inbox.post(f"/works/{work_id}/intents?body=y", json={"body": "x", "work_id": "work-x"})
    assert (told.json()["work_id"], told.json()["body"]) == (work_id, "x")


async def test_what_is_written_over_http_is_on_record_as_such(
    server: Server, inbox: httpx2.AsyncClient, work_id: str
) -> None:
    await inbox.post(f"/works/{work_id}/intents", json={"body": "x"}, headers={"User-Agent": "people/1"})
    assert server.place is not None
    with LogReader(server.place, catalogue=CATALOGUE) as reader:
        entry = Timeline(reader).read_newest(Wanted(topic="steering.intent_drafted"), limit=1).entries[0]
    assert (entry.channel, entry.client) == ("http", "people/1")


async def test_a_real_server_has_the_inbox_beside_mcp_behind_one_token(tmp_path: Path) -> None:
    """Check 61."""
    (tmp_path / "ws").mkdir()
    command = http_product(tmp_path, f"demo={tmp_path / 'ws'}")
    with anyio.fail_after(SECONDS_MAX):
        async with (
            serving(command, tmp_path, token=TOKEN) as server, server.client("2025-11-25") as agent,
            server.plain() as people,
        ):
            inbox = server.url.removesuffix("/mcp") + "/inbox"
            work_id = (await ask(agent, "work_open", workspace_id="demo"))["work_id"]
            assert work_id.startswith("work-")
            written = await people.post(
                f"{inbox}/works/{work_id}/intents", json={"body": "Say it.", "delivery": "next_checkpoint"}
            )
            intent_id = written.json()["intent_id"]
            assert (await people.post(f"{inbox}/intents/{intent_id}/queue", json={"revision": 1})).status_code == 200
            status = await ask(agent, "steer_status", work_id=work_id)
            assert (status["queued"], status["claimable_now"], "body" in status) == (1, 1, False)
            item = (await ask(agent, "steer_claim_next", work_id=work_id))["item"]
            assert item["content"] == "Say it."
            held_up = await ask(agent, "work_finish", work_id=work_id)
            assert (held_up["closed"], held_up["reason"]) == (False, "pending_user_input")
            await ask(agent, "steer_complete", work_id=work_id, intent_id=intent_id)
            assert (await ask(agent, "work_finish", work_id=work_id))["closed"]
            unknown = await people.get(f"{inbox}/works", headers={"Authorization": "Bearer other"})
            assert unknown.status_code == 401
