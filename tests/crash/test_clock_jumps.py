"""A wall clock that jumps by hours, either way: nothing is ordered by it, and no time limit hangs on it (T17)."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from adapters.clock_and_ids import SystemClock
from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from support.commands import SECONDS_MAX, Commands
from support.holds import addition, audit
from support.server import Server

pytestmark = pytest.mark.anyio


class JumpingClock(SystemClock):
    """Its wall is anywhere within two hours; the other clock is the machine's."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) + timedelta(seconds=self._chance.uniform(-3600, 3600))


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_wall_clock_that_jumps_orders_nothing_and_ends_nothing(memory_path: Path, seed: int) -> None:
    root = memory_path / "demo"
    root.mkdir()
    clock = JumpingClock(seed)
    with anyio.fail_after(SECONDS_MAX):
        async with Server(memory_path, {"demo": root}, sandbox="off", clock=clock) as server:
            for number in range(5):
                await server.handle(addition(f"{number}.txt", key=str(number)))
            report, said = await Commands(server).run("sh", "-c", "sleep 0.2; echo on", workspace_id="demo")
            assert (report.termination, said) == ("exited", "on\n")
        async with Server(memory_path, {"demo": root}, sandbox="off", clock=clock) as server:
            assert (await server.handle(addition("0.txt", key="0"))).to_wire()["replayed"] is True
    assert audit(memory_path).findings == ()
    with LogReader(memory_path / "data" / "codespace.db", CATALOGUE) as reader:
        recorded = list(reader.read_log())
    assert [entry.position for entry in recorded] == list(range(1, len(recorded) + 1))
    times = [entry.envelope.recorded_at for entry in recorded]
    assert times != sorted(times), "the clock never jumped back"


async def test_a_time_limit_is_kept_by_a_clock_that_only_runs(memory_path: Path) -> None:
    root = memory_path / "demo"
    root.mkdir()
    with anyio.fail_after(SECONDS_MAX):
        async with Server(
            memory_path, {"demo": root}, sandbox="off", clock=JumpingClock(3), process_timeout_seconds=1
        ) as server:
            started = anyio.current_time()
            commands = Commands(server)
            report = await commands.ended(await commands.start("sleep", "300", workspace_id="demo"))
            assert report.termination == "timeout"
            assert anyio.current_time() - started >= 1
