"""The operator's API in this process: every act through the door, every look at the log, refusals by their code."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from codespace_es.command_handlers.observing import ReadProcess
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.command_handlers.rewriting import CodeEdit, EditCode
from codespace_es.command_handlers.steering import ClaimNextCommand, OpenWorkCommand
from codespace_es.vocabulary.event import Channel
from support.holds import addition, ask, hold, resume, script
from support.operator_side import AGENT, OPERATOR, operator_side
from support.postgres import STORES, place_of
from support.server import Server

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "ws").mkdir()
    place = place_of(request)
    async with Server(tmp_path, {"demo": tmp_path / "ws"}, sandbox="off", approvals="operator", place=place) as opened:
        yield opened


@pytest.fixture
async def operator(server: Server, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with operator_side(server) as client:
        yield client


async def get(client: httpx2.AsyncClient, path: str, **query: Any) -> Any:
    told = await client.get(path, params=query)
    assert told.status_code == 200, told.text
    return told.json()


async def post(client: httpx2.AsyncClient, path: str, **body: Any) -> Any:
    told = await client.post(path, json=body)
    assert told.status_code in (200, 201), told.text
    return told.json()


async def refused(client: httpx2.AsyncClient, method: str, path: str, **body: Any) -> tuple[int, str]:
    told = await client.request(method, path, json=body or None)
    return told.status_code, told.json()["code"]


async def applied(server: Server, path: str = "a.txt", text: str = "one") -> str:
    """Have a patch applied by the operator's own hand; return the operation."""
    told = await ask(server, addition(path, text), "cli")
    assert told["status"] == "applied", told
    return str(told["operation_id"])


# Approvals


async def test_a_hold_is_listed_shown_with_its_diff_and_granted_by_http(
    server: Server, operator: httpx2.AsyncClient, tmp_path: Path
) -> None:
    held = await hold(server, addition("new.txt", "hello"))
    listed = await get(operator, "/operator/approvals")
    assert [(each["approval_id"], each["state"]) for each in listed] == [(held, "pending")]
    shown = await get(operator, f"/operator/approvals/{held}")
    assert "+hello" in shown["diff"]
    granted = await post(operator, f"/operator/approvals/{held}/grant", reason="Go on.")
    assert granted == {"approval_id": held, "state": "granted"}
    assert (await resume(server, held))["apply_patch"]["status"] == "applied"
    assert (tmp_path / "ws" / "new.txt").read_text() == "hello\n"
    shown = await get(operator, f"/operator/approvals/{held}")
    assert (shown["state"], shown["decided_by"], shown["reason"]) == ("consumed", "http", "Go on.")
    assert await get(operator, "/operator/approvals") == []


async def test_a_denied_hold_never_runs(server: Server, operator: httpx2.AsyncClient, tmp_path: Path) -> None:
    held = await hold(server, script("touch ran"))
    assert (await get(operator, f"/operator/approvals/{held}"))["command"] == ["sh", "-c", "touch ran"]
    await post(operator, f"/operator/approvals/{held}/deny")
    assert (await resume(server, held))["code"] == "APPROVAL_CONFLICT"
    assert not (tmp_path / "ws" / "ran").exists()
    assert await refused(operator, "POST", f"/operator/approvals/{held}/grant") == (409, "APPROVAL_CONFLICT")


async def test_neither_the_agents_token_nor_a_field_of_the_body_grants(
    server: Server, operator: httpx2.AsyncClient, tmp_path: Path
) -> None:
    held = await hold(server, addition())
    async with operator_side(server, token=AGENT) as agent:
        assert (await agent.post(f"/operator/approvals/{held}/grant")).status_code == 401
    await post(operator, f"/operator/approvals/{held}/deny", decision="grant", approval_id="appr-x")
    assert (await get(operator, f"/operator/approvals/{held}"))["state"] == "denied"


