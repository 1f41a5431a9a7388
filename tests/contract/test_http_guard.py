"""The guard in this process: who is let in, by exact comparison, and that the app behind it has seen nobody else."""

import json
from collections.abc import Iterable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http import guard
from adapters.http.guard import Admittance, Guard
from adapters.http.open_requests import OpenRequests

pytestmark = pytest.mark.anyio

TOKEN = "the-token"
PORT = 8787
HOST = f"127.0.0.1:{PORT}"
ADMITTANCE = Admittance.to_listener(
    "127.0.0.1", PORT, token=TOKEN, allowed_hosts=["code.example"], allowed_origins=["https://code.example"]
)


class App:
    """Takes a request's body, and answers 200."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"served"})


class Answer:
    """What came back, and whether the app was asked."""

    def __init__(self, sent: list[dict[str, Any]], app: App) -> None:
        self.status: int = sent[0]["status"]
        self.headers = dict(sent[0]["headers"])
        self.body: bytes = b"".join(message.get("body", b"") for message in sent[1:])
        self.bodies = app.bodies

    @property
    def error(self) -> str:
        error: str = json.loads(self.body)["error"]
        return error


async def ask(
    headers: Iterable[tuple[str, str]], *, chunks: Iterable[bytes] = (b"{}",), method: str = "POST",
    admittance: Admittance = ADMITTANCE,
) -> Answer:
    app, sent = App(), list[dict[str, Any]]()
    incoming = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    incoming.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> dict[str, Any]:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "method": method, "path": "/mcp", "headers": raw}
    await Guard(app, admittance)(scope, receive, send)
    return Answer(sent, app)


def headers(
    host: str = HOST, origin: str | None = None, token: str | None = f"Bearer {TOKEN}"
) -> list[tuple[str, str]]:
    sent = [("Host", host)]
    sent += [] if origin is None else [("Origin", origin)]
    return sent + ([] if token is None else [("Authorization", token)])


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8787", "localhost:8787", "LOCALHOST:8787", "[::1]:8787", "localhost", "code.example",
             "Code.Example"],
)
async def test_the_servers_own_names_and_those_that_were_configured_are_let_in(host: str) -> None:
    answer = await ask(headers(host))
    assert (answer.status, answer.body, answer.bodies) == (200, b"served", [b"{}"])


@pytest.mark.parametrize(
    "host", ["evil.test", "127.0.0.1:80.evil.test", "localhost:1", "localhost:8787.evil.test",
             "127.0.0.1:8787@evil.test", "code.example:8787", "x.code.example", "127.0.0.2:8787", "", " 127.0.0.1:8787",
             "localhost.:8787"],
)
async def test_any_other_host_is_refused_whoever_shows_the_token(host: str) -> None:
    answer = await ask(headers(host))
    assert (answer.status, answer.error, answer.bodies) == (421, "host_not_allowed", [])


@pytest.mark.parametrize(
    "origin", [f"http://127.0.0.1:{PORT}", f"http://localhost:{PORT}", f"HTTP://LOCALHOST:{PORT}", "https://code.example"]
)
async def test_the_servers_own_origin_and_those_that_were_configured_are_let_in(origin: str) -> None:
    assert (await ask(headers(origin=origin))).status == 200


@pytest.mark.parametrize(
    "origin", ["null", "", "https://evil.test", f"http://127.0.0.1:{PORT}@evil.test", "http://127.0.0.1:1",
               f"http://127.0.0.1:{PORT}.evil.test", f"https://127.0.0.1:{PORT}", "https://code.example.evil.test",
               "https://code.example:8443", "http://code.example", f"http://127.0.0.1:{PORT}/"],
)
async def test_any_other_origin_is_refused_whoever_shows_the_token(origin: str) -> None:
    answer = await ask(headers(origin=origin))
    assert (answer.status, answer.error, answer.bodies) == (403, "origin_not_allowed", [])


@pytest.mark.parametrize(
    "token", [None, "", TOKEN, "Bearer", "Bearer ", f"bearer {TOKEN}", f"Bearer {TOKEN} ", f"Bearer  {TOKEN}",
              f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer \xff\xe9"],
)
async def test_without_the_exact_token_it_is_401_and_the_token_is_not_told(token: str | None) -> None:
    """Checks 19, 82."""
    answer = await ask(headers(token=token))
    assert (answer.status, answer.body, answer.bodies) == (401, b'{"error":"unauthorized"}', [])
    assert answer.headers[b"www-authenticate"] == b"Bearer"


@pytest.mark.parametrize("doubled", ["Host", "Origin", "Authorization"])
async def test_a_header_that_is_there_twice_counts_as_none(doubled: str) -> None:
    sent = headers(origin=f"http://{HOST}")
    assert (await ask(sent)).status == 200
    sent += [(name, value) for name, value in sent if name == doubled]
    answer = await ask(sent)
    assert answer.status in (401, 403, 421)
    assert answer.bodies == []


@given(st.text(st.characters(max_codepoint=255)), st.text(st.characters(max_codepoint=255)), st.text(max_size=40))
def test_whatever_isnt_on_a_list_is_refused_and_never_an_error(host: str, origin: str, token: str) -> None:
    secret = token.encode().decode("latin-1")
    if secret == f"Bearer {TOKEN}":
        return
    statuses = []
    for sent in (headers(host), headers(origin=origin), headers(token=secret)):
        answer = anyio.run(ask, sent)
        statuses.append(answer.status)
        assert answer.bodies == []
    assert statuses == [421, 403, 401]


async def test_without_a_token_nobody_has_to_show_one() -> None:
    admittance = Admittance.to_listener("127.0.0.1", PORT)
    assert (await ask(headers(token=None), admittance=admittance)).status == 200
    assert (await ask(headers("evil.test", token=None), admittance=admittance)).status == 421


async def test_a_wildcard_address_is_nobodys_name() -> None:
    for address in ("0.0.0.0", "::"):
        admittance = Admittance.to_listener(address, PORT, token=TOKEN)
        assert (await ask(headers(f"{address}:{PORT}"), admittance=admittance)).status == 421
        assert (await ask(headers(), admittance=admittance)).status == 200
    bound = Admittance.to_listener("fe80::1", 80, token=TOKEN)
    assert (await ask(headers("[fe80::1]"), admittance=bound)).status == 200


SMALL = Admittance(ADMITTANCE.hosts, ADMITTANCE.origins, TOKEN, body_bytes_max=100)


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100])
async def test_a_body_up_to_the_limit_is_passed_on_whole(chunk_bytes: int) -> None:
    body = bytes(range(32, 132))
    chunks = [body[at:at + chunk_bytes] for at in range(0, 100, chunk_bytes)]
    answer = await ask([*headers(), ("Content-Length", "100")], chunks=chunks, admittance=SMALL)
    assert (answer.status, answer.bodies) == (200, [body])


@pytest.mark.parametrize("declared", [None, "101", "99999999999999999999", "5", "x", "-1"])
async def test_a_larger_body_is_refused_with_the_limit_however_it_is_announced(declared: str | None) -> None:
    sent = headers() + ([] if declared is None else [("Content-Length", declared)])
    answer = await ask(sent, chunks=[b"x" * 50, b"x" * 50, b"x"], admittance=SMALL)
    assert (answer.status, answer.error, answer.bodies) == (413, "body_too_large", [])
    assert "100 bytes" in json.loads(answer.body)["message"]


async def test_whoever_has_no_token_learns_nothing_of_the_limit() -> None:
    answer = await ask([*headers(token=None), ("Content-Length", "101")], chunks=[b"x" * 101], admittance=SMALL)
    assert answer.status == 401


@pytest.mark.parametrize("body", [rb'{"a":"\ud800"}', rb'{"a":"\udc00x"}', rb'{"a":"\ud83d\n"}'])
async def test_half_a_character_is_refused(body: bytes) -> None:
    answer = await ask(headers(), chunks=[body])
    assert (answer.status, answer.error, answer.bodies) == (400, "not_text", [])


@pytest.mark.parametrize("body", [rb'{"a":"\ud83d\ude00"}', rb'{"a":"\\ud800"}', b"no json \\ud800", b"\xff\xfe"])
async def test_whole_characters_are_passed_on_as_other_faults_are(body: bytes) -> None:
    assert (await ask(headers(), chunks=[body])).bodies == [body]


async def test_a_body_that_doesnt_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_BODY_SECONDS_MAX", 0.01)
    monkeypatch.setattr(guard, "_DISCARDED_SECONDS_MAX", 0.01)
    app, sent = App(), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers()]
    with anyio.fail_after(5):
        await Guard(app, ADMITTANCE)({"type": "http", "method": "POST", "path": "/mcp", "headers": raw}, receive, send)
    assert (sent[0]["status"], app.bodies) == (408, [])


async def test_a_client_that_goes_away_before_its_request_is_whole_has_asked_for_nothing() -> None:
    app, sent = App(), list[Any]()
    incoming: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return incoming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers()]
    await Guard(app, ADMITTANCE)({"type": "http", "method": "POST", "path": "/mcp", "headers": raw}, receive, send)
    assert (sent, app.bodies) == ([], [])


async def test_the_end_finishes_what_is_open_and_answers_what_comes_after_it() -> None:
    """A stream gets its last chunk, at once; who asked before, the answer; a request that has none gets 503."""
    sent: dict[str, list[dict[str, Any]]] = {"stream": [], "asked": [], "silent": [], "late": []}
    has_begun, stream_is_over, answers = anyio.Event(), anyio.Event(), anyio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "stream":
            headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            has_begun.set()
        if scope["path"] == "asked":
            await answers.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"answer"})
            return
        await anyio.sleep_forever()

    requests = OpenRequests(app)

    async def serve(path: str, method: str) -> None:
        async def send(message: Any) -> None:
            sent[path].append(message)

        await requests({"type": "http", "method": method, "path": path}, anyio.sleep_forever, send)
        if path == "stream":
            stream_is_over.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, "stream", "GET")
            tasks.start_soon(serve, "asked", "GET")
            tasks.start_soon(serve, "silent", "POST")
            await has_begun.wait()
            requests.refuse()
            await stream_is_over.wait()
            await serve("late", "POST")
            answers.set()
            await requests.end()
    assert [message.get("body") for message in sent["asked"]] == [None, b"answer"]
    assert [message.get("body") for message in sent["stream"]] == [None, b"one", b""]
    for path in ("silent", "late"):
        assert [message.get("status") for message in sent[path]] == [503, None]
        assert json.loads(sent[path][1]["body"])["error"] == "server_ending"
