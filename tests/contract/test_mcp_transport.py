"""The stdio transport: how it ends, what it protects, and that one call never harms another."""

import json
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.stdio_client import SECONDS_MAX, RawClient, environment, raw_client, read_log, scripted_door
from support.warm_servers import open_server

pytestmark = pytest.mark.anyio

_FOREVER = {"workspace_id": "w", "path": "forever"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RawClient]:
    async with raw_client(scripted_door(), tmp_path_factory.mktemp("shared")) as client:
        yield client


@pytest.fixture
def server(shared: RawClient) -> RawClient:
    shared.forget_log()
    return shared


async def _wait_for_ever(client: RawClient, identifier: int | str = 1) -> None:
    await client.start_call(identifier, "read", **_FOREVER)
    await client.log_has("waiting")


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
async def test_the_end_of_input_ends_the_server(tmp_path: Path, is_busy: bool) -> None:
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            if is_busy:
                await _wait_for_ever(client)
            await client.end_input()
            assert await client.exit_code() == 0
        assert "stopped eof" in client.log
        assert ("cancelled" in client.log) == is_busy


@pytest.mark.parametrize("signals", [
    [signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT, signal.SIGINT],
], ids=lambda signals: "+".join(each.name for each in signals))
async def test_a_signal_ends_the_server_although_its_input_stays_open(
    tmp_path: Path, signals: list[signal.Signals]
) -> None:
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            await _wait_for_ever(client)
            for number in signals:
                client.kill(number)
            answer = await client.receive()
            assert await client.exit_code() == 0
        assert answer["id"] == 1
        assert "error" in answer
        assert "stopped signal" in client.log
        assert "Traceback" not in client.log


@pytest.mark.parametrize("is_signal", [True, False], ids=["signal", "eof"])
async def test_the_server_answers_as_long_as_its_door_is_closing(tmp_path: Path, is_signal: bool) -> None:
    """Also who speaks only then, while the input is open: what the door says to that is the door's."""
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            await client.start_call(1, "read", workspace_id="w", path="hold")
            await client.log_has("held")
            if is_signal:
                client.kill(signal.SIGTERM)
                await client.log_has("closing")
                await client.start_call(2, "read", workspace_id="w", path="let_go")
            else:
                await client.start_call(2, "read", workspace_id="w", path="let_go")
                await client.end_input()
            answers = [await client.receive() for _ in range(2)]
            assert await client.exit_code() == 0
    assert {answer["id"] for answer in answers if not answer["result"]["isError"]} == {1, 2}


async def test_what_was_sent_before_a_signal_is_answered_although_it_is_read_after_it(tmp_path: Path) -> None:
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            client.kill(signal.SIGSTOP)
            client.kill(signal.SIGTERM)
            for number in range(20):
                await client.start_call(number, "read", workspace_id="w", path="length:22")
            client.kill(signal.SIGCONT)
            answers = [await client.receive() for _ in range(20)]
            assert await client.exit_code() == 0
    assert {answer["id"] for answer in answers if "result" in answer} == set(range(20))


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
async def test_a_client_that_reads_no_more_ends_the_server(tmp_path: Path, is_busy: bool) -> None:
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            if is_busy:
                await _wait_for_ever(client)
            await client.close_output()
            assert await client.exit_code() == 0
        assert "stopped output_closed" in client.log