@pytest.mark.parametrize("channel", ["cli", "web", "http"])
async def test_what_the_operator_asks_for_himself_is_not_held(server: Server, channel: Channel) -> None:
    done = await ask(server, addition("new.txt"), channel)
    assert done["status"] == "applied"
    assert (await ask(server, RevertOperation(operation_id=done["operation_id"]), channel))["status"] == "applied"
    assert "process_id" in await ask(server, script("exit 0"), channel)


@pytest.mark.parametrize("channel", ["mcp", "elicitation"])
async def test_whatever_comes_through_a_client_is_held(server: Server, channel: Channel) -> None:
    assert (await ask(server, addition("new.txt"), channel))["code"] == "APPROVAL_REQUIRED"
    assert (await ask(server, script("exit 0"), channel))["code"] == "APPROVAL_REQUIRED"


# Works and intents


async def test_the_inbox_is_there_too_and_the_operator_can_release_a_claim(
    server: Server, operator: httpx2.AsyncClient
) -> None:
    work = (await ask(server, OpenWorkCommand(workspace_id="demo")))["work_id"]
    drafted = await post(
        operator, f"/operator/works/{work}/intents", body="Do it.", delivery="next_checkpoint"
    )
    intent = f"/operator/intents/{drafted['intent_id']}"
    assert (await post(operator, f"{intent}/queue", revision=1))["state"] == "queued"
    assert (await ask(server, ClaimNextCommand(work_id=work)))["item"]["content"] == "Do it."
    assert await refused(operator, "PATCH", intent, revision=2, body="x") == (409, "INTENT_ALREADY_CLAIMED")
    assert await refused(operator, "POST", f"{intent}/queue", revision=2) == (409, "INTENT_NOT_EDITABLE")
    assert (await post(operator, f"{intent}/release"))["state"] == "queued"
    assert [each["state"] for each in await get(operator, f"/operator/works/{work}/intents")] == ["queued"]


# What tools propose


async def propose(server: Server, root: Path) -> str:
    """Have a tool stage a change of a file; return the action."""
    (root / "a.py").write_text("old\n")
    edit = EditCode(workspace_id="demo", ops=[CodeEdit(pat="old", out="new")], paths=["a.py"])
    return str((await ask(server, edit))["action_id"])


async def test_what_a_tool_proposes_is_listed_and_applied_or_discarded_without_a_hold(
    server: Server, operator: httpx2.AsyncClient, tmp_path: Path
) -> None:
    root = tmp_path / "ws"
    action = await propose(server, root)
    listed = await get(operator, "/operator/pending")
    assert [(each["id"], each["is_next"], each["files"][0]["path"]) for each in listed] == [(action, True, "a.py")]
    done = await post(operator, f"/operator/pending/{action}/discard", reason="Not now.", action="apply")
    assert (done["outcome"], done["reason"], done["next"]) == ("discarded", "Not now.", None)
    assert (root / "a.py").read_text() == "old\n"
    action = await propose(server, root)
    told = await get(operator, f"/operator/pending/{action}")
    assert (told["action"]["id"], "\n-old\n+new\n" in told["diff"], told["shown"]["files_touched"]) == (action, True, 1)
    assert (await post(operator, f"/operator/pending/{action}/apply"))["outcome"] == "applied"
    assert await refused(operator, "GET", f"/operator/pending/{action}") == (409, "NO_PENDING_ACTION")
    assert (root / "a.py").read_text() == "new\n"
    assert await get(operator, "/operator/pending") == []
    assert (await refused(operator, "POST", "/operator/pending/act-x/apply"))[0] == 409


# Operations


async def test_an_operation_is_told_with_its_diff_and_undone_without_a_hold(
    server: Server, operator: httpx2.AsyncClient, tmp_path: Path
) -> None:
    done = await applied(server, "a.txt", "one")
    told = await get(operator, f"/operator/operations/{done}")
    assert (told["report"]["status"], told["began"], told["client"]) == ("applied", "cli", "tests/1")
    assert [(each["planned"]["path"], "+one" in each["diff"]) for each in told["files"]] == [("a.txt", True)]
    preview = await post(operator, f"/operator/operations/{done}/undo", check_only=True)
    assert (preview["status"], "-one" in preview["diff"]) == ("checked", True)
    assert (tmp_path / "ws" / "a.txt").exists()
    undone = await post(operator, f"/operator/operations/{done}/undo")
    assert (undone["status"], undone["reverts"]) == ("applied", done)
    assert not (tmp_path / "ws" / "a.txt").exists()
    assert (await get(operator, f"/operator/operations/{done}"))["report"]["reverted_by"] == undone["operation_id"]
    assert await refused(operator, "POST", f"/operator/operations/{done}/undo") == (409, "REVERT_CONFLICT")


