"""Pending actions as a real client meets them: what every result says, `resolve`, the resource, the list of tools."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp_types import TextContent, TextResourceContents

from support.stdio_client import SECONDS_MAX, ask, connected, product, refused

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory, root: Path) -> AsyncIterator[Client]:
    scratch = tmp_path_factory.mktemp("server")
    (scratch / "codespace.toml").write_text(
        'resolve_listing = "while-pending"\n'
        f'[workspaces.demo]\nroot = "{root}"\nprofile = "workspace-write"\npending_bias = "require"\n'
    )
    command = [*product(scratch), "--config", str(scratch / "codespace.toml")]
    async with connected(command, scratch) as connection:
        yield connection


async def texts(client: Client, tool: str, **arguments: object) -> list[str]:
    result = await client.call_tool(tool, arguments)
    return [item.text for item in result.content if isinstance(item, TextContent)]


async def preview(client: Client, root: Path) -> dict:
    (root / "a.py").write_bytes("x = old(1)\r\ny = 'é'\r\n".encode())
    ops = [{"pat": "old($A)", "out": "new($A)"}]
    return await ask(client, "ast_edit", workspace_id="demo", ops=ops, paths=["a.py"])


async def listed(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def pending(client: Client) -> list[dict]:
    contents = (await client.read_resource("pending://actions")).contents[0]
    assert isinstance(contents, TextResourceContents)
    return json.loads(contents.text)["actions"]


async def test_a_preview_is_told_everywhere_gates_changes_and_is_applied_as_it_was_shown(client: Client, root: Path):
    with anyio.fail_after(SECONDS_MAX):
        assert "resolve" not in await listed(client)
        assert "pending_actions" not in await ask(client, "workspace_info", workspace_id="demo")
        shown = await preview(client, root)
        action_id = shown["action_id"]
        assert shown["message"].startswith("Nothing is changed yet.")
        assert shown["pending_actions"] == {
            "count": 1, "head": {"id": action_id, "label": shown["label"], "source_tool_name": "ast_edit"},
            "hint": {"tool": "resolve"}, "bias": "require",
        }
        names = await listed(client)
        assert names.index("resolve") == names.index("approval_status") + 1

        # Every result tells it, reads and refusals too, whatever they name; a line of its own only the first did.
        for tool, arguments in (
            ("read", {"workspace_id": "demo", "path": "a.py"}), ("workspace_info", {}),
            ("operation_status", {"operation_id": "op-none"}), ("read", {"workspace_id": "demo"}),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.structured_content is not None
            assert result.structured_content["pending_actions"]["head"]["id"] == action_id, tool
            assert len(result.content) == 1
        assert [each["id"] for each in await pending(client)] == [action_id]

        # The gate: nothing else changes the workspace; what was shown is still what is there.
        for tool, arguments in (
            ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: n\n+n\n*** End Patch\n"}),
            ("exec_command", {"command": ["true"]}),
            ("ast_edit", {"ops": [{"pat": "a", "out": "b"}]}),
        ):
            told = await refused(client, tool, workspace_id="demo", **arguments)
            assert told["code"] == "PENDING_ACTION_UNRESOLVED"
            assert told["detail"]["head"]["id"] == action_id
        checked = await ask(
            client, "apply_patch", workspace_id="demo", check_only=True,
            patch="*** Begin Patch\n*** Add File: n\n+n\n*** End Patch\n",
        )
        assert checked["status"] == "checked"
        assert (root / "a.py").read_bytes() == "x = old(1)\r\ny = 'é'\r\n".encode()

        told = await ask(client, "resolve", action="apply", id=action_id, reason="As shown.")
        assert (told["outcome"], told["remaining"], told["next"]) == ("applied", 0, None)
        assert told["pending_actions"] == {"count": 0, "hint": {"tool": "resolve"}, "bias": "require"}
        assert (root / "a.py").read_bytes() == "x = new(1)\r\ny = 'é'\r\n".encode()
        again = await ask(client, "resolve", action="apply", id=action_id)
        assert (again["replayed"], again["operation_id"]) == (True, told["operation_id"])
        assert "resolve" not in await listed(client)
        assert "pending_actions" not in await ask(client, "workspace_info", workspace_id="demo")


async def test_the_first_result_that_tells_of_an_action_ends_with_a_line(client: Client, root: Path):
    with anyio.fail_after(SECONDS_MAX):
        (root / "b.py").write_text("old()\n")
        told = await texts(
            client, "ast_edit", workspace_id="demo", ops=[{"pat": "old()", "out": "new()"}], paths=["b.py"]
        )
        assert len(told) == 2
        action_id = json.loads(told[0])["action_id"]
        assert told[1].startswith("Pending: AST Edit")
        assert action_id in told[1]
        assert len(await texts(client, "find", workspace_id="demo")) == 1
        discarded = await ask(client, "resolve", action="discard", reason="No.")
        assert discarded["text"] == f"Discarded: {discarded['label']}. Reason: No."
        assert (await refused(client, "resolve", action="discard"))["code"] == "NO_PENDING_ACTION"


@pytest.mark.parametrize(("arguments", "field"), [
    ({}, "action"), ({"action": "maybe"}, "action"), ({"action": "apply", "reason": 1}, "reason"),
    ({"action": "apply", "extra": []}, "extra"), ({"action": "apply", "id": 3}, "id"),
])
async def test_an_argument_that_cannot_be_used_is_named(client: Client, arguments: dict, field: str):
    with anyio.fail_after(SECONDS_MAX):
        told = await refused(client, "resolve", **arguments)
    assert (told["code"], told["detail"]["field"]) == ("INVALID_ARGUMENT", field)


async def test_a_work_with_a_preview_is_not_finished(client: Client, root: Path):
    with anyio.fail_after(SECONDS_MAX):
        work = (await ask(client, "work_open", workspace_id="demo"))["work_id"]
        (root / "c.py").write_text("old()\n")
        ops = [{"pat": "old()", "out": "new()"}]
        await ask(client, "ast_edit", workspace_id="demo", work_id=work, ops=ops, paths=["c.py"])
        told = await ask(client, "work_finish", work_id=work)
        assert (told["closed"], told["reason"], told["state"]) == (False, "pending_actions", "active")
        assert (await ask(client, "resolve", action="discard", work_id=work))["outcome"] == "discarded"
        assert (await ask(client, "work_finish", work_id=work))["closed"] is True
