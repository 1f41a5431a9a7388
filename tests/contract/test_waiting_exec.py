"""`exec_command` with `wait_ms` over a real connection: the end, the output and the exit code in one answer."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.holds import grant, hold, resume, script
from support.server import Server
from support.stdio_client import SECONDS_MAX, ask, connected, product, refused

pytestmark = pytest.mark.anyio

LONG_MS = 30_000


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    scratch = tmp_path_factory.mktemp("server")
    (scratch / "ws").mkdir()
    command = product(scratch, f"demo={scratch / 'ws'}:workspace-write")
    async with connected(command, scratch, "2026-07-28") as connection:
        with anyio.fail_after(SECONDS_MAX):
            yield connection


async def run(client: Client, *argv: str, wait_ms: int = LONG_MS, **fields: Any) -> dict[str, Any]:
    answer = await ask(client, "exec_command", workspace_id="demo", command=list(argv), wait_ms=wait_ms, **fields)
    assert answer.pop("process_id").startswith("proc-")
    assert answer.pop("dispatch_status") == "confirmed"
    return answer


async def test_the_end_comes_with_the_answer(client: Client) -> None:
    assert await run(client, "bash", "-c", "echo hello; exit 3") == {
        "state": "exited", "termination": "exited", "exit_code": 3, "output": "hello\n", "cursor": 6, "eof": True,
    }
    ended = await run(client, "bash", "-c", "printf ä; kill -KILL $$")
    assert ended == {
        "state": "exited", "termination": "signaled", "signal": {"number": 9, "name": "SIGKILL"}, "output": "ä",
        "cursor": 2, "eof": True,
    }


async def test_a_time_limit_is_told_with_or_without_output(client: Client) -> None:
    for text, output in (("sleep 600", ""), ("echo hi; sleep 600", "hi\n")):
        assert await run(client, "bash", "-c", text, timeout_ms=200) == {
            "state": "exited", "termination": "timeout", "output": output, "cursor": len(output), "eof": True,
        }


async def test_when_the_time_is_over_it_goes_on(client: Client) -> None:
    started = await ask(client, "exec_command", workspace_id="demo", command=["cat"], wait_ms=1)
    assert {key: started[key] for key in ("state", "output", "cursor", "eof")} == {
        "state": "running", "output": "", "cursor": 0, "eof": False,
    }
    await ask(client, "write_stdin", process_id=started["process_id"], data="word", eof=True)
    piece = await ask(client, "read_process", process_id=started["process_id"], wait_ms=LONG_MS)
    assert piece["chunk"] == "word"
    await until_exited(client, started["process_id"])


async def test_much_output_begins_in_the_answer_and_is_read_on(client: Client) -> None:
    process = await ask(
        client, "exec_command", workspace_id="demo", command=["bash", "-c", "yes | head -c 100000"], wait_ms=LONG_MS)
    assert (process["state"], process["cursor"], process["eof"]) == ("exited", 65_536, False)
    rest = await ask(client, "read_process", process_id=process["process_id"], cursor=process["cursor"])
    assert process["output"] + rest["chunk"] == "y\n" * 50_000
    assert rest["eof"]
    lost = await ask(
        client, "exec_command", workspace_id="demo", command=["bash", "-c", "yes | head -c 1000000"], wait_ms=LONG_MS)
    assert (lost["output_lost"], lost["eof"]) == (True, False)


async def test_a_repeat_of_the_key_answers_the_same_and_may_wait_longer(client: Client) -> None:
    call = {"workspace_id": "demo", "command": ["bash", "-c", "echo once"], "operation_key": "once"}
    first = await ask(client, "exec_command", **call)
    assert set(first) == {"process_id", "dispatch_status"}
    for wait_ms in (LONG_MS, 1, 0):
        again = await ask(client, "exec_command", **call, wait_ms=wait_ms)
        assert (again["process_id"], again["replayed"]) == (first["process_id"], True)
        assert again.get("output") == ("once\n" if wait_ms else None)


async def test_what_isnt_started_is_refused_at_once_and_a_wait_has_a_limit(client: Client) -> None:
    missing = {"workspace_id": "demo", "command": ["no-such-program"]}
    assert (await refused(client, "exec_command", **missing, wait_ms=LONG_MS))["code"] == "PROCESS_SPAWN_FAILED"
    for wait_ms in (-1, LONG_MS + 1):
        error = await refused(client, "exec_command", workspace_id="demo", command=["true"], wait_ms=wait_ms)
        assert "wait_ms" in str(error)


async def test_who_stops_waiting_leaves_it_running(client: Client) -> None:
    call = {"workspace_id": "demo", "command": ["cat"], "operation_key": "left"}
    with anyio.move_on_after(0.2):
        await ask(client, "exec_command", **call, wait_ms=LONG_MS)
    again = await ask(client, "exec_command", **call)
    report = await ask(client, "process_status", process_id=again["process_id"])
    assert (again["replayed"], report["state"]) == (True, "running")
    await ask(client, "terminate_process", process_id=again["process_id"])
    await until_exited(client, again["process_id"])


async def test_how_long_one_waits_makes_no_other_request_to_be_held(tmp_path: Path) -> None:
    async with Server(tmp_path, {"demo": tmp_path}, approvals="confirm") as server:
        held = await hold(server, script("echo hi"))
        patient = script("echo hi").model_copy(update={"wait_ms": LONG_MS})
        assert await hold(server, patient) == held
        await grant(server, held)
        assert set((await resume(server, held))["exec_command"]) == {"process_id", "dispatch_status"}


async def until_exited(client: Client, process_id: str) -> None:
    while (await ask(client, "process_status", process_id=process_id))["state"] == "running":
        await anyio.sleep(0.01)
