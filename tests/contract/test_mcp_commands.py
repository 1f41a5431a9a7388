"""Commands over a real connection: what a client sees of them, the operator's secrets, a runner that is elsewhere."""

import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.stdio_client import SECONDS_MAX, ask, connected, environment, product, refused
from support.warm_servers import PRODUCT, open_server

pytestmark = pytest.mark.anyio

NOBODY = "proc-00000000-0000-4000-8000-000000000000"
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\n"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    scratch = tmp_path_factory.mktemp("server")
    for name in ("ws", "look"):
        (scratch / name).mkdir()
    command = product(scratch, f"demo={scratch / 'ws'}:workspace-write", f"look={scratch / 'look'}:read-only")
    async with connected(command, scratch, "2026-07-28", variables={"OPERATORS_SECRET": "s3cret"}) as connection:
        yield connection


async def _exec(client: Client, *argv: str, **fields: Any) -> str:
    started = await ask(client, "exec_command", workspace_id="demo", command=list(argv), **fields)
    assert started["process_id"].startswith("proc-")
    assert set(started) == {"process_id", "dispatch_status"}
    assert started["dispatch_status"] == "confirmed"
    return str(started["process_id"])


async def _output(client: Client, process_id: str) -> str:
    text, cursor, is_over = "", 0, False
    while not is_over:
        piece = await ask(client, "read_process", process_id=process_id, cursor=cursor, wait_ms=5_000)
        assert set(piece) == {"process_id", "cursor", "chunk", "eof", "output_lost", "retained_from"}
        text, cursor, is_over = text + piece["chunk"], piece["cursor"], piece["eof"]
    return text


async def test_a_command_runs_ends_and_is_told(client: Client) -> None:
    """Checks 37, 73; decision 36."""
    with anyio.fail_after(SECONDS_MAX):
        process_id = await _exec(client, "bash", "-c", "echo hello; exit 3")
        assert await _output(client, process_id) == "hello\n"
        report = await ask(client, "process_status", process_id=process_id)
        assert (report["state"], report["termination"], report["exit_code"]) == ("exited", "exited", 3)
        assert report["eof"] is True
        assert "signal" not in report
        assert await ask(client, "terminate_process", process_id=process_id) == {"ok": True}


