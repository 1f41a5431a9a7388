"""A real server ends, in good order or by a kill, while its workers search: they end too. Nobody else has to wait."""

import signal
from pathlib import Path

import anyio
import psutil
import pytest

from support.stdio_client import SECONDS_MAX, RawClient, product, raw_client

pytestmark = pytest.mark.anyio

FILES = 16


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    root = tmp_path / "ws"
    root.mkdir()
    for number in range(FILES):
        (root / f"file{number}.py").write_text("x = [f(1), f(2), f(3)]\n" * 500)
    return product(tmp_path, f"demo={root}:workspace-write")


def workers_of(client: RawClient) -> list[psutil.Process]:
    children = psutil.Process(client.process.pid).children(recursive=True)
    return [each for each in children if any(part.endswith("structural/worker.py") for part in each.cmdline())]


async def start_search(client: RawClient) -> list[psutil.Process]:
    """Return the workers, which are in the middle of a search."""
    await client.call("ast_grep", workspace_id="demo", pat="f($A)", limit=1)
    await client.start_call("search", "ast_grep", workspace_id="demo", pat="f($A, $B)", limit=1)
    workers = workers_of(client)
    assert workers
    return workers


async def until_dead(workers: list[psutil.Process]) -> None:
    while any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in workers):
        await anyio.sleep(0.01)


async def test_workers_end_with_a_server_that_is_killed(tmp_path: Path, command: list[str]) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            workers = await start_search(client)
            client.kill(signal.SIGKILL)
            await until_dead(workers)


async def test_workers_end_with_a_server_that_ends_in_good_order(tmp_path: Path, command: list[str]) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            workers = await start_search(client)
            await client.end_input()
            assert await client.exit_code() == 0
            await until_dead(workers)


async def test_a_cancelled_search_holds_up_nobody_and_every_worker_may_be_killed(
    tmp_path: Path, command: list[str]
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            await start_search(client)
            await client.send({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "search"},
            })
            found = await client.call("ast_grep", workspace_id="demo", pat="f($A)", limit=1)
            assert len(found["matches"]) == 1
            for worker in workers_of(client):
                worker.kill()
            found = await client.call("ast_grep", workspace_id="demo", pat="f($A)", limit=1, offset=1)
            assert (len(found["matches"]), "skipped" in found) == (1, False)
