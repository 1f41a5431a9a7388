"""Steering over a real connection: agents by the SDK's client, people by the real command line, over one log."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.stdio_client import SECONDS_MAX, ask, connected, environment, product, refused
from support.warm_servers import PRODUCT, run_program

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("steering")
    for name in ("demo", "other"):
        (made / name).mkdir()
    return made


@pytest.fixture(scope="module")
async def client(scratch: Path) -> AsyncIterator[Client]:
    command = product(scratch, f"demo={scratch / 'demo'}:workspace-write", f"other={scratch / 'other'}:read-only")
    async with connected(command, scratch) as connection:
        yield connection


@pytest.fixture
async def work_id(client: Client) -> AsyncIterator[str]:
    """A work, finished at the end whatever the test left in it."""
    opened = await ask(client, "work_open", workspace_id="demo", title="Tidy up")
    assert opened["state"] == "active"
    yield opened["work_id"]
    while (await ask(client, "steer_status", work_id=opened["work_id"]))["state"] != "closed":
        if (await ask(client, "work_finish", work_id=opened["work_id"]))["closed"]:
            break
        await ask(client, "steer_claim_next", work_id=opened["work_id"])
        item = (await ask(client, "steer_claim_next", work_id=opened["work_id"], redeliver=True))["item"]
        await ask(client, "steer_complete", work_id=opened["work_id"], intent_id=item["intent_id"])


async def say(scratch: Path, *arguments: str) -> Any:
    """Return what `codespace-es inbox ... --json` prints."""
    command = [PRODUCT, "inbox", *arguments, "--json", "--data-dir", str(scratch / "data")]
    done = await run_program(command, env=environment(scratch))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_an_instruction_goes_from_the_command_line_to_an_agent_and_back(
    client: Client, scratch: Path, work_id: str
) -> None:
    """Checks 21, 61."""
    assert work_id.startswith("work-")
    with anyio.fail_after(SECONDS_MAX):
        draft = await say(scratch, "write", work_id, "Write tests first.", "--key", "k")
        assert (await say(scratch, "write", work_id, "Write tests first.", "--key", "k")) == draft
        assert (draft["state"], draft["revision"], draft["delivery"]) == ("draft", 1, "after_current_work")
        status = await ask(client, "steer_status", work_id=work_id)
        assert (status["queued"], status["claimable_now"], status["claimed_ids"]) == (0, 0, [])
        assert await ask(client, "steer_claim_next", work_id=work_id) == {}

        await say(scratch, "edit", draft["intent_id"], "Write tests.", "--delivery", "next_checkpoint")
        await say(scratch, "queue", draft["intent_id"], "--revision", "2")
        status = await ask(client, "steer_status", work_id=work_id)
        assert (status["queued"], status["claimable_now"]) == (1, 1)
        assert "tests" not in json.dumps(status)

        held_up = await ask(client, "work_finish", work_id=work_id)
        assert held_up == {
            "work_id": work_id, "closed": False, "reason": "pending_user_input", "queued": 1, "state": "active",
        }
        item = (await ask(client, "steer_claim_next", work_id=work_id))["item"]
        assert item == {
            "intent_id": draft["intent_id"], "revision": 3, "kind": "follow_up", "delivery": "next_checkpoint",
            "content": "Write tests.",
        }
        held_up = await ask(client, "work_finish", work_id=work_id)
        assert (held_up["closed"], held_up["queued"], held_up["claimed"]) == (False, 1, 1)
        again = await ask(client, "steer_claim_next", work_id=work_id, redeliver=True)
        assert again["item"] == {**item, "redelivered": True}
        done = await ask(client, "steer_complete", work_id=work_id, intent_id=item["intent_id"])
        assert (done["state"], done["body"], done["workspace_id"]) == ("done", "Write tests.", "demo")
        closed = await ask(client, "work_finish", work_id=work_id)
        assert closed == {"work_id": work_id, "closed": True, "queued": 0, "state": "closed"}
        assert (await refused(client, "steer_claim_next", work_id=work_id))["code"] == "WORK_CLOSED"
        assert (await refused(client, "work_finish", work_id=work_id))["code"] == "WORK_CLOSED"


async def test_what_is_released_may_be_claimed_again(client: Client, scratch: Path, work_id: str) -> None:
    with anyio.fail_after(SECONDS_MAX):
        written = await say(scratch, "write", work_id, "A", "--delivery", "next_checkpoint", "--queue")
        first = (await ask(client, "steer_claim_next", work_id=work_id))["item"]
        assert first["intent_id"] == written["intent_id"]
        assert (await ask(client, "steer_status", work_id=work_id))["claimed_ids"] == [first["intent_id"]]
        assert (await say(scratch, "release", first["intent_id"]))["state"] == "queued"
        assert (await ask(client, "steer_claim_next", work_id=work_id))["item"] == first


async def test_a_stop_is_told_and_completed(client: Client, scratch: Path, work_id: str) -> None:
    """Check 22, with the command line."""
    with anyio.fail_after(SECONDS_MAX):
        stopped = await say(scratch, "stop", work_id, "--reason", "Wait for me.")
        notice = stopped["intent"]
        assert (stopped["ok"], stopped["killed"], stopped["elsewhere"]) == (True, 0, 0)
        assert (notice["kind"], notice["state"]) == ("stop_notice", "claimed")
        told = (await ask(client, "steer_claim_next", work_id=work_id, redeliver=True))["item"]
        assert (told["kind"], told["content"]) == ("stop_notice", "Wait for me.")
        blocked = await ask(
            client, "steer_complete", work_id=work_id, intent_id=notice["intent_id"], outcome="blocked"
        )
        assert blocked["state"] == "blocked"


async def test_refusals_are_those_of_the_contract(client: Client, work_id: str) -> None:
    nobody = "fb-nobody"
    for tool, arguments, code in (
        ("work_open", {"workspace_id": "nowhere"}, "WORKSPACE_NOT_FOUND"),
        ("work_open", {"workspace_id": "demo", "title": "x" * 10_000}, "INVALID_ARGUMENT"),
        ("steer_status", {"work_id": "work-x"}, "WORK_NOT_FOUND"),
        ("steer_claim_next", {"work_id": "work-x"}, "WORK_NOT_FOUND"),
        ("work_finish", {"work_id": "work-x"}, "WORK_NOT_FOUND"),
        ("steer_complete", {"work_id": "work-x", "intent_id": nobody}, "WORK_NOT_FOUND"),
        ("steer_complete", {"work_id": work_id, "intent_id": nobody}, "INTENT_NOT_FOUND"),
        ("steer_complete", {"work_id": work_id, "intent_id": nobody, "outcome": "maybe"}, "INVALID_ARGUMENT"),
    ):
        with anyio.fail_after(SECONDS_MAX):
            assert (await refused(client, tool, **arguments))["code"] == code, (tool, arguments)


async def test_a_hint_is_of_the_named_work_or_of_the_only_open_one_and_is_never_an_error(
    client: Client, scratch: Path, work_id: str
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await say(scratch, "write", work_id, "Secret.", "--queue")
        await say(scratch, "write", work_id, "Next.", "--delivery", "next_work", "--queue")
        await say(scratch, "write", work_id, "A draft.")
        found = await ask(client, "find", workspace_id="demo")
        hint = found["coordination"]
        assert (hint["work_id"], hint["pending_user_items"]) == (work_id, 1)
        assert hint["queue_revision"] == (await ask(client, "steer_status", work_id=work_id))["queue_revision"]
        assert "Secret" not in json.dumps(found)
        assert "coordination" not in await ask(client, "find", workspace_id="other")
        assert "coordination" not in await ask(client, "workspace_info")

        second = (await ask(client, "work_open", workspace_id="demo"))["work_id"]
        elsewhere = (await ask(client, "work_open", workspace_id="other"))["work_id"]
        assert "coordination" not in await ask(client, "find", workspace_id="demo")
        preview = {
            "workspace_id": "demo", "check_only": True,
            "patch": "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n",
        }
        for named, expected in ((work_id, work_id), (second, second), (elsewhere, None), ("work-x", None)):
            checked = await ask(client, "apply_patch", **preview, work_id=named)
            assert checked["status"] == "checked"
            assert checked.get("coordination", {}).get("work_id") == expected
        await ask(client, "work_finish", work_id=second)
        closed = await ask(client, "apply_patch", **preview, work_id=second)
        assert "coordination" not in closed
        assert (await ask(client, "find", workspace_id="demo"))["coordination"]["work_id"] == work_id