async def test_the_operators_secrets_stay_with_the_operator(client: Client) -> None:
    with anyio.fail_after(SECONDS_MAX):
        shown = await _output(client, await _exec(client, "env"))
        parents = await _output(client, await _exec(client, "bash", "-c", "cat /proc/[0-9]*/environ 2>/dev/null; true"))
    names = {line.split("=", 1)[0] for line in shown.splitlines()}
    assert "s3cret" not in shown
    assert "s3cret" not in parents
    assert {"PATH", "HOME", "LANG", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT"} <= names
    assert names <= {"PATH", "HOME", "LANG", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "TMPDIR", "CODESPACE_EXEC",
                     "PWD"}


async def test_a_live_command_blocks_changes_and_can_be_driven(client: Client) -> None:
    """Checks 40, 41, 42, 52, 53, 74."""
    with anyio.fail_after(SECONDS_MAX):
        process_id = await _exec(client, "bash", "-c", "[ -t 0 ] && read line && echo got $line && stty size; cat",
                                 tty=True)
        assert (await refused(client, "apply_patch", workspace_id="demo", patch=PATCH))["code"] == "WORKSPACE_BUSY"
        busy = await refused(client, "exec_command", workspace_id="demo", command=["true"])
        assert (busy["code"], busy["process_id"]) == ("WORKSPACE_BUSY", process_id)
        resized = await ask(client, "process_resize", process_id=process_id, rows=40, cols=120)
        assert resized == {"ok": True, "rows": 40, "cols": 120}
        assert await ask(client, "write_stdin", process_id=process_id, data="a line\n") == {"ok": True}
        text = ""
        while "40 120" not in text:
            text = (await ask(client, "read_process", process_id=process_id, wait_ms=1_000))["chunk"]
        assert "got a line" in text
        listed = json.loads((await client.read_resource("codespace://processes")).contents[0].text)  # type: ignore[union-attr]
        assert [(each["process_id"], each["live"]) for each in listed["processes"]] == [(process_id, True)]
        await ask(client, "terminate_process", process_id=process_id)
        while not (await ask(client, "process_status", process_id=process_id))["eof"]:
            await anyio.sleep(0.01)
        assert (await ask(client, "apply_patch", workspace_id="demo", patch=PATCH))["status"] == "applied"
        listed = json.loads((await client.read_resource("codespace://processes")).contents[0].text)  # type: ignore[union-attr]
        assert listed["processes"] == []


async def test_refusals_have_their_codes(client: Client) -> None:
    """Checks 38, 45, 54, 79; T-U07."""
    with anyio.fail_after(SECONDS_MAX):
        for workspace_id, command, code in (
            ("nowhere", [], "WORKSPACE_NOT_FOUND"), ("look", [], "UNAUTHORIZED"), ("demo", [], "INVALID_COMMAND"),
            ("demo", ["a\0b"], "INVALID_COMMAND"), ("demo", ["no-such-program"], "PROCESS_SPAWN_FAILED"),
        ):
            error = await refused(client, "exec_command", workspace_id=workspace_id, command=command, approved=True)
            assert error["code"] == code
            assert "operation_id" not in error
        for tool, arguments in (
            ("read_process", {}), ("process_status", {}), ("terminate_process", {}), ("write_stdin", {"data": "x"}),
            ("process_resize", {"rows": 2, "cols": 2}),
        ):
            assert (await refused(client, tool, process_id=NOBODY, **arguments))["code"] == "PROCESS_NOT_FOUND"
        piped = await _exec(client, "sleep", "300")
        error = await refused(client, "process_resize", process_id=piped, rows=2, cols=2)
        assert error["code"] == "PROCESS_NOT_TTY"
        error = await refused(client, "process_resize", process_id=piped, rows=0, cols=2)
        assert error["code"] == "INVALID_COMMAND"
        await ask(client, "terminate_process", process_id=piped, signal="KILL")


async def test_what_confines_commands_is_what_was_found_out(client: Client) -> None:
    """Check 51."""
    with anyio.fail_after(SECONDS_MAX):
        execution = (await ask(client, "workspace_info", workspace_id="demo"))["execution"]
        looking = (await ask(client, "workspace_info", workspace_id="look"))["execution"]
    level = execution["isolation"]["sandbox_level"]
    assert execution["isolation"]["command_sandbox"] == ("linux-sandbox" if level > 1 else "none")
    assert execution["process"]["available"] is True
    assert execution["process"]["capabilities"]["lifetime"]["client_disconnect"] == "keep_running"
    assert execution["serialization"]["live_process_holds_mutation_lease"] is True
    assert looking["process"]["available"] is False
    assert "capabilities" not in looking["process"]


async def test_a_runner_elsewhere_runs_commands_and_its_loss_costs_no_more_than_them(tmp_path: Path) -> None:
    root, place = tmp_path / "ws", tmp_path / "r"
    root.mkdir()
    place.mkdir(mode=0o700)
    socket = place / "s"
    serve = product(tmp_path, f"demo={root}:workspace-write")
    variables = {"CODESPACE_RUNNER": "uds", "CODESPACE_RUNNER_SOCKET": str(socket)}

    async def start_runner() -> anyio.abc.Process:
        runner = await open_server(
            [PRODUCT, "runner", "--socket", str(socket)], env=environment(tmp_path), cwd=tmp_path, stderr=sys.stderr,
            stdout=sys.stdout.fileno(), has_input=False,
        )
        while not socket.is_socket():
            await anyio.sleep(0.01)
        return runner

    with anyio.fail_after(SECONDS_MAX):
        runner = await start_runner()
        async with connected(serve, tmp_path, variables=variables) as client:
            assert await _output(client, await _exec(client, "echo", "there")) == "there\n"
            process_id = await _exec(client, "bash", "-c", "echo said; sleep 300")
            runner.kill()
            await runner.wait()
            await runner.aclose()
            while not (report := await ask(client, "process_status", process_id=process_id))["eof"]:
                await anyio.sleep(0.01)
            assert report["termination"] == "unknown"
            error = await refused(client, "exec_command", workspace_id="demo", command=["true"])
            assert error["code"] == "PROCESS_SPAWN_FAILED"
            socket.unlink()
            runner = await start_runner()
            assert await _output(client, await _exec(client, "echo", "again")) == "again\n"
        runner.send_signal(signal.SIGTERM)
        assert await runner.wait() == 0
        await runner.aclose()
    assert not socket.exists()
