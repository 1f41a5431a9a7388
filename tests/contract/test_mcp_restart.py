"""Servers come and go over one log: restarts, kills, two at once; what was answered stays true."""

import json
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.clock_and_ids import RandomIds
from adapters.locks.flock import lock_directory_of_user
from adapters.locks.lease import FlockWorkspaceLeases
from adapters.machine import machine_id
from codespace_es.vocabulary.identifiers import workspace_key
from support.stdio_client import (
    SECONDS_MAX,
    RawClient,
    ask,
    connected,
    product,
    raw_client,
    read_log,
    refused,
)
from support.warm_servers import from_nothing

pytestmark = pytest.mark.anyio

_PATCH = "*** Begin Patch\n*** Add File: once.txt\n+once\n*** End Patch\n"
_REQUEST: dict[str, Any] = {"workspace_id": "demo", "patch": _PATCH, "operation_key": "the-key"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
def command(tmp_path: Path, root: Path) -> list[str]:
    return product(tmp_path, f"demo={root}:workspace-write")


async def test_a_restart_forgets_nothing(tmp_path: Path, root: Path, command: list[str]) -> None:
    """Check 75."""
    with anyio.fail_after(SECONDS_MAX):
        async with connected(command, tmp_path) as client:
            done = await ask(client, "apply_patch", **_REQUEST)
        (root / "once.txt").write_text("changed since\n")
        async with connected(from_nothing(command), tmp_path, "2026-07-28") as client:
            told = await ask(client, "operation_status", operation_id=done["operation_id"])
            again = await ask(client, "apply_patch", **_REQUEST)
            other = await refused(client, "apply_patch", **{**_REQUEST, "patch": _PATCH.replace("once.", "twice.")})
    assert told["status"] == "applied"
    assert again == {**done, "replayed": True}
    assert other["code"] == "OPERATION_KEY_CONFLICT"
    assert (root / "once.txt").read_text() == "changed since\n"
    assert not (root / "twice.txt").exists()


async def test_an_end_leaves_a_log_that_says_so(tmp_path: Path, command: list[str]) -> None:
    async def end_by(number: signal.Signals) -> None:
        async with raw_client(command, tmp_path) as client:
            client.kill(number)
            client.kill(number)
            assert await client.exit_code() == 0

    async def end_input() -> None:
        async with raw_client(command, tmp_path) as client:
            await client.end_input()
            assert await client.exit_code() == 0

    async def close_output() -> None:
        async with raw_client(command, tmp_path) as client:
            await client.close_output()
            assert await client.exit_code() == 0

    with anyio.fail_after(SECONDS_MAX):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_by, signal.SIGTERM)
            tasks.start_soon(end_by, signal.SIGINT)
            tasks.start_soon(end_input)
            tasks.start_soon(close_output)
        ends = await _ends(command, tmp_path)
    assert sorted(ends) == ["eof", "output_closed", "signal", "signal"]
    assert "Traceback" not in read_log(tmp_path)


async def _ends(command: list[str], scratch: Path) -> list[str]:
    """Return the reasons for which instances have stopped."""
    async with connected(command, scratch) as client:
        content = (await client.read_resource("codespace://timeline?after=0")).contents[0]
    events = json.loads(content.text)["events"]  # type: ignore[union-attr]
    return [event["event"]["reason"] for event in events if event["topic"] == "instance.stopped.v1"]


@pytest.mark.parametrize(("point", "status"), [
    ("patch.minted", "failed_rolled_back"), ("patch.written", "applied"),
])
async def test_a_server_killed_in_the_middle_is_settled_by_whoever_asks(
    tmp_path: Path, command: list[str], point: str, status: str
) -> None:
    """Checks 70, 76."""
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client([*command, "--die-at", point], tmp_path) as client:
            await client.start_call(1, "apply_patch", **_REQUEST)
            assert await client.exit_code() == -signal.SIGKILL
        async with connected(command, tmp_path) as client:
            while (told := await ask(client, "operation_status", operation_key="the-key"))["status"] == "unknown":
                await anyio.sleep(0.02)  # another server, or the start of this one, is settling it
            again = await ask(client, "apply_patch", **_REQUEST)
    assert (told["status"], told["events"][-1].get("reason")) == (status, "recovered")
    assert (again["status"], again["replayed"], again["operation_id"]) == (status, True, told["operation_id"])
    assert (tmp_path / "ws" / "once.txt").exists() == (status == "applied")


