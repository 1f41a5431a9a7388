"""Failing system calls in a whole real server, by strace: it is right or it refuses, and never says what isn't so (T8).

The k-th call of one kind fails, or kills the server, while a client applies patches. A healthy server then answers for
every request, and log, files and answers have to say the same.
"""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.verify import verify
from replay.workspace_check import check_workspace
from support.crash_faults import count
from support.stdio_client import SECONDS_MAX, RawClient, product, raw_client

pytestmark = pytest.mark.anyio

CALLS = ("fdatasync", "fsync", "pwrite64", "renameat2")
EFFECTS = ("error=EIO", "error=ENOSPC", "signal=SIGKILL")
NUMBERS = (1, 4)
ALL_NUMBERS = range(1, 25)
REQUESTS = 3
FINAL = {"applied", "failed_rolled_back"}
CONNECTION_CLOSED = -32000
GONE = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)


@pytest.fixture(autouse=True)
def strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("SKIPPED SYSTEM CALL FAULTS: strace isn't installed")


def request(number: int) -> dict[str, Any]:
    """Return the arguments of a patch of one file that makes another."""
    text = f"*** Update File: a.txt\n@@\n top\n+{number}\n*** Add File: new/{number}.txt\n+{number}\n"
    return {"workspace_id": "demo", "operation_key": str(number),
            "patch": f"*** Begin Patch\n{text}*** End Patch\n"}


@asynccontextmanager
async def failing(client: RawClient, injection: str, scratch: Path) -> AsyncIterator[None]:
    """Have every thread of the server meet the injection until the server or the block ends."""
    call = injection.partition(":")[0]
    command = ["strace", "-f", "-q", "-o", str(scratch / "strace"), "-p", str(client.process.pid),
               "-e", f"trace={call}", "-e", f"inject={injection}"]
    async with await anyio.open_process(command) as tracer:
        status = Path(f"/proc/{client.process.pid}/status")
        while not re.search(r"TracerPid:\t[1-9]", status.read_text()):
            if tracer.returncode is not None:
                pytest.skip("SKIPPED SYSTEM CALL FAULTS: strace can't attach here")
            await anyio.sleep(0.002)
        yield
        client.process.kill()
        await client.exit_code()
        await tracer.wait()


async def ask_all(client: RawClient) -> dict[int, dict[str, Any]]:
    """Return what was answered, by request, until the server was gone."""
    answers: dict[int, dict[str, Any]] = {}
    for number in range(REQUESTS):
        try:
            answer = await client.ask("tools/call", {"name": "apply_patch", "arguments": request(number)})
        except GONE:
            break
        if "error" in answer:  # a server that ends, since its log's disk failed, promises nothing for what is under way
            assert answer["error"]["code"] == CONNECTION_CLOSED, answer
            break
        answers[number] = answer["result"]["structuredContent"]
    return answers


async def check_one(scratch: Path, injection: str) -> None:
    root = scratch / "ws"
    root.mkdir(parents=True)
    (root / "a.txt").write_text("top\n")
    command = product(scratch, f"demo={root}:workspace-write")
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, scratch) as client, failing(client, injection, scratch):
            told = await ask_all(client)
        async with raw_client(command, scratch) as client:
            now = await ask_all(client)
            await client.end_input()
            assert await client.exit_code() == 0
    for number, answer in told.items():
        if answer.get("status") in FINAL:
            assert (now[number]["status"], now[number]["operation_id"]) == (answer["status"], answer["operation_id"])
        elif answer.get("code") == "SERVER_SHUTTING_DOWN":  # it came when the log had failed: it says nothing was done
            assert not now[number].get("replayed"), (answer, now[number])
        else:
            outcome = answer.get("status") or answer["code"]
            assert outcome in {"STORE_UNAVAILABLE", "unknown", "failed_partial"}, answer
    assert set(now) == set(range(REQUESTS))
    lines = (root / "a.txt").read_text().splitlines()
    for number, answer in now.items():
        is_there = answer["status"] == "applied"
        assert (lines.count(str(number)), (root / f"new/{number}.txt").exists()) == (int(is_there), is_there), answer
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as reader:
        assert verify(reader).findings == ()
        assert check_workspace(reader, root).problems == ()
    is_injected = "INJECTED" in (traced := (scratch / "strace").read_text()) or "killed by SIGKILL" in traced
    count("failing system calls in a real server", int(is_injected))


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "numbers", [NUMBERS, pytest.param(ALL_NUMBERS, marks=pytest.mark.soak)], ids=["some", "all"]
)
async def test_whatever_call_fails_the_server_is_right_or_refuses(
    tmp_path: Path, call: str, effect: str, numbers: range | tuple[int, ...]
) -> None:
    for number in numbers:
        await check_one(tmp_path / str(number), f"{call}:{effect}:when={number}")