async def test_what_was_changed_since_is_not_undone(
    server: Server, operator: httpx2.AsyncClient, tmp_path: Path
) -> None:
    done = await applied(server)
    (tmp_path / "ws" / "a.txt").write_text("other\n")
    assert await refused(operator, "POST", f"/operator/operations/{done}/undo") == (409, "REVERT_CONFLICT")
    assert (tmp_path / "ws" / "a.txt").read_text() == "other\n"


# Processes


async def test_a_process_is_told_with_its_output_and_ended(server: Server, operator: httpx2.AsyncClient) -> None:
    process = (await ask(server, script("echo hello; exec sleep 600"), "cli"))["process_id"]
    assert [each["process_id"] for each in await get(operator, "/operator/processes")] == [process]
    path = f"/operator/processes/{process}"
    read = await get(operator, f"{path}/output", wait_ms=20_000)
    assert (read["chunk"], read["eof"]) == ("hello\n", False)
    assert (await get(operator, f"{path}/output", cursor=read["cursor"]))["chunk"] == ""
    await post(operator, f"{path}/terminate", signal="KILL")
    while not (await ask(server, ReadProcess(process_id=process, cursor=6, wait_ms=20_000)))["eof"]:
        pass
    assert (await get(operator, path))["termination"] == "terminated"
    assert await get(operator, "/operator/processes") == []


# Looking at the log


async def test_the_timeline_is_read_page_by_page_both_ways(server: Server, operator: httpx2.AsyncClient) -> None:
    for number in range(6):
        await applied(server, f"{number}.txt")
    newest = await get(operator, "/operator/timeline", limit=5)
    head = newest["next_after"]
    assert [each["position"] for each in newest["entries"]] == list(range(head - 4, head + 1))
    earlier = await get(operator, "/operator/timeline", limit=5, before=newest["earlier_before"])
    assert [each["position"] for each in earlier["entries"]] == list(range(head - 9, head - 4))
    forward = await get(operator, "/operator/timeline", after=head - 10, limit=5)
    assert (forward["entries"], forward["next_after"]) == (earlier["entries"], head - 5)
    first = await get(operator, "/operator/timeline", before=3, limit=5)
    assert ([each["position"] for each in first["entries"]], "earlier_before" in first) == ([1, 2], False)


async def test_the_timeline_is_narrowed(server: Server, operator: httpx2.AsyncClient) -> None:
    one = await applied(server, "one.txt")
    await applied(server, "two.txt")
    for query, expected in (
        ({"topic": "operation.finished"}, 2), ({"operation": one}, 2), ({"text": "two.txt"}, 1),
        ({"workspace": "x"}, 0), ({"session": "nobody"}, 0), ({"topic": "operation", "session": "tests/"}, 4),
    ):
        entries = (await get(operator, "/operator/timeline", **query))["entries"]
        assert len(entries) == expected, (query, entries)


async def test_the_state_of_any_moment_is_told(server: Server, operator: httpx2.AsyncClient) -> None:
    await applied(server)
    now = await get(operator, "/operator/state")
    assert now["operations"] == {"applied": 1}
    assert now["position"] == now["head_position"]
    before = await get(operator, "/operator/state", position=now["position"] - 1)
    assert (before["operations"], [each["kind"] for each in before["open"]]) == ({}, ["instance", "operation"])
    assert (await get(operator, "/operator/state", position=0))["aggregates"] == {}
    assert (await get(operator, "/operator/state", position=10**9))["position"] == now["head_position"]