async def test_requests_sent_before_the_end_of_input_are_answered(tmp_path: Path) -> None:
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            for number in range(20):
                await client.start_call(number, "read", workspace_id="w", path=f"length:{number}")
            await client.send_bytes(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
            await client.end_input()
            answers = [await client.receive() for _ in range(21)]
            assert await client.exit_code() == 0
    assert {answer["id"] for answer in answers if "result" in answer} == {*range(20), "last"}


async def test_a_client_that_stops_reading_cannot_keep_the_server_alive(tmp_path: Path) -> None:
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            for number in range(4):
                await client.start_call(number, "read", workspace_id="w", path=f"big:{1024 * 1024}")
            await client.output.receive_exactly(10)
            client.kill(signal.SIGTERM)
            assert await client.exit_code() == 0
    assert "stopped signal" in read_log(tmp_path)


async def test_stray_prints_and_children_touch_neither_end_of_the_wire(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await server.start_call(1, "read", workspace_id="w", path="stray")
        await server.start_call(2, "read", workspace_id="w", path="length:22")
        answers = {answer["id"]: answer for answer in [await server.receive(), await server.receive()]}
    assert not answers[1]["result"]["isError"]
    assert answers[2]["result"]["structuredContent"]["content"] == "2"
    assert "STRAY from python" in server.log
    assert "STRAY from a child" in server.log


async def test_half_characters_in_a_result_are_shown_and_end_nothing(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        found = await server.call("read", workspace_id="w", path="half")
        await server.call("read", workspace_id="w", path="length:")
    assert found["path"] == "half\\xe9\\ud800"
    assert found["content"] == "content\\xff"


async def test_a_cancelled_call_is_never_answered_and_its_id_is_free_again(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await _wait_for_ever(server)
        await server.send({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "enough"},
        })
        await server.log_has("cancelled")
        await server.start_call(1, "read", workspace_id="w", path="length:again")
        answer = await server.receive()
    assert answer["result"]["structuredContent"]["content"] == "5"


async def test_a_second_request_with_an_id_in_use_does_not_run(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await _wait_for_ever(server, 77)
        await server.start_call("77", "read", workspace_id="w", path="length:x")
        answer = await server.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert '"77"' in answer["error"]["message"]
        assert "result" in await server.ask("ping")


async def test_long_waits_are_reported_to_a_client_that_asked(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await server.start_call(3, "read", {"progressToken": "t"}, workspace_id="w", path="progress")
        told = [await server.receive() for _ in range(3)]
        silent = await server.call("read", workspace_id="w", path="progress")
    assert [each.get("method") for each in told] == ["notifications/progress", "notifications/progress", None]
    assert [each["params"]["progress"] for each in told[:2]] == [5.0, 10.0]
    assert told[0]["params"]["progressToken"] == "t"
    assert silent["content"] == "0"


async def test_a_surprise_is_answered_with_an_incident_that_the_log_explains(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        found = await server.call("read", workspace_id="w", path="surprise")
    assert found["code"] == "INTERNAL"
    incident = found["detail"]["incident"]
    assert incident.startswith("inc-")
    assert incident in found["message"]
    assert "secret" not in str(found)
    assert incident in server.log
    assert "the secret of the server" in server.log


@pytest.mark.parametrize(("code", "is_recorded"), [
    ("UNAUTHORIZED", True), ("PATH_ESCAPE", True), ("WORKSPACE_BUSY", True), ("FILE_NOT_FOUND", False),
])
async def test_a_refused_read_is_recorded_where_an_audit_would_miss_it(
    server: RawClient, code: str, is_recorded: bool
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        found: dict[str, Any] = await server.call("read", workspace_id="w", path=f"refuse:{code}")
    assert found["code"] == code
    assert set(found) >= {"code", "message", "retry", "remedy"}
    assert (f"refused read {code} by raw/1 mcp" in server.log) == is_recorded


async def test_a_result_of_many_megabytes_arrives_whole(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        found = await server.call("read", workspace_id="w", path="big:5000000")
    assert found["content"] == "x" * 5_000_000


async def test_every_handshake_version_of_the_contract_is_negotiated(tmp_path: Path) -> None:
    agreed: dict[str, str] = {}

    async def connect(offered: str) -> None:
        handshake = {"protocolVersion": offered, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        async with raw_client(scripted_door(), tmp_path, initializes=False) as client:
            answer = await client.ask("initialize", handshake)
            told = await client.ask("tools/call", {"name": "read", "arguments": {"workspace_id": "w", "path": "x"}})
        assert set(answer["result"]["capabilities"]) == {"tools", "resources"}
        assert told["result"]["content"][0]["type"] == "text"
        agreed[offered] = answer["result"]["protocolVersion"]

    with anyio.fail_after(SECONDS_MAX):
        async with anyio.create_task_group() as tasks:
            for offered in ("2025-03-26", "2025-06-18", "2025-11-25", "2099-01-01"):
                tasks.start_soon(connect, offered)
    assert agreed == {
        "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2099-01-01": "2025-11-25",
    }


@pytest.mark.parametrize("is_one", [True, False], ids=["one for both ways", "one each way"])
async def test_sockets_serve_as_well_as_pipes(tmp_path: Path, is_one: bool) -> None:
    near, far = socket.socketpair()
    other_near, other_far = (near, far) if is_one else socket.socketpair()
    with near, far, other_near, other_far:
        with (tmp_path / "server.log").open("ab") as log:
            process = await open_server(
                scripted_door(), env=environment(tmp_path), cwd=tmp_path, stdin=far.fileno(),
                stdout=other_far.fileno(), stderr=log,
            )
        far.close()
        other_far.close()
        async with process:
            with anyio.fail_after(SECONDS_MAX):
                near.sendall(b'nonsense\n{"jsonrpc":"2.0","id":5,"method":"ping"}\n')
                answers = b""
                while answers.count(b"\n") < 2:
                    await anyio.wait_readable(other_near)
                    answers += other_near.recv(65536)
                other_near.close()
                assert await process.wait() == 0
    assert b'"id":5' in answers
    assert ("stopped " if is_one else "stopped output_closed") in read_log(tmp_path)


_PINGS = '{"jsonrpc":"2.0","id":1,"method":"ping"}\nnonsense\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n'


@pytest.mark.parametrize(("source", "target", "reason"), [
    ("requests", "answers", "eof"),
    ("requests", "/dev/full", "output_closed"),
    (None, "answers", "eof"),
    ("requests", None, "eof"),
    ("/dev/null", "/dev/null", "eof"),
])
async def test_files_full_devices_and_closed_streams_are_served_to_an_end(
    tmp_path: Path, source: str | None, target: str | None, reason: str
) -> None:
    (tmp_path / "requests").write_text(_PINGS)
    command = scripted_door()
    if source is None or target is None:  # that a stream is closed has to be so from the interpreter's beginning
        closed = "<&-" if source is None else ">&-"
        command = ["sh", "-c", f"exec {' '.join(command)} {closed}"]
    with (
        (tmp_path / (source or "/dev/null")).open("rb") as requests,
        (tmp_path / (target or "/dev/null")).open("wb") as answers,
        (tmp_path / "server.log").open("ab") as log,
    ):
        process = await open_server(
            command, env=environment(tmp_path), cwd=tmp_path, stdin=requests.fileno(), stdout=answers.fileno(),
            stderr=log,
        )
    async with process:
        with anyio.fail_after(SECONDS_MAX):
            assert await process.wait() == 0
    log_text = read_log(tmp_path)
    assert f"stopped {reason}" in log_text
    assert "Traceback" not in log_text
    if (source, target) == ("requests", "answers"):
        answers = [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]
        assert sorted(str(answer["id"]) for answer in answers) == ["1", "2", "None"]
