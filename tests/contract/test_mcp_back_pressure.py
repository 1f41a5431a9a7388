"""A client that asks for more than it reads costs little, holds up nobody else, and loses nothing."""

import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.mcp_server.back_pressure import CALLS_AT_ONCE
from codespace_es.vocabulary.limits import MIB
from support.stdio_client import SECONDS_MAX, RawClient, product, raw_client

pytestmark = pytest.mark.anyio

REQUESTS = 100
"""Of a mebibyte each, told twice: without either bound they fill 480 mebibytes, without both 800."""
SERVER_MEBIBYTES_MAX = 350


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "large.txt").write_text("x" * MIB)
    return made


@pytest.fixture
async def client(tmp_path: Path, root: Path) -> AsyncIterator[RawClient]:
    async with raw_client(product(tmp_path, f"demo={root}:workspace-write"), tmp_path) as connection:
        yield connection


def peak_mebibytes(client: RawClient) -> int:
    status = Path(f"/proc/{client.process.pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) // 1024


async def ask_much_and_read_nothing(client: RawClient) -> None:
    for number in range(REQUESTS):
        await client.start_call(number, "read", workspace_id="demo", path="large.txt")
    # The first answer has begun to come: the server is at work.
    await anyio.wait_readable(client._pipe._fd)  # type: ignore[arg-type]  # it is open


async def test_a_client_that_reads_late_gets_every_answer_and_costs_little(client: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await ask_much_and_read_nothing(client)
        answers = [await client.receive() for _ in range(REQUESTS)]
        peak = peak_mebibytes(client)
        assert "result" in await client.ask("ping")
    assert sorted(answer["id"] for answer in answers) == list(range(REQUESTS))
    assert all(answer["result"]["structuredContent"]["byte_count"] == MIB for answer in answers)
    assert peak < SERVER_MEBIBYTES_MAX


@pytest.mark.parametrize("how", ["eof", "signal"])
async def test_a_client_that_reads_nothing_cannot_keep_the_server(client: RawClient, how: str) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await ask_much_and_read_nothing(client)
        if how == "eof":
            await client.end_input()
        else:
            client.kill(signal.SIGTERM)
        assert await client.exit_code() == 0


async def test_a_call_that_waits_for_room_can_be_cancelled(client: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await ask_much_and_read_nothing(client)
        last = REQUESTS - 1
        await client.send({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": last},
        })
        answers = [await client.receive() for _ in range(last)]
        assert "result" in await client.ask("ping")
    assert last not in {answer["id"] for answer in answers}


async def test_many_searches_hold_up_no_read(client: RawClient, root: Path) -> None:
    """The searches that wait for their turn are still unanswered when the read is."""
    (root / "hay.txt").write_text("needle in no way\n" * 200_000)
    searches = CALLS_AT_ONCE["search"] * 10
    query: dict[str, Any] = {"workspace_id": "demo", "pattern": "n.*e.*e.*d.*x", "regex": True}
    with anyio.fail_after(SECONDS_MAX):
        for number in range(searches):
            await client.start_call(number, "search", **query)
        await client.start_call("read", "read", workspace_id="demo", path="large.txt", limit=10)
        order = [(await client.receive())["id"] for _ in range(searches + 1)]
    assert order.index("read") < searches - CALLS_AT_ONCE["search"]
