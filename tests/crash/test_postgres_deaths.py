"""PostgreSQL killed under load, sessions ended, connections cut when the commit was on its way (T18).

Nothing that was acknowledged is lost, nothing is stored twice, and who asks is told the truth (I1, I2). The seed is
printed: `FIRE_SEED=… pytest …` gives the same requests, though not the same moments.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from adapters.log.reader import LogReader
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import StoreUnavailableError
from crash.test_server_under_fire import CALLERS, Fire, Killed, Session, _compare_with_log
from replay.verify import verify
from replay.workspace_check import check_workspace
from support.crash_faults import count
from support.faulty_line import Fault, FaultyLine
from support.fire import broken_promises, lay_out
from support.postgres import PostgresServer
from support.stdio_client import read_log
from unit.log.sample_events import CALLER, finished, make_log, minted, operation, started
from unit.log.sample_events import CATALOGUE as SAMPLES

pytestmark = pytest.mark.anyio

GATEWAYS = 2
_END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'codespace-es'"


@pytest.fixture
def mortal(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """Yield a server of this test's own, which may die. The session's one says whether any can be had."""
    server = PostgresServer()
    yield server
    server.stop()


@dataclass
class Storm(Fire):
    """Gateways and their clients on a PostgreSQL that somebody kills."""

    server: PostgresServer = field(kw_only=True)
    address: PostgresAddress = field(kw_only=True)
    is_over: bool = False
    serving: int = 0
    """Gateways that have begun: one that begins while its database is away ends, as its page says."""

    def __post_init__(self) -> None:
        super().__post_init__()
        configuration = self.scratch / "store.toml"
        configuration.write_text(f'store = "{self.address.url}"\n', encoding="utf-8")
        self.command += ["--config", str(configuration)]

    async def burn(self) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(GATEWAYS):
                tasks.start_soon(self._serve)
            while self.serving < GATEWAYS:
                await anyio.sleep(0.01)
            while self.kills_left > 0:
                await anyio.sleep(0.3 + self.chance.random())
                await self._strike()
            await anyio.sleep(0.5)
            self.is_over = True

    async def _strike(self) -> None:
        if self.chance.random() < 0.4:
            await anyio.to_thread.run_sync(self.server.query, _END_SESSIONS)
            self.ledger.totals["sessions ended"] += 1
            return
        await anyio.to_thread.run_sync(self.server.kill)
        await anyio.sleep(self.chance.random() * 0.5)
        await anyio.to_thread.run_sync(self.server.start)
        self.kills_left -= 1
        self.ledger.totals["kills"] += 1

    async def _serve(self) -> None:
        async with self._connected() as (session, tasks):
            self.serving += 1
            async with anyio.create_task_group() as callers:
                for _ in range(CALLERS):
                    callers.start_soon(self._call_until_over, session)
            assert not session.is_over, "a gateway ended, though its server came back"
            await session.client.end_input()
            assert await session.client.exit_code() == 0
            tasks.cancel_scope.cancel()

    async def _call_until_over(self, session: Session) -> None:
        while not self.is_over and not session.is_over:
            request = self.workload.next()
            try:
                answer = await session.ask(request)
            except Killed:
                return
            self.ledger.note(request, answer)
            if "operation_id" not in answer:
                self.workload.put_back(request)
                await anyio.sleep(0.05)

    def _open_items(self) -> int:
        with LogReader(self.address, CATALOGUE) as reader:
            return len(reader.open_items())


async def storm(scratch: Path, server: PostgresServer, kills: int) -> None:
    seed = int(os.environ.get("FIRE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"FIRE_SEED={seed}")
    weather = Storm(scratch, kills, random.Random(seed), server=server, address=server.new_log())
    for root in weather.roots.values():
        lay_out(root)
    with anyio.fail_after(1_800):
        await weather.burn()
    await weather.settle_accounts()
    ledger = weather.ledger
    print(dict(ledger.totals))
    assert list(broken_promises(ledger, weather.roots)) == []
    with LogReader(weather.address, CATALOGUE) as reader:
        report = verify(reader)
        assert report.findings == ()
        assert report.open_items == 0
        for root in weather.roots.values():
            assert check_workspace(reader, root).problems == ()
        _compare_with_log(ledger, reader)
    assert "Traceback" not in read_log(scratch)
    for name in ("kills", "sessions ended", "applied", "replayed"):
        count(f"PostgreSQL under load: {name}", ledger.totals[name])


async def test_what_gateways_acknowledged_outlives_their_killed_database(
    mortal: PostgresServer, tmp_path: Path
) -> None:
    await storm(tmp_path, mortal, kills=3)


@pytest.mark.soak
async def test_what_gateways_acknowledged_outlives_a_database_that_is_killed_for_long(
    mortal: PostgresServer, tmp_path: Path
) -> None:
    await storm(tmp_path, mortal, kills=int(os.environ.get("STORM_KILLS", "60")))


@pytest.fixture
def line(postgres: PostgresServer) -> Iterator[FaultyLine]:
    faulty = FaultyLine(postgres.port)
    yield faulty
    faulty.close()


async def warm_log(log: Any) -> None:
    """Leave a connection on which an append takes one exchange: the statement is known."""
    await log.append(started(), CALLER)
    await log.append(minted(1), CALLER)


@pytest.mark.parametrize("fault", ["request lost", "answer lost", "silence"])
async def test_an_append_whose_connection_is_cut_is_stored_once(
    postgres: PostgresServer, line: FaultyLine, fault: Fault
) -> None:
    place = postgres.new_log(port=line.port)
    async with make_log(place, lock_timeout_seconds=1) as log:
        await warm_log(log)
        for number in range(2, 5):
            await log.append(minted(number + 10), CALLER)
            line.fail_next(fault)
            receipt = await log.append(minted(number), CALLER)
            assert line.struck.is_set()
            (recorded,) = await log.read_stream(operation(number))
            assert (recorded.position, recorded.envelope.append_id) == (receipt.first_position, receipt.append_id)
        await log.append(finished(2), CALLER)
        assert (await log.head())[0] == 9
        assert log.failure is None
    with LogReader(place, SAMPLES) as reader:
        assert list(reader.find_breaks()) == []


async def test_a_batch_of_which_the_answer_is_lost_is_told_apart_append_by_append(
    postgres: PostgresServer, line: FaultyLine
) -> None:
    place = postgres.new_log(port=line.port)
    async with make_log(place, lock_timeout_seconds=5) as log:
        await warm_log(log)
        outcomes: list[str] = []

        async def append(number: int) -> None:
            try:
                await log.append(minted(number), CALLER)
                outcomes.append("stored")
            except Exception as error:
                outcomes.append(type(error).__name__)

        line.fail_next("answer lost")
        async with anyio.create_task_group() as group:
            for number in (1, 2, 2, 3, 4, 4):
                group.start_soon(append, number)
        assert sorted(outcomes) == ["VersionConflictError"] * 3 + ["stored"] * 3
        assert [event.position async for event in log.read_log()] == list(range(1, 6))


async def test_who_cannot_learn_whether_it_was_stored_says_so_and_ends(
    postgres: PostgresServer, line: FaultyLine
) -> None:
    reasons: list[str] = []
    async with make_log(
        postgres.new_log(port=line.port), lock_timeout_seconds=0.5, on_failure=reasons.append
    ) as log:
        await warm_log(log)
        line.is_down = True
        line.fail_next("answer lost")
        with pytest.raises(StoreUnavailableError, match="can't be established") as caught:
            await log.append(minted(2), CALLER)
        assert "nothing was stored" not in str(caught.value)
        line.is_down = False
        with pytest.raises(StoreUnavailableError, match="can't be established"):
            await log.append(minted(3), CALLER)
        with anyio.fail_after(10):
            while not reasons:  # told by the writer's thread, just after the refusal
                await anyio.sleep(0.01)


async def test_a_server_that_is_away_refuses_and_serves_again_once_it_is_back(
    mortal: PostgresServer
) -> None:
    async with make_log(mortal.new_log(), lock_timeout_seconds=0.5) as log:
        await warm_log(log)
        mortal.kill()
        await anyio.sleep(0.5)  # the line's end is noticed
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="nothing was stored"):
                await log.append(minted(2), CALLER)
        assert log.failure is None
        await anyio.to_thread.run_sync(mortal.start)
        await log.append(minted(2), CALLER)
        assert len(await log.read_stream(operation(2))) == 1
