"""Asking a client's user about a hold, through the SDK's own client in both eras: what is asked, what answers do."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
)

from support.custom_tools import with_body, write_tools
from support.http_client import serving
from support.stdio_client import ERAS, SECONDS_MAX, Era, ask, connected, environment, product, refused
from support.warm_servers import run_program

pytestmark = pytest.mark.anyio

Answers = Callable[[str], Awaitable[ElicitResult | ErrorData]]

GRANT = ElicitResult(action="accept", content={"decision": "grant", "reason": "go on"})
DENY = ElicitResult(action="accept", content={"decision": "deny"})
DECLINE = ElicitResult(action="decline")
CANCEL = ElicitResult(action="cancel")


class Person:
    """A client's user: remembers what was asked, and answers as the test says."""

    def __init__(self, answer: ElicitResult | ErrorData | Answers = GRANT) -> None:
        self.answer = answer
        self.asked: list[ElicitRequestFormParams] = []

    async def __call__(
        self, _context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        if isinstance(self.answer, ElicitResult | ErrorData):
            return self.answer
        return await self.answer(params.message)


class Place:
    """A workspace, the command line that serves it, and its client's user."""

    def __init__(self, scratch: Path, **policy: Any) -> None:
        self.scratch = scratch
        self.root = scratch / "ws"
        self.root.mkdir()
        self.person = Person()
        self.configure(**policy)
        self.command = [*product(scratch), "--config", str(scratch / "codespace.toml")]

    def configure(self, **policy: Any) -> None:
        """Say what the workspace's policy is from the next start on."""
        given = {"root": str(self.root), "profile": "workspace-write", "approvals": "confirm",
                 "elicitation_timeout_seconds": 600, **policy}
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
        (self.scratch / "codespace.toml").write_text(f"[workspaces.demo]\n{lines}", encoding="utf-8")

    @asynccontextmanager
    async def client(self, era: Era) -> AsyncIterator[Client]:
        with anyio.fail_after(SECONDS_MAX):
            async with connected(self.command, self.scratch, era, person=self.person) as client:
                yield client


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param  # type: ignore[no-any-return]  # pytest's params are untyped


def patch(name: str, text: str = "made") -> dict[str, Any]:
    """Return the arguments of a patch that adds a file."""
    return {"workspace_id": "demo", "patch": f"*** Begin Patch\n*** Add File: {name}\n+{text}\n*** End Patch\n"}


async def story(client: Client, approval_id: str) -> dict[str, Any]:
    return await ask(client, "approval_status", approval_id=approval_id)


async def test_whoever_is_asked_decides_and_the_call_answers_what_came_of_it(place: Place, era: Era) -> None:
    """Granted: the call's own result. Denied: it never ran. No decision: held as without a form."""
    async with place.client(era) as client:
        applied = await ask(client, "apply_patch", **patch("made.txt"), operation_key="k")
        again = await ask(client, "apply_patch", **patch("made.txt"), operation_key="k")
        ran = await ask(client, "exec_command", workspace_id="demo", command=["sh", "-c", "exit 0"])
        await ask(client, "read_process", process_id=ran["process_id"], wait_ms=20_000)
        undone = await ask(client, "operation_revert", operation_id=applied["operation_id"], shouted=True)
        questions = len(place.person.asked)
        place.person.answer = DENY
        denied = await refused(client, "apply_patch", **patch("never.txt"))
        place.person.answer = DECLINE
        declined = await refused(client, "apply_patch", **patch("neither.txt"))
        for answer in (CANCEL, ElicitResult(action="accept", content={}),
                       ElicitResult(action="accept", content={"decision": "perhaps"})):
            place.person.answer = answer
            left = await refused(client, "apply_patch", **patch("later.txt"))
            assert left["code"] == "APPROVAL_REQUIRED"
        pending = await story(client, left["approval_id"])
        told = [await story(client, each["approval_id"]) for each in (denied, declined)]
        operation = await ask(client, "operation_status", operation_id=applied["operation_id"])
        asked = place.person.asked
        holds = await story(client, asked[0].message.rpartition(" ")[2].rstrip("."))
    assert (applied["status"], applied["replayed"], undone["status"]) == ("applied", False, "applied")
    assert again == {**applied, "replayed": True}
    assert [notice["kind"] for notice in undone["warnings"]] == ["unknown_argument"]
    assert questions == 3
    assert operation["status"] == "applied"
    assert (holds["state"], holds["decided_by"], holds["reason"]) == ("consumed", "elicitation", "go on")
    assert [denied["code"], declined["code"]] == ["APPROVAL_CONFLICT"] * 2
    assert [(each["state"], each["decided_by"]) for each in told] == [("denied", "elicitation")] * 2
    assert pending["state"] == "pending"
    assert "decided_by" not in pending
    assert len(asked) == 8
    assert not list(place.root.iterdir())


async def test_a_question_shows_what_would_happen_and_leaves_the_hold_if_it_fails(place: Place) -> None:
    """No escape is obeyed; a form that breaks, and a call that is cancelled while it is open, decide nothing."""
    async def leave(_message: str) -> ElicitResult:
        waiting.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    place.person.answer = CANCEL
    async with place.client("2025-11-25") as client:
        held = await refused(client, "apply_patch", **patch("a.txt", "red \x1b[31m and \u202ereversed"))
        await refused(client, "exec_command", workspace_id="demo", command=["sh", "-c", "rm -rf 'x y'"])
        await refused(client, "apply_patch", **patch("b.txt", "long " * 5_000))
        place.person.answer = ErrorData(code=-32603, message="the form broke")
        broken = await refused(client, "apply_patch", **patch("c.txt"))
        place.person.answer = leave
        with anyio.CancelScope() as waiting:
            await client.call_tool("apply_patch", patch("d.txt"))
        assert (await ask(client, "workspace_info", workspace_id="demo"))["pending_approvals"] == 5
    assert broken["code"] == "APPROVAL_REQUIRED"
    first, second, third = (asked.message for asked in place.person.asked[:3])
    assert "+red \\x1b[31m and \\u202ereversed" in first
    assert first.endswith(f"Let it run? It is held as {held['approval_id']}.")
    assert "asked for by mcp" in first
    assert """sh -c 'rm -rf '"'"'x y'"'"''""" in second
    assert len(third) < 5_000
    assert "approvals show appr-" in third
    schema = place.person.asked[0].requested_schema
    assert schema["required"] == ["decision"]


async def test_a_preview_is_resolved_once_its_user_agrees(place: Place, era: Era) -> None:
    """The form shows what the preview would change; the call answers as `resolve` does."""
    (place.root / "a.py").write_text("f(1)\n")
    async with place.client(era) as client:
        await ask(client, "ast_edit", workspace_id="demo", ops=[{"pat": "f($A)", "out": "g($A)"}])
        resolved = await ask(client, "resolve", action="apply", reason="it is renamed")
    (asked,) = place.person.asked
    assert "-f(1)\n+g(1)" in asked.message
    assert resolved["outcome"] == "applied"
    assert (place.root / "a.py").read_text() == "g(1)\n"


@pytest.mark.parametrize(("era", "theirs", "mine"), [("2025-11-25", "grant", DENY), ("2026-07-28", "deny", GRANT)])
async def test_who_decides_first_wins_and_the_other_is_told(
    place: Place, era: Era, theirs: str, mine: ElicitResult
) -> None:
    """The operator decides while the form is open. What the log says then is what the call is told."""
    async def decided_elsewhere(message: str) -> ElicitResult:
        approval_id = message.rpartition(" ")[2].rstrip(".")
        data = str(place.scratch / "data")
        command = [place.command[0], "approvals", theirs, approval_id, "--data-dir", data]
        decided = await run_program(command, env=environment(place.scratch))
        assert decided.returncode == 0, decided.stderr
        return mine

    place.person.answer = decided_elsewhere
    async with place.client(era) as client:
        told = await refused(client, "apply_patch", **patch("a.txt"))
        stands = await story(client, told["approval_id"])
        assert not list(place.root.iterdir())
        resumed = await client.call_tool("operation_resume", {"approval_id": told["approval_id"]})
    assert told["code"] == "APPROVAL_CONFLICT"
    assert (stands["state"], stands["decided_by"]) == ("granted" if theirs == "grant" else "denied", "cli")
    assert resumed.is_error == (theirs == "deny")
    assert (place.root / "a.txt").exists() == (theirs == "grant")


async def test_nobody_is_asked_where_it_is_off_or_the_client_has_no_form(place: Place) -> None:
    """Absence of the capability means that the call is answered as ever, never that it fails."""
    for era in ERAS:
        with anyio.fail_after(SECONDS_MAX):
            async with connected(place.command, place.scratch, era) as client:
                assert (await refused(client, "apply_patch", **patch("a.txt")))["code"] == "APPROVAL_REQUIRED"
    place.configure(elicitation_timeout_seconds=0)
    async with place.client("2025-11-25") as client:
        assert (await refused(client, "apply_patch", **patch("a.txt")))["code"] == "APPROVAL_REQUIRED"
    assert place.person.asked == []


async def test_a_late_answer_leaves_the_hold_pending(tmp_path: Path) -> None:
    """In the old era the call gives up; in the new one the state has run out by the time it comes back."""
    place = Place(tmp_path, elicitation_timeout_seconds=1)

    async def slow(_message: str) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    place.person.answer = slow
    async with place.client("2025-11-25") as client:
        given_up = await refused(client, "apply_patch", **patch("a.txt"))
    async with place.client("2026-07-28") as client:
        round_one = await client.session.call_tool("apply_patch", patch("a.txt"), allow_input_required=True)
        assert isinstance(round_one, InputRequiredResult)
        await anyio.sleep(2.1)
        late = await client.session.call_tool(
            "apply_patch", patch("a.txt"), allow_input_required=True,
            input_responses={"approval": GRANT}, request_state=round_one.request_state,
        )
        assert not isinstance(late, InputRequiredResult)
        assert late.structured_content is not None
        pending = await story(client, given_up["approval_id"])
    assert (given_up["code"], late.structured_content["code"]) == ("APPROVAL_REQUIRED", "APPROVAL_REQUIRED")
    assert late.structured_content["approval_id"] == given_up["approval_id"]
    assert pending["state"] == "pending"
    assert not list(place.root.iterdir())


async def test_an_answer_counts_for_its_own_question_alone(place: Place) -> None:
    """A state made for other arguments, or by nobody, decides nothing; one without an answer asks again."""
    async with place.client("2026-07-28") as client:
        early = await client.session.call_tool("apply_patch", patch("c.txt"), allow_input_required=True)
    assert isinstance(early, InputRequiredResult)
    async with place.client("2026-07-28") as client:

        async def retry(name: str, state: str | None, responses: Any = None) -> Any:
            return await client.session.call_tool(
                "apply_patch", patch(name), allow_input_required=True, input_responses=responses, request_state=state
            )

        asked = await retry("a.txt", None)
        again = await retry("a.txt", asked.request_state)
        seal = asked.request_state.rpartition(".")[2]
        wrong = [
            await retry("b.txt", asked.request_state, {"approval": GRANT}),
            *[await retry("a.txt", state, {"approval": GRANT}) for state in (
                None, "", "nonsense", "a.b.c", f"{asked.request_state}0", f"appr-x.99999999999.{seal}",
                asked.request_state.replace(seal, "é"), f"x.{'9' * 5000}.{seal}",
            )],
        ]
        assert not list(place.root.iterdir())
        right = await retry("a.txt", asked.request_state, {"approval": GRANT, "more": CANCEL})
        outlived = await retry("c.txt", early.request_state, {"approval": GRANT})
        twice = await retry("a.txt", asked.request_state, {"approval": GRANT})
    assert isinstance(again, InputRequiredResult)
    assert [each.structured_content["code"] for each in wrong] == ["APPROVAL_REQUIRED"] * len(wrong)
    assert right.structured_content["status"] == "applied"
    assert twice.structured_content["code"] == "APPROVAL_CONFLICT"
    assert outlived.structured_content["status"] == "applied"
    assert {each.name for each in place.root.iterdir()} == {"a.txt", "c.txt"}


async def test_what_a_custom_tool_asks_for_is_put_to_the_user_too(place: Place, era: Era) -> None:
    """Granted: what was held runs, and the call answers what that came to; the tool isn't run on."""
    write_tools(place.scratch / "data" / "tools", patches=with_body("patches", """
await api.apply_patch(params["patch"])
return "the rest of the tool"
"""))
    async with place.client(era) as client:
        applied = await ask(client, "patches", **patch("made.txt"))
        place.person.answer = DENY
        denied = await refused(client, "patches", **patch("never.txt"))
        place.person.answer = CANCEL
        left = await refused(client, "patches", **patch("later.txt"))
        operation_id = applied["details"]["apply_patch"]["operation_id"]
        told = await ask(client, "operation_status", operation_id=operation_id)
    assert applied["content"].startswith("apply_patch, which this tool asked for, was granted and has run")
    assert (told["status"], applied["details"]["apply_patch"]["status"]) == ("applied", "applied")
    assert (denied["code"], left["code"]) == ("APPROVAL_CONFLICT", "APPROVAL_REQUIRED")
    assert len(place.person.asked) == 3
    assert "apply_patch in workspace demo" in place.person.asked[0].message
    assert [each.name for each in place.root.iterdir()] == ["made.txt"]


async def test_over_http_the_new_era_asks_and_the_old_one_goes_without(place: Place) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with serving([*place.command, "--http", "127.0.0.1:0"], place.scratch) as server:
            async with server.client("2025-11-25", person=place.person) as client:
                held = await refused(client, "apply_patch", **patch("a.txt"))
            asked_before = len(place.person.asked)
            async with server.client("2026-07-28", person=place.person) as client:
                applied = await ask(client, "apply_patch", **patch("a.txt"))
                told = await story(client, held["approval_id"])
    assert (held["code"], asked_before) == ("APPROVAL_REQUIRED", 0)
    assert applied["status"] == "applied"
    assert (told["state"], told["decided_by"]) == ("consumed", "elicitation")


async def test_a_form_of_the_client_and_operator_approvals_exclude_each_other(tmp_path: Path) -> None:
    place = Place(tmp_path, approvals="operator", operator_unsafe=True)
    done = await run_program(place.command, env=environment(tmp_path))
    assert done.returncode == 2
    assert "exclude each other" in done.stderr
