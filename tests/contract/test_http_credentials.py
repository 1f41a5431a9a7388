"""Two tokens and a browser's session: what opens what, through the real guard, and that nothing opens anything else."""

from typing import Any

import httpx2
import pytest

from adapters.http.credentials import LOGIN_BYTES_MAX
from adapters.http.guard import Admittance, Guard
from adapters.http.sessions import SESSION_SECONDS_MAX, Sessions

pytestmark = pytest.mark.anyio

TOKEN, OPERATOR = "the-agents", "the-operators"
HERE = "http://127.0.0.1:8787"
COOKIE = "codespace_operator_8787"
ADMITTANCE = Admittance.to_listener(
    "127.0.0.1", 8787, token=TOKEN, operator_token=OPERATOR, allowed_origins=["https://other.example"]
)


async def serve(scope: Any, receive: Any, send: Any) -> None:
    """Answer 200 to whoever is let in."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def caller(sessions: Sessions, admittance: Admittance = ADMITTANCE) -> httpx2.AsyncClient:
    guard = Guard(serve, admittance, sessions)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=guard), base_url=HERE)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def status(method: str, path: str, admittance: Admittance = ADMITTANCE, **headers: str) -> int:
    sessions = Sessions()
    if headers.pop("session", None):
        headers["Cookie"] = f"{COOKIE}={sessions.open().cookie}"
    async with caller(sessions, admittance) as client:
        return (await client.request(method, path, headers=headers)).status_code


@pytest.mark.parametrize("path", ["/mcp", "/inbox/works", "/", "/operators", "/consoles", "//operator/works"])
async def test_the_operators_token_and_sessions_open_nothing_of_the_agents(path: str) -> None:
    assert await status("POST", path, **bearer(TOKEN)) == 200
    assert await status("POST", path, **bearer(OPERATOR)) == 401
    assert await status("GET", path, session="yes") == 401


@pytest.mark.parametrize("path", ["/operator", "/operator/works", "/operator//x", "/operator/mcp"])
async def test_the_agents_token_opens_nothing_of_the_operators(path: str) -> None:
    for method in ("GET", "POST", "PATCH"):
        assert await status(method, path, **bearer(OPERATOR)) == 200
        for wrong in (TOKEN, "", OPERATOR[:-1], OPERATOR + "x"):
            assert await status(method, path, **bearer(wrong)) == 401
        assert await status(method, path, Authorization=OPERATOR) == 401


async def test_a_session_reads_the_operators_api_and_changes_nothing_there() -> None:
    assert await status("GET", "/operator/works", session="yes") == 200
    for method in ("POST", "PATCH", "PUT", "DELETE"):
        assert await status(method, "/operator/works", session="yes", Origin=HERE) == 401
    assert await status("GET", "/operator/works", session="yes", **bearer("wrong")) == 401


async def test_a_page_asks_to_log_in_and_says_where_to_go_on() -> None:
    async with caller(Sessions()) as client:
        told = await client.get("/console/timeline?text=a%20b&x=%2F%2Fevil")
    assert (told.status_code, told.headers["location"]) == (
        303, "/console/login?next=/console/timeline%3Ftext%3Da%2520b%26x%3D%252F%252Fevil"
    )


@pytest.mark.parametrize("path", ["/console/login", "/console/static/console.css"])
async def test_what_a_login_needs_is_open(path: str) -> None:
    assert await status("GET", path) == 200


@pytest.mark.parametrize("path", ["/console", "/console/login/x", "/console/loginx", "/console/staticx"])
async def test_nothing_else_is(path: str) -> None:
    assert await status("GET", path) == 303
    assert await status("POST", path, Origin=HERE) == 401
    assert await status("GET", path, **bearer(OPERATOR)) == 303
    assert await status("GET", path, session="yes") == 200


@pytest.mark.parametrize("path", ["/console/login", "/console/approvals/x/grant"])
async def test_what_changes_something_comes_from_a_page_of_this_server(path: str) -> None:
    assert await status("POST", path, session="yes", Origin=HERE) == 200
    for origin in ("http://127.0.0.1:3000", "http://localhost:8787", "https://other.example", "null"):
        assert await status("POST", path, session="yes", Origin=origin) == 403, origin
    assert await status("POST", path, session="yes") == 403


async def test_anybody_may_try_to_log_in_but_not_with_much() -> None:
    async with caller(Sessions()) as client:
        for size, expected in ((LOGIN_BYTES_MAX, 200), (LOGIN_BYTES_MAX + 1, 413)):
            told = await client.post("/console/login", content=b"x" * size, headers={"Origin": HERE})
            assert told.status_code == expected


async def test_without_an_operators_token_its_paths_are_like_any_other() -> None:
    off = Admittance.to_listener("127.0.0.1", 8787, token=TOKEN)
    for path in ("/operator/works", "/console", "/console/login"):
        assert await status("GET", path, off, **bearer(TOKEN)) == 200  # and the app has nothing there
        assert await status("GET", path, off, session="yes") == 401


async def test_no_answer_tells_a_token() -> None:
    async with caller(Sessions()) as client:
        for path in ("/operator/works", "/console", "/mcp"):
            told = await client.get(path, headers=bearer(OPERATOR[:-1]))
            assert OPERATOR[:-1] not in told.text + str(told.headers)


def test_a_session_needs_both_its_secrets_to_act_and_one_to_look() -> None:
    sessions = Sessions()
    one, other = sessions.open(), sessions.open()
    assert sessions.may_look(one.cookie)
    assert sessions.may_act(one.cookie, one.key)
    assert not sessions.may_act(one.cookie, other.key)
    assert not sessions.may_act(one.cookie, one.cookie)
    assert not sessions.may_act(one.cookie, "")
    assert not sessions.may_act(None, one.key)
    sessions.close(one.cookie)
    assert not sessions.may_look(one.cookie)
    assert sessions.may_look(other.cookie)


def test_sessions_end_by_time_and_the_oldest_by_number() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first = sessions.open()
    now[0] = SESSION_SECONDS_MAX - 1
    assert sessions.may_look(first.cookie)
    now[0] = SESSION_SECONDS_MAX
    assert not sessions.may_look(first.cookie)
    opened = [sessions.open() for _ in range(65)]
    assert [sessions.may_look(each.cookie) for each in opened] == [False, *[True] * 64]


def test_a_sessions_secrets_are_in_no_description_of_it() -> None:
    sessions = Sessions()
    opened = sessions.open()
    assert opened.cookie not in repr(opened)
    assert opened.key not in repr(opened)


async def test_without_an_operators_token_the_front_page_leads_nowhere() -> None:
    async with caller(Sessions(), Admittance.to_listener("127.0.0.1", 8787, token=TOKEN)) as client:
        answer = await client.get("/", headers={"Accept": "text/html"})
        assert (answer.status_code, "href" in answer.text, "no console" in answer.text) == (401, False, True)
        assert (await client.post("/", headers={"Accept": "text/html"})).json() == {"error": "unauthorized"}
