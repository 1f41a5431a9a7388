"""Holds through a real client on pipes, in both eras: what an agent sees of being held, granted, denied and resumed.

Numbers in docstrings are the contract's checks (B10.2) and field cases (FR).
"""

import json
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.stdio_client import ERAS, SECONDS_MAX, Era, ask, connected, product, raw_client, refused

pytestmark = pytest.mark.anyio

_PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"
_CLAIMS = {"approved": True, "network": True, "user_id": "root"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param  # type: ignore[no-any-return]  # pytest's params are untyped


def configured(scratch: Path, root: Path, **policy: Any) -> list[str]:
    """Return the command line of a server whose workspace `demo` has this policy."""
    given = {"root": str(root), "profile": "workspace-write", "approvals": "confirm", **policy}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
    configuration = scratch / "codespace.toml"
    configuration.write_text(f"[workspaces.demo]\n{lines}", encoding="utf-8")
    return [*product(scratch), "--config", str(configuration)]


async def create(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what `approval_create` answers, refusals too."""
    answer = await client.call_tool("approval_create", {"tool": tool, "arguments": arguments})
    assert answer.structured_content is not None
    return answer.structured_content


async def call(client: Client, tool: str, approval_id: str, **more: Any) -> dict[str, Any]:
    """Return what a tool answers of a hold, refusals too."""
    answer = await client.call_tool(tool, {"approval_id": approval_id, **more})
    assert answer.structured_content is not None
    return answer.structured_content


async def grant(client: Client, approval_id: str) -> dict[str, Any]:
    return await call(client, "approval_resolve", approval_id, decision="grant")


async def test_no_claim_of_a_client_raises_a_profile(tmp_path: Path, root: Path, era: Era) -> None:
    """Checks 4, 5, 6."""
    command = configured(tmp_path, root, profile="read-only")
    with anyio.fail_after(SECONDS_MAX):
        async with connected(command, tmp_path, era) as client:
            held = await create(client, "apply_patch", workspace_id="demo", patch=_PATCH, **_CLAIMS)
            patched = await refused(client, "apply_patch", workspace_id="demo", patch=_PATCH, **_CLAIMS)
            run = await create(client, "exec_command", workspace_id="demo", command=["touch", "made.txt"])
            listed = json.loads((await client.read_resource("codespace://approvals")).contents[0].text)  # type: ignore[union-attr]
    assert [held["code"], patched["code"], run["code"]] == ["UNAUTHORIZED"] * 3
    assert listed == {"approvals": []}
    assert not list(root.iterdir())


async def test_a_held_patch_lives_from_asking_to_its_stored_answer(tmp_path: Path, root: Path, era: Era) -> None:
    """Checks 7 to 13."""
    with anyio.fail_after(SECONDS_MAX):
        async with connected(configured(tmp_path, root), tmp_path, era) as client:
            unknown = await call(client, "operation_resume", "appr-00000000-0000-4000-8000-000000000000")
            described = await ask(client, "workspace_info", workspace_id="demo")
            held = await refused(client, "apply_patch", workspace_id="demo", patch=_PATCH, operation_key="k", **_CLAIMS)
            approval_id = held["approval_id"]
            assert not list(root.iterdir())
            shown = await ask(client, "approval_status", approval_id=approval_id)
            granted = await grant(client, approval_id)
            assert not list(root.iterdir())
            first = await call(client, "operation_resume", approval_id)
            (root / "made.txt").write_text("changed since\n")
            second = await call(client, "operation_resume", approval_id)
            operation_id = first["apply_patch"]["operation_id"]
            told = await ask(client, "operation_status", operation_id=operation_id)
            other = await refused(client, "apply_patch", workspace_id="demo", patch=_PATCH.replace("made.", "more."))
            after = await ask(client, "approval_status", approval_id=approval_id)
    assert unknown["code"] == "APPROVAL_NOT_FOUND"
    assert described["execution"]["approvals"] == "confirm"
    assert (held["code"], approval_id[:5]) == ("APPROVAL_REQUIRED", "appr-")
    assert (shown["state"], shown["diff"]) == ("pending", "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+made\n")
    assert granted == {"approval_id": approval_id, "state": "granted"}
    assert (first["state"], first["apply_patch"]["status"]) == ("consumed", "applied")
    assert second == {**first, "apply_patch": {**first["apply_patch"], "replayed": True}}
    assert (root / "made.txt").read_text() == "changed since\n"
    assert (told["kind"], told["status"], told["files"]) == ("patch", "applied", ["made.txt"])
    assert other["code"] == "APPROVAL_REQUIRED"
    assert other["approval_id"] != approval_id
    assert not (root / "more.txt").exists()
    assert (after["state"], after["decided_by"], after["effect_id"]) == ("consumed", "mcp", operation_id)


async def test_a_denied_patch_never_runs(tmp_path: Path, root: Path) -> None:
    """Check 14."""
    with anyio.fail_after(SECONDS_MAX):
        async with connected(configured(tmp_path, root), tmp_path, "2026-07-28") as client:
            held = await refused(client, "apply_patch", workspace_id="demo", patch=_PATCH)
            denied = await call(client, "approval_resolve", held["approval_id"], decision="deny", reason="not today")
            resumed = await call(client, "operation_resume", held["approval_id"])
            granted = await grant(client, held["approval_id"])
    assert denied["state"] == "denied"
    assert (resumed["code"], granted["code"]) == ("APPROVAL_CONFLICT", "APPROVAL_CONFLICT")
    assert "not today" in resumed["message"]
    assert not list(root.iterdir())


async def test_without_approvals_only_what_is_held_on_purpose_waits(tmp_path: Path, root: Path) -> None:
    """Checks 15, 17."""
    with anyio.fail_after(SECONDS_MAX):
        async with connected(configured(tmp_path, root, approvals="off"), tmp_path, "2025-11-25") as client:
            described = await ask(client, "workspace_info", workspace_id="demo")
            applied = await ask(client, "apply_patch", workspace_id="demo", patch=_PATCH.replace("made.", "once."))
            held = await create(client, "apply_patch", workspace_id="demo", patch=_PATCH)
            assert not (root / "made.txt").exists()
            await grant(client, held["approval_id"])
            await call(client, "operation_resume", held["approval_id"])
    assert described["execution"]["approvals"] == "off"
    assert (applied["status"], held["state"]) == ("applied", "pending")
    assert (root / "made.txt").exists()


async def test_a_held_command_runs_once(tmp_path: Path, root: Path) -> None:
    """Check 16."""
    with anyio.fail_after(SECONDS_MAX):
        async with connected(configured(tmp_path, root), tmp_path, "2026-07-28") as client:
            held = await refused(
                client, "exec_command", workspace_id="demo", command=["sh", "-c", "printf x >> made.txt"], **_CLAIMS
            )
            assert not list(root.iterdir())
            await grant(client, held["approval_id"])
            first = await call(client, "operation_resume", held["approval_id"])
            process_id = first["exec_command"]["process_id"]
            while (await ask(client, "process_status", process_id=process_id))["state"] == "running":
                await anyio.sleep(0.01)
            second = await call(client, "operation_resume", held["approval_id"])
    assert held["code"] == "APPROVAL_REQUIRED"
    assert (first["state"], process_id[:5]) == ("consumed", "proc-")
    assert second["exec_command"] == {**first["exec_command"], "replayed": True}
    assert (root / "made.txt").read_text() == "x"


async def test_holds_outlive_their_connection_and_are_listed_with_enough_to_decide(tmp_path: Path, root: Path) -> None:
    """FR-213, FR-215."""
    command = configured(tmp_path, root)
    with anyio.fail_after(SECONDS_MAX):
        async with connected(command, tmp_path) as client:
            patch = await refused(client, "apply_patch", workspace_id="demo", patch=_PATCH)
            run = await refused(client, "exec_command", workspace_id="demo", command=["touch", "ran.txt"])
        async with connected(command, tmp_path, "2026-07-28") as client:
            listed = json.loads((await client.read_resource("codespace://approvals")).contents[0].text)["approvals"]  # type: ignore[union-attr]
            looked = await ask(client, "find", workspace_id="demo", glob="**")
            told = await ask(client, "approval_status", approval_id=patch["approval_id"])
            described = await ask(client, "workspace_info", workspace_id="demo")
            denied = await call(client, "approval_resolve", run["approval_id"], decision="deny")
    assert [each["approval_id"] for each in listed] == [patch["approval_id"], run["approval_id"]]
    assert [each["state"] for each in listed] == ["pending", "pending"]
    assert listed[0]["title"] == "Patch made.txt"
    assert listed[1]["command"] == ["touch", "ran.txt"]
    assert looked["paths"] == []
    assert "decided_by" not in told
    assert described["pending_approvals"] == 2
    assert denied["state"] == "denied"


async def test_what_a_grant_does_not_bind_is_planned_anew(tmp_path: Path, root: Path) -> None:
    """FR-063: the change made meanwhile stays. FR-019: a path that leads out meanwhile is refused."""
    outside = tmp_path / "out"
    outside.mkdir()
    (root / "p.txt").write_text("a\nb\n")
    (root / "real").mkdir()
    (root / "real" / "f.txt").write_text("a\n")
    edit = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+A\n*** End Patch\n"
    with anyio.fail_after(SECONDS_MAX):
        async with connected(configured(tmp_path, root), tmp_path) as client:
            holds = []
            for path in ("p.txt", "real/f.txt"):
                held = await refused(client, "apply_patch", workspace_id="demo", patch=edit.format(path))
                holds.append(held["approval_id"])
                await grant(client, held["approval_id"])
            (root / "p.txt").write_text("a\nb\nc\n")
            (root / "real").rename(root / "kept")
            (root / "real").symlink_to("../out")
            moved = await ask(client, "approval_status", approval_id=holds[0])
            merged, led_out = [await call(client, "operation_resume", each) for each in holds]
            again = await call(client, "operation_resume", holds[1])
    assert moved["moved_on"] == ["p.txt"]
    assert merged["apply_patch"]["status"] == "applied"
    assert (root / "p.txt").read_text() == "A\nb\nc\n"
    assert led_out["code"] == "SYMLINK_REJECTED"
    assert again == led_out
    assert not list(outside.iterdir())


async def test_under_operator_nothing_that_a_client_says_grants(tmp_path: Path, root: Path) -> None:
    command = configured(tmp_path, root, approvals="operator", operator_unsafe=True)
    with anyio.fail_after(SECONDS_MAX):
        async with connected(command, tmp_path) as client:
            held = await refused(client, "apply_patch", workspace_id="demo", patch=_PATCH)
            granted = await call(client, "approval_resolve", held["approval_id"], decision="grant", channel="cli",
                                 operator=True, **_CLAIMS)
            resumed = await call(client, "operation_resume", held["approval_id"])
            denied = await call(client, "approval_resolve", held["approval_id"], decision="deny")
    assert (granted["code"], resumed["code"]) == ("UNAUTHORIZED", "APPROVAL_CONFLICT")
    assert "codespace-es approvals grant" in granted["message"]
    assert denied["state"] == "denied"
    assert not list(root.iterdir())


async def test_an_expired_hold_says_so_and_is_recorded_so(tmp_path: Path, root: Path) -> None:
    """FR-219."""
    with anyio.fail_after(SECONDS_MAX):
        async with connected(configured(tmp_path, root, approval_ttl_seconds=1), tmp_path) as client:
            held = await refused(client, "apply_patch", workspace_id="demo", patch=_PATCH)
            while (await ask(client, "approval_status", approval_id=held["approval_id"]))["state"] == "pending":
                await anyio.sleep(0.05)
            granted = await grant(client, held["approval_id"])
            resumed = await call(client, "operation_resume", held["approval_id"])
            told = await ask(client, "approval_status", approval_id=held["approval_id"])
    assert (granted["code"], resumed["code"], told["state"]) == ("APPROVAL_CONFLICT", "APPROVAL_CONFLICT", "expired")
    assert "expired" in granted["message"]
    assert "decided_by" not in told
    assert not list(root.iterdir())


async def test_a_server_that_is_killed_leaves_an_answer_that_is_given_again(tmp_path: Path, root: Path) -> None:
    """A real `kill -9`, after the answer: the command isn't run again, and how it ended is said to be unknown."""
    command = configured(tmp_path, root)
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            held = await client.call("exec_command", workspace_id="demo", command=["sh", "-c", "echo x >> n; sleep 60"])
            await client.call("approval_resolve", approval_id=held["approval_id"], decision="grant")
            first = await client.call("operation_resume", approval_id=held["approval_id"])
            while not (root / "n").exists():
                await anyio.sleep(0.01)
            client.kill(signal.SIGKILL)
            await client.exit_code()
        async with connected(command, tmp_path) as second:
            early = await call(second, "operation_resume", held["approval_id"])
            process_id = first["exec_command"]["process_id"]
            while (told := await ask(second, "process_status", process_id=process_id))["state"] == "running":
                await anyio.sleep(0.01)  # its tree outlives the server for a moment, and so does its lock
            again = await call(second, "operation_resume", held["approval_id"])
    assert early["exec_command"]["process_id"] == process_id
    assert again["exec_command"] == {**first["exec_command"], "dispatch_status": "unknown", "replayed": True}
    assert told["termination"] == "unknown"
    assert (root / "n").read_text() == "x\n"