async def test_two_servers_with_one_key_apply_it_once(tmp_path: Path, root: Path, command: list[str]) -> None:
    answers: list[dict[str, Any]] = []

    async def send(client: RawClient) -> None:
        answers.append(await client.call("apply_patch", **_REQUEST))

    with anyio.fail_after(SECONDS_MAX):
        async with (
            raw_client(command, tmp_path) as first,
            raw_client(command, tmp_path) as second,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(send, first)
            tasks.start_soon(send, second)
    assert [answer["status"] for answer in answers] == ["applied", "applied"]
    assert sorted(answer["replayed"] for answer in answers) == [False, True]
    assert len({answer["operation_id"] for answer in answers}) == 1
    assert (root / "once.txt").read_text() == "once\n"


async def test_a_patch_that_has_begun_is_finished_although_it_is_cancelled_and_the_server_told_to_end(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    files = [f"{number}.txt" for number in range(150)]
    patch = "*** Begin Patch\n" + "".join(f"*** Add File: {name}\n+text\n" for name in files) + "*** End Patch\n"
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            await client.start_call("patch", "apply_patch", **{**_REQUEST, "patch": patch})
            await _wait_until_minted(client)
            await client.send({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "patch"},
            })
            client.kill(signal.SIGINT)
            client.kill(signal.SIGTERM)
            assert await client.exit_code() == 0
        async with connected(command, tmp_path) as client:
            told = await ask(client, "operation_status", operation_key="the-key")
    assert told["status"] == "applied"
    assert "reason" not in told["events"][-1]
    assert sorted(each.name for each in root.iterdir()) == sorted(files)


async def _wait_until_minted(client: RawClient) -> None:
    number = 0
    while True:
        number += 1
        await client.start_call(number, "operation_status", operation_key="the-key")
        answer = await client.receive()
        if answer["id"] == "patch" or not answer["result"]["isError"]:
            return


async def test_a_waiting_call_reports_progress_and_leaves_no_trace_when_it_is_cancelled(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    locks = lock_directory_of_user()
    key = workspace_key(machine_id(Path(locks), RandomIds()), str(root.resolve()))
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            lease = await FlockWorkspaceLeases(locks).acquire(key, refuse=_refuse_nothing, on_wait=_say_nothing)
            await client.start_call(1, "apply_patch", {"progressToken": 9}, **_REQUEST)
            progress = await client.receive()
            await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
            assert (await client.call("operation_status", operation_key="the-key"))["code"] == "OPERATION_NOT_FOUND"
            lease.release()
            assert (await client.call("operation_status", operation_key="the-key"))["code"] == "OPERATION_NOT_FOUND"
            assert not (root / "once.txt").exists()
            assert (await client.call("apply_patch", **_REQUEST))["replayed"] is False
    assert progress["method"] == "notifications/progress"
    assert progress["params"]["progressToken"] == 9


async def _refuse_nothing() -> None:
    return None


async def _say_nothing(_seconds: float) -> None:
    return None


async def test_a_root_that_is_gone_fails_the_call_and_not_the_server(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    """Check 65."""
    with anyio.fail_after(SECONDS_MAX):
        async with connected(command, tmp_path) as client:
            root.rmdir()
            assert (await refused(client, "find", workspace_id="demo"))["code"] == "FILE_OPERATION_FAILED"
            assert (await refused(client, "apply_patch", **_REQUEST))["code"] == "FILE_OPERATION_FAILED"
            assert (await ask(client, "workspace_info"))["server"] == "codespace"
