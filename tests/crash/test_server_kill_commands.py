"""A real server is killed while its commands live: nothing of them is left, and the next server says how each ended."""

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.commands import lines_of
from support.process_runner import processes_with, until_gone, until_there
from support.stdio_client import SECONDS_MAX, RawClient, ask, connected, product, raw_client

pytestmark = pytest.mark.anyio

TREE = """
trap '' TERM HUP
echo x >> count
(trap '' TERM HUP; setsid bash -c "trap '' TERM HUP; exec -a MARK-daemon sleep 300" &)
bash -c 'exec -a MARK-child sleep 300' &
echo ready
while :; do sleep 0.05; done
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
def command(tmp_path: Path, root: Path) -> list[str]:
    return product(tmp_path, f"demo={root}:workspace-write")


async def _start_tree(client: RawClient, mark: str, *, tty: bool) -> str:
    """Return the id of a command with children and a daemon that all hold on to life."""
    script = TREE.replace("MARK", mark)
    started = await client.call("exec_command", workspace_id="demo", command=["bash", "-c", script], tty=tty,
                                operation_key="k")
    process_id: str = started["process_id"]
    while "ready" not in (await client.call("read_process", process_id=process_id, wait_ms=1_000))["chunk"]:
        pass
    return process_id


async def test_a_killed_server_leaves_no_process_and_a_record(tmp_path: Path, root: Path, command: list[str]) -> None:
    """T10: a terminal, children, a daemon, all of whom ignore every request to end."""
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            process_id = await _start_tree(client, mark, tty=True)
            await until_there(f"{mark}-daemon", 1)
            client.kill(signal.SIGKILL)
            await until_gone(mark)
        async with connected(command, tmp_path) as client:
            report = await _ended(client, process_id)
            again = await ask(client, "exec_command", workspace_id="demo", operation_key="k", tty=True,
                              command=["bash", "-c", TREE.replace("MARK", mark)])
            piece = await ask(client, "read_process", process_id=process_id)
    assert (report["state"], report["termination"], report["eof"]) == ("exited", "unknown", True)
    assert "exit_code" not in report
    assert (again["process_id"], again["replayed"], again["dispatch_status"]) == (process_id, True, "unknown")
    assert (piece["chunk"], piece["eof"], piece["output_lost"]) == ("", True, True)
    assert lines_of(root / "count") == 1


async def test_a_server_that_is_told_to_end_ends_its_commands_first(tmp_path: Path, command: list[str]) -> None:
    """T20: told twice."""
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            process_id = await _start_tree(client, mark, tty=False)
            client.kill(signal.SIGTERM)
            client.kill(signal.SIGINT)
            assert await client.exit_code() == 0
            assert processes_with(mark) == []
        async with connected(command, tmp_path) as client:
            report = await ask(client, "process_status", process_id=process_id)
            piece = await ask(client, "read_process", process_id=process_id)
    assert report["termination"] == "terminated"
    assert report["descendants_killed"] >= 2
    assert piece["chunk"] == "ready\n"


@pytest.mark.parametrize(("point", "is_recorded"), [("exec.forked", False), ("exec.gone", True)])
async def test_a_server_killed_at_a_moment_of_a_start_never_runs_it_twice(
    tmp_path: Path, root: Path, command: list[str], point: str, is_recorded: bool
) -> None:
    request: dict[str, Any] = {
        "workspace_id": "demo", "command": ["bash", "-c", "echo x >> count"], "operation_key": "k",
    }
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client([*command, "--die-at", point], tmp_path) as client:
            await client.start_call(1, "exec_command", **request)
            assert await client.exit_code() == -signal.SIGKILL
        before = lines_of(root / "count")
        async with connected(command, tmp_path) as client:
            while "code" in (answer := (await client.call_tool("exec_command", request)).structured_content or {}):
                assert answer["code"] == "WORKSPACE_BUSY"  # what the dead server ran is just ending
                await anyio.sleep(0.02)
            report = await _ended(client, answer["process_id"])
    assert bool(answer.get("replayed")) == is_recorded
    assert report["termination"] == ("unknown" if is_recorded else "exited")
    if not is_recorded:
        assert before == 0, "what wasn't let go hasn't run"
        assert lines_of(root / "count") == 1
    assert lines_of(root / "count") <= 1, "it may have come to its end, or not: it was killed with its server"


async def _ended(client: Any, process_id: str) -> dict[str, Any]:
    while not (report := await ask(client, "process_status", process_id=process_id))["eof"]:
        await anyio.sleep(0.02)
    return report
