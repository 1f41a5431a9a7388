"""The console in this process: who gets in, what an act has to show, what pages tell a browser, and hostile text."""

import re
from collections.abc import AsyncIterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import pytest

from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.rewriting import CodeEdit, EditCode
from codespace_es.command_handlers.steering import OpenWorkCommand
from support.holds import addition, ask, hold, look, script
from support.operator_side import AGENT, HERE, OPERATOR, operator_side
from support.postgres import STORES, place_of
from support.server import Server

pytestmark = pytest.mark.anyio

HOSTILE = (
    "</textarea></script><script>steal()</script>\"'><img src=x onerror=steal()> \u202egnp.exe \x1b[2J\u0007 {{7*7}}"
)


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "ws").mkdir()
    place = place_of(request)
    async with Server(tmp_path, {"demo": tmp_path / "ws"}, sandbox="off", approvals="operator", place=place) as opened:
        yield opened


@pytest.fixture
async def browser(server: Server, tmp_path: Path) -> AsyncIterator["Browser"]:
    async with operator_side(server, token="") as client:
        opened = Browser(client)
        await opened.log_in()
        yield opened


class Browser:
    """Keeps the cookie, as browsers do, and the key, as the console's script does."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.key = ""

    async def log_in(self, token: str = OPERATOR, **fields: str) -> httpx2.Response:
        answer = await self.submit("/console/login", token=token, **fields)
        found = re.search('data-key="([^"]+)"', answer.text)
        self.key = found[1] if found else ""
        return answer

    async def submit(self, path: str, origin: str = HERE, **fields: Any) -> httpx2.Response:
        return await self.client.post(path, data={"key": self.key, **fields}, headers={"Origin": origin})

    async def page(self, path: str, status: int = 200) -> str:
        answer = await self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text


# Who gets in


async def test_the_token_opens_a_session_and_its_key_is_told_once(browser: Browser) -> None:
    answer = await browser.log_in()
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert len(browser.key) > 40
    assert browser.key not in cookie
    for path in ("/console", "/console/login", "/console/works", "/console/verification"):
        text = await browser.page(path)
        assert browser.key not in text
        assert OPERATOR not in text


async def test_behind_tls_the_cookie_is_for_tls_alone(server: Server, tmp_path: Path) -> None:
    async with operator_side(server, token="", allowed=("code.example", "https://code.example")) as client:
        answer = await client.post(
            "/console/login", data={"token": OPERATOR}, headers={"Host": "code.example", "Origin": "https://code.example"}
        )
        assert "Secure" in answer.headers["set-cookie"].split("; ")


@pytest.mark.parametrize("token", ["", AGENT, OPERATOR + "x", OPERATOR[:-1], "\N{GRINNING FACE}"])
async def test_another_token_opens_nothing(server: Server, tmp_path: Path, token: str) -> None:
    async with operator_side(server, token="") as client:
        answer = await Browser(client).log_in(token)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
        assert "isn&#39;t the operator" in answer.text or "isn't the operator" in answer.text
        assert (await client.get("/console")).status_code == 303


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ("/console/works?x=1", "/console/works?x=1"), ("//evil.test", "/console"), ("https://evil.test", "/console"),
        ("/console/../../evil", "/console"), ("/consolex", "/console"), ("/console\\evil", "/console"),
        ("/console/login?next=/x", "/console"), ("/console\n", "/console"), ("javascript:steal()", "/console"),
    ],
)
async def test_after_the_login_it_goes_on_in_the_console_only(browser: Browser, wanted: str, place: str) -> None:
    answer = await browser.log_in(next=wanted)
    assert f'data-next="{place}"' in answer.text


async def test_logging_out_ends_the_session(browser: Browser) -> None:
    answer = await browser.submit("/console/logout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/login")
    assert (await browser.client.get("/console")).status_code == 303
    assert (await browser.client.get("/operator/works")).status_code == 401


async def test_a_browser_at_the_bare_address_is_shown_the_way_to_the_login(server: Server) -> None:
    for token, status in (("", 401), (OPERATOR, 401), (AGENT, 200)):
        async with operator_side(server, token=token) as client:
            answer = await client.get("/", headers={"Accept": "text/html,*/*;q=0.8"})
            assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
            assert ("www-authenticate" in answer.headers) == (status == 401)
            assert "script" not in Elements(answer.text).tags
            (way_in,) = re.findall('href="([^"]+)"', answer.text)
            led = await client.get(way_in, headers={"Authorization": ""})
            assert (led.status_code, led.headers["location"]) == (303, "/console/login?next=/console")
            assert (await client.get("/mcp", headers={"Accept": "text/html", "Authorization": ""})).status_code == 401
    async with operator_side(server, token="") as client:
        answer = await client.get("/")
        assert (answer.status_code, answer.json()) == (401, {"error": "unauthorized"})


# What an act has to show


async def test_the_cookie_alone_changes_nothing(server: Server, browser: Browser) -> None:
    """A page on another port of this host has the cookie too, and can send whatever headers it likes."""
    held = await hold(server, addition())
    for key in ("", "x" * 43, [browser.key, browser.key]):
        answer = await browser.submit(f"/console/approvals/{held}/grant", key=key)
        assert (answer.status_code, "log in again" in answer.text) == (403, True)
    assert (await look(server, held))["state"] == "pending"
    assert (await browser.client.post(f"/operator/approvals/{held}/grant", headers={"Origin": HERE})).status_code == 401


@pytest.mark.parametrize("origin", ["http://127.0.0.1:3000", "http://localhost:8787", "null"])
async def test_an_act_comes_from_a_page_of_the_console(server: Server, browser: Browser, origin: str) -> None:
    held = await hold(server, addition())
    assert (await browser.submit(f"/console/approvals/{held}/grant", origin)).status_code == 403
    assert (await look(server, held))["state"] == "pending"


async def test_a_grant_is_on_record_as_that_of_the_console(server: Server, browser: Browser) -> None:
    held = await hold(server, addition())
    answer = await browser.submit(f"/console/approvals/{held}/grant", reason="Go on.\r\nNow.")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/console/approvals/{held}?said=grant")
    told = await look(server, held)
    assert (told["state"], told["decided_by"], told["reason"]) == ("granted", "web", "Go on.\nNow.")


async def propose(server: Server, root: Path) -> str:
    """Have a tool stage a change of a file; return the action."""
    (root / "a.py").write_text("old\n")
    edit = EditCode(workspace_id="demo", ops=[CodeEdit(pat="old", out="new")], paths=["a.py"])
    return str((await ask(server, edit))["action_id"])


async def test_a_preview_is_shown_with_its_diff_and_applied(server: Server, browser: Browser, tmp_path: Path) -> None:
    action = await propose(server, tmp_path / "ws")
    newer = await propose(server, tmp_path / "ws")
    waits = await browser.page(f"/console/pending/{action}")
    assert ("the newest goes first" in waits, "/apply" in waits) == (True, False)
    answer = await browser.submit(f"/console/pending/{action}/apply")
    assert (answer.status_code, "PENDING_ACTION_MISMATCH" in answer.text) == (409, True)
    shown = await browser.page(f"/console/pending/{newer}")
    assert {"-old", "+new"} <= set(unescape(re.sub("<[^>]+>", "\n", shown)).split())
    for key in ("", "x"):
        assert (await browser.submit(f"/console/pending/{newer}/apply", key=key)).status_code == 403
    assert (tmp_path / "ws" / "a.py").read_text() == "old\n"
    answer = await browser.submit(f"/console/pending/{newer}/apply", reason="Go on.")
    place, _, said = answer.headers["location"].partition("?")
    assert (answer.status_code, place.startswith("/console/operations/op-"), said) == (303, True, "said=applied")
    assert "Applied, as this operation" in await browser.page(answer.headers["location"])
    assert (tmp_path / "ws" / "a.py").read_text() == "new\n"
    stale = await browser.page(f"/console/pending/{action}")
    assert ("STALE_PREVIEW" in stale, 'class="diff"' in stale) == (True, False)
    assert "STALE_PREVIEW" in (await browser.submit(f"/console/pending/{action}/apply")).text
    assert f"/console/timeline?operation={action}" in await browser.page(f"/console/pending/{action}")


async def test_a_preview_is_shown_and_discarded(server: Server, browser: Browser, tmp_path: Path) -> None:
    action = await propose(server, tmp_path / "ws")
    assert "a.py" in await browser.page("/console/pending")
    assert "/console/pending" in (await browser.page("/console")).partition("Previews <small>")[2]
    answer = await browser.submit(f"/console/pending/{action}/discard", reason="No.")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/pending?said=discarded")
    assert "Nothing waits to be resolved." in await browser.page("/console/pending")
    answer = await browser.submit(f"/console/pending/{action}x/discard")
    assert (answer.status_code, "That didn't work" in answer.text) == (409, True)


async def test_ids_are_cut_behind_the_first_group_of_their_uuid(server: Server, browser: Browser) -> None:
    await hold(server, addition("a.txt"))
    await ask(server, OpenWorkCommand(workspace_id="demo"))
    patch = "*** Begin Patch\n*** Add File: b.txt\n+b\n*** End Patch"
    await ask(server, ApplyPatch(workspace_id="demo", patch=patch, check_only=True))
    shown = re.findall(r'class="mono[^>]*>((?:op|appr|work)-[^<]+)</', await browser.page("/console"))
    assert {each.partition("-")[0] for each in shown} == {"op", "appr", "work"}
    assert [each for each in shown if not re.fullmatch(r"[a-z]+-[0-9a-f]{8}", each)] == []


async def test_a_refused_patch_is_listed_with_its_reason(server: Server, browser: Browser) -> None:
    refused = await ask(server, ApplyPatch(workspace_id="demo", patch="hello", check_only=True))
    assert refused["code"] == "INVALID_PATCH"
    row = re.search(rf'/operations/{refused["operation_id"]}">([^<]+)</a>', await browser.page("/console"))
    assert row is not None
    assert unescape(row[1]) == refused["message"]


# Refusals


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/console/approvals/appr-x", 404), ("/console/operations/store", 404), ("/console/processes/proc-x", 404),
        ("/console/works/work-x", 404), ("/console/timeline?after=x", 400), ("/console/timeline?after=1&before=2", 400),
    ],
)
async def test_what_isnt_there_is_a_page_that_says_so(browser: Browser, path: str, status: int) -> None:
    text = await browser.page(path, status)
    assert "<h1>That didn't work</h1>" in text


async def test_a_form_that_says_nonsense_changes_nothing(server: Server, browser: Browser) -> None:
    work = (await ask(server, OpenWorkCommand(workspace_id="demo")))["work_id"]
    for path, fields in (
        ("write", {"body": "x", "kind": "order", "delivery": "next_checkpoint"}), ("write", {}),
        ("reorder", {"intent_ids": ["fb-x"]}), ("intents/fb-x/queue", {"revision": "9" * 30}),
        ("intents/fb-x/queue", {"revision": "-1"}), ("intents/fb-x/edit", {}),
    ):
        answer = await browser.submit(f"/console/works/{work}/{path}", **fields)
        assert (answer.status_code, "That didn't work" in answer.text) == (400, True), path
    answer = await browser.client.post(
        f"/console/works/{work}/stop", content=b"key=%ff", headers={"Origin": HERE}
    )
    assert answer.status_code == 400


# What pages tell a browser


async def test_every_page_lets_only_the_consoles_script_run(browser: Browser) -> None:
    for path in ("/console", "/console/login", "/console/timeline", "/console/approvals/appr-x", "/console/works"):
        answer = await browser.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
        own_script = r" src=\"/console/static/console\.js\?v=\w+\" defer>"
        assert not re.search(rf"<script(?!{own_script})|\son\w+=|style=", answer.text)
        assert not re.search(r"(?:src|href|action)=\"(?!/console|\?|#)", answer.text)


class Elements(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        assert not [name for name, _value in attrs if name.startswith("on")]


async def test_hostile_text_is_text(server: Server, browser: Browser, tmp_path: Path) -> None:
    """Labels, files, commands, reasons, keys: all that an agent or a file can say stays what it says."""
    work = (await ask(server, OpenWorkCommand(workspace_id="demo", title=HOSTILE)))["work_id"]
    await browser.submit(f"/console/works/{work}/write", body=HOSTILE, kind="note", delivery="next_checkpoint")
    await browser.submit(f"/console/works/{work}/write", body=HOSTILE, kind="note", delivery="next_work", queue="y")
    line = HOSTILE.replace("\x1b", "").replace("\x07", "")
    held = await hold(server, addition("a<b>.txt", line, key=HOSTILE[:40]))
    command = await hold(server, script(HOSTILE.replace("\x00", "")))
    applied = (await ask(server, addition("c&<i>.txt", line), "cli"))["operation_id"]
    process = (await ask(server, script(f"cat <<'END'\n{HOSTILE}\nEND\n"), "cli"))["process_id"]
    await browser.client.get(f"/operator/processes/{process}/output?wait_ms=10000")
    pages = [
        "/console", "/console/approvals", f"/console/approvals/{held}", f"/console/approvals/{command}",
        "/console/works", f"/console/works/{work}", "/console/timeline", f"/console/operations/{applied}",
        "/console/processes", f"/console/processes/{process}",
        "/console/timeline?text=%22%3E%3Cscript%3Esteal()%3C/script%3E",
    ]
    seen = ""
    for path in pages:
        text = await browser.page(path)
        tags = Elements(text).tags
        assert tags.count("script") == 1, path
        assert "img" not in tags, path
        assert not {"\u202e", "\x1b", "\x07"} & set(re.sub("<textarea.*?</textarea>", "", text, flags=re.DOTALL)), path
        seen += text
    assert "\\u202egnp.exe" in seen
    assert "{{7*7}}" in seen
    answer = await browser.submit(f"/console/operations/{applied}/preview")
    assert Elements(answer.text).tags.count("script") == 1


async def test_what_was_written_comes_back_as_it_was_when_it_is_edited(server: Server, browser: Browser) -> None:
    work = (await ask(server, OpenWorkCommand(workspace_id="demo")))["work_id"]
    body = "\nfirst\n\tsecond \u202e 👩\u200d🚀 </textarea>\n"
    await browser.submit(f"/console/works/{work}/write", body=body, kind="note", delivery="next_checkpoint")
    text = await browser.page(f"/console/works/{work}")
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.DOTALL)
    assert found is not None
    assert found[1].replace("&lt;", "<").replace("&gt;", ">") == body


async def test_a_log_in_memory_has_every_page(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    async with Server(tmp_path, {"demo": tmp_path / "ws"}, is_ephemeral=True) as server:
        operation = (await ask(server, addition()))["operation_id"]
        async with operator_side(server, token="") as client:
            browser = Browser(client)
            await browser.log_in()
            for path in ("/console", "/console/timeline", f"/console/operations/{operation}"):
                assert "new.txt" in await browser.page(path)
            assert (await browser.submit("/console/verification")).status_code == 303
            assert "The log was whole and unchanged" in await browser.page("/console/verification")