async def test_the_log_is_verified_when_somebody_asks(server: Server, operator: httpx2.AsyncClient) -> None:
    await applied(server)
    assert await get(operator, "/operator/verification") == {"state": "never"}
    found = await post(operator, "/operator/verification")
    assert (found["state"], found["report"]["is_ok"], found["report"]["findings"]) == ("done", True, [])
    assert await get(operator, "/operator/verification") == found


async def test_a_log_in_memory_can_be_looked_at_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    in_memory = Server(tmp_path, {"demo": tmp_path / "ws"}, is_ephemeral=True)
    async with in_memory as server, operator_side(server) as operator:
        operation = await applied(server)
        topics = [each["topic"] for each in (await get(operator, "/operator/timeline"))["entries"]]
        assert topics[-2:] == ["operation.minted.v1", "operation.finished.v1"]
        assert (await get(operator, "/operator/state"))["position"] == len(topics)
        assert "+one" in (await get(operator, f"/operator/operations/{operation}"))["files"][0]["diff"]
        found = await post(operator, "/operator/verification")
        assert (found["report"]["is_ok"], found["report"]["events"]) == (True, len(topics))
        await applied(server, "b.txt")


# Refusals


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/operator/approvals/appr-x", 404, "APPROVAL_NOT_FOUND"),
        ("GET", "/operator/approvals/store", 404, "APPROVAL_NOT_FOUND"),
        ("GET", "/operator/approvals/appr-%00", 404, "APPROVAL_NOT_FOUND"),
        ("POST", "/operator/approvals/op-x/grant", 404, "APPROVAL_NOT_FOUND"),
        ("GET", "/operator/operations/op-x", 404, "OPERATION_NOT_FOUND"),
        ("GET", "/operator/operations/store", 404, "OPERATION_NOT_FOUND"),
        ("GET", "/operator/operations/op-%00", 404, "OPERATION_NOT_FOUND"),
        ("POST", "/operator/operations/op-x/undo", 404, "OPERATION_NOT_FOUND"),
        ("GET", "/operator/processes/proc-x", 404, "PROCESS_NOT_FOUND"),
        ("GET", "/operator/processes/proc-%00", 404, "PROCESS_NOT_FOUND"),
        ("GET", "/operator/processes/proc-x/output?cursor=-1", 400, "INVALID_ARGUMENT"),
        ("GET", "/operator/processes/proc-x/output?cursor=x", 400, "INVALID_ARGUMENT"),
        ("GET", "/operator/processes/proc-x/output?max_bytes=0", 400, "OUTPUT_LIMIT"),
        ("GET", "/operator/timeline?limit=0", 400, "INVALID_ARGUMENT"),
        ("GET", "/operator/timeline?limit=501", 400, "INVALID_ARGUMENT"),
        ("GET", "/operator/timeline?after=1&before=2", 400, "INVALID_ARGUMENT"),
        ("GET", "/operator/timeline?after=99999999999999999999", 400, "INVALID_ARGUMENT"),
        ("GET", "/operator/timeline/events?after=x", 400, "INVALID_ARGUMENT"),
        ("GET", "/operator/state?position=-1", 400, "INVALID_ARGUMENT"),
        ("POST", "/operator/intents/fb-x/release", 404, "INTENT_NOT_FOUND"),
        ("POST", "/operator/intents/fb-%00/release", 404, "INTENT_NOT_FOUND"),
        ("GET", "/operator/works/work-%00/intents", 404, "WORK_NOT_FOUND"),
    ],
)
async def test_a_refusal_is_the_error_body_with_the_status_of_its_code(
    operator: httpx2.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    assert await refused(operator, method, path) == (status, code)


async def test_what_fails_unexpectedly_is_an_incident_and_no_traceback(
    operator: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from adapters.http import audit

    def fail(*_arguments: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(audit, "state_at", fail)
    told = await operator.get("/operator/state")
    assert (told.status_code, told.json()["code"]) == (500, "INTERNAL")
    assert "secret" not in told.text
    assert told.json()["detail"]["incident"] in caplog.text
    assert OPERATOR not in caplog.text
