"""Custom tools under `approvals = "operator"`, through a real client: what they do is the operator's to grant."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from contract.test_custom_tools import FILES
from support.cli_project import Called, Project
from support.custom_tools import with_body, write_tools
from support.stdio_client import SECONDS_MAX, ask, connected, product, refused

pytestmark = pytest.mark.anyio

STAGES = with_body("stages", """
return await api.push_pending_action("Make " + params["path"], "staged", payload=params["path"])
""").replace("def create_tool(api):\n", '''
def create_tool(api):
    async def staged(reason, context):
        text = f"*** Begin Patch\\n*** Add File: {context.payload}\\n+by apply\\n*** End Patch\\n"
        await api.apply_patch(text)
        return (await api.exec(["touch", context.payload + ".ran"])).output
    api.register_action("staged", staged)
''', 1)


class Place:
    """A server's client, and the operator at the command line."""

    def __init__(self, client: Client, project: Project, configuration: Path) -> None:
        self.client = client
        self.project = project
        self._configuration = str(configuration)

    async def operator(self, *arguments: str) -> Called:
        """Return what the operator is told."""
        called = ("approvals", *arguments, "--config", self._configuration)
        return await anyio.to_thread.run_sync(self.project.call, *called)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.project.root.iterdir())


async def nobody(_context: ClientRequestContext, _params: ElicitRequestParams) -> ElicitResult:
    raise AssertionError("under operator the client's user is no operator, so no form is shown")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    write_tools(tmp_path / "data" / "tools", patches=FILES["patches"], runs=FILES["runs"], stages=STAGES)
    (tmp_path / "ws").mkdir()
    configuration = tmp_path / "c.toml"
    configuration.write_text(f"""
[workspaces.demo]
root = "{tmp_path / 'ws'}"
profile = "workspace-write"
approvals = "operator"
operator_unsafe = true
""")
    command = [*product(tmp_path), "--config", str(configuration)]
    with anyio.fail_after(2 * SECONDS_MAX):
        async with connected(command, tmp_path, person=nobody) as client:
            yield Place(client, Project(tmp_path / "ws", tmp_path / "data"), configuration)


def added(path: str) -> str:
    return f"*** Begin Patch\n*** Add File: {path}\n+by a tool\n*** End Patch\n"


async def held_by(place: Place, tool: str, **arguments: Any) -> str:
    """Call a tool that is held, by whom the client can't grant; return the hold."""
    held = await refused(place.client, tool, **arguments)
    assert held["code"] == "APPROVAL_REQUIRED"
    decided = await refused(place.client, "approval_resolve", approval_id=held["approval_id"], decision="grant")
    assert decided["code"] == "UNAUTHORIZED"
    early = await refused(place.client, "operation_resume", approval_id=held["approval_id"])
    assert early["code"] == "APPROVAL_CONFLICT"
    return str(held["approval_id"])


async def test_what_a_tool_does_waits_for_the_operator_and_then_runs_once(place: Place) -> None:
    client = place.client
    patch = await held_by(place, "patches", workspace_id="demo", patch=added("made.txt"))
    command = await held_by(place, "runs", workspace_id="demo", argv=["touch", "ran"])
    assert (await refused(client, "patches", workspace_id="demo", patch=added("made.txt")))["approval_id"] == patch
    assert place.files() == []
    listed = json.loads((await place.operator("list", "--json")).stdout)
    assert {each["approval_id"]: each["tool"] for each in listed} == {patch: "apply_patch", command: "exec_command"}
    assert "+by a tool" in (await place.operator("show", patch)).stdout
    for approval_id in (patch, command):
        assert (await place.operator("grant", approval_id)).returncode == 0
    assert place.files() == []
    done = (await ask(client, "operation_resume", approval_id=patch))["apply_patch"]
    assert done["status"] == "applied"
    ran = (await ask(client, "operation_resume", approval_id=command))["exec_command"]
    await ask(client, "read_process", process_id=ran["process_id"], wait_ms=20_000)
    assert place.files() == ["made.txt", "ran"]
    again = await ask(client, "operation_resume", approval_id=patch)
    assert again["apply_patch"]["operation_id"] == done["operation_id"]
    status = await ask(client, "approval_status", approval_id=patch)
    assert (status["state"], status["decided_by"], status["effect_id"]) == ("consumed", "cli", done["operation_id"])


async def test_what_the_operator_denies_never_runs(place: Place) -> None:
    approval_id = await held_by(place, "patches", workspace_id="demo", patch=added("never.txt"))
    assert (await place.operator("deny", approval_id, "--reason", "not this")).returncode == 0
    refusal = await refused(place.client, "operation_resume", approval_id=approval_id)
    assert (refusal["code"], "not this" in refusal["message"]) == ("APPROVAL_CONFLICT", True)
    assert place.files() == []


async def test_one_grant_of_a_resolve_covers_all_that_its_apply_does(place: Place) -> None:
    staged = await ask(place.client, "stages", workspace_id="demo", path="proposed")
    approval_id = await held_by(place, "resolve", action="apply", id=staged["action_id"])
    assert place.files() == []
    assert (await place.operator("grant", approval_id)).returncode == 0
    told = (await ask(place.client, "operation_resume", approval_id=approval_id))["resolve"]
    assert told["outcome"] == "applied"
    assert place.files() == ["proposed", "proposed.ran"]
    again = await ask(place.client, "operation_resume", approval_id=approval_id)
    assert again["resolve"]["operation_id"] == told["operation_id"]
    assert (await ask(place.client, "operation_status", operation_id=told["operation_id"]))["source"] == "custom_tool"
