"""Real servers under load, killed again and again; real clients that retry, and a ledger of what they were told (T10).

After the fire one calm server answers for everything, and then log, files and ledger have to say the same (I1, I2, I4,
I5). The same with servers that are only told to end: those have to answer whatever was sent before (T20). The seed is
printed: `FIRE_SEED=… pytest …` gives the same requests, though not the same moments of death.
"""

import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from adapters.log.reader import LogReader
from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.event_catalogue import CATALOGUE
from replay.verify import verify
from replay.workspace_check import check_workspace
from support.crash_faults import count
from support.fire import Answer, Ledger, Request, Workload, broken_promises, lay_out
from support.stdio_client import RawClient, product, raw_client, read_log

pytestmark = pytest.mark.anyio

WORKSPACES = ("one", "two")
SERVERS = 3
CALLERS = 4
"""Calls in flight at each server."""
SECONDS_MAX = 1_800
LAST_SECONDS_MAX = 300

GONE = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Killed(Exception):  # noqa: N818 - what befell the server
    """The server died before it answered."""


@dataclass
class Session:
    """Many calls at a time over one connection."""

    client: RawClient
    waiting: dict[int, tuple[anyio.Event, list[Answer]]] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    is_over: bool = False
    answered: int = 0
    last_id: int = 0

    async def ask(self, request: Request) -> Answer:
        """Return the answer. Raises Killed."""
        self.last_id += 1
        number = self.last_id
        done, answers = self.waiting[number] = (anyio.Event(), [])
        if self.is_over:
            raise Killed
        try:
            await self.client.start_call(number, request.tool, **request.call_arguments())
        except GONE:
            raise Killed from None
        self.sent.add(number)
        await done.wait()
        if not answers:
            raise Killed
        return answers[0]

    async def receive(self) -> None:
        """Hand out answers until there are no more."""
        try:
            while True:
                message = await self.client.receive()
                done, answers = self.waiting.pop(message["id"])
                answers.append(message["result"]["structuredContent"])
                self.answered += 1
                done.set()
        except GONE:
            self.is_over = True
            for done, _ in self.waiting.values():
                done.set()


@dataclass
class Fire:
    """Servers on one data directory, their clients, and the one who shoots."""

    scratch: Path
    kills_left: int
    chance: random.Random
    is_gentle: bool = False
    """Servers are told to end, not killed."""
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        self.workload = Workload(self.chance, self.ledger, WORKSPACES)
        self.roots = {name: self.scratch / name for name in WORKSPACES}
        self.command = product(self.scratch, *(f"{name}={root}:workspace-write" for name, root in self.roots.items()))

    async def burn(self) -> None:
        """Run until the last shot was fired."""
        async with anyio.create_task_group() as tasks:
            for _ in range(SERVERS):
                tasks.start_soon(self._serve_again_and_again)

    async def _serve_again_and_again(self) -> None:
        while self.kills_left > 0:
            if self.chance.random() < 0.15:
                await self._kill_while_it_starts()
            else:
                await self._kill_at_work()

    async def _kill_while_it_starts(self) -> None:
        async with raw_client(self.command, self.scratch, initializes=False) as client:
            await anyio.sleep(self.chance.random() * 1.5)
            await self._shoot(client)
            await client.exit_code()

    async def _kill_at_work(self) -> None:
        async with self._connected() as (session, tasks):
            for _ in range(CALLERS):
                tasks.start_soon(self._call_on, session)
            target = self.chance.randrange(25)
            while session.answered < target and not session.is_over:
                await anyio.sleep(0.001)
            await anyio.sleep(self.chance.expovariate(1 / 0.004))
            sent_before = set(session.sent)
            await self._shoot(session.client)
            code = await session.client.exit_code()
            while not session.is_over:
                await anyio.sleep(0.001)
            if self.is_gentle:
                assert (code, sent_before & set(session.waiting)) == (0, set())

    async def _shoot(self, client: RawClient) -> None:
        with suppress(ProcessLookupError):
            if not self.is_gentle:
                client.process.kill()
            elif self.chance.random() < 0.3:
                await client.end_input()
            else:
                client.kill(self.chance.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)))
        self.kills_left -= 1
        self.ledger.totals["kills"] += 1

    async def _call_on(self, session: Session) -> None:
        while not session.is_over:
            request = self.workload.next()
            try:
                answer = await session.ask(request)
            except Killed:
                self.ledger.totals["lost answers"] += 1
                self.workload.put_back(request)
                return
            self.ledger.note(request, answer)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[Session, TaskGroup]]:
        async with raw_client(self.command, self.scratch) as client, anyio.create_task_group() as tasks:
            session = Session(client)
            tasks.start_soon(session.receive)
            yield session, tasks
            await client.end_input()

    async def settle_accounts(self) -> None:
        """Have one server answer for every request, and wait until it has closed what the dead left."""
        with anyio.fail_after(LAST_SECONDS_MAX):
            async with self._connected() as (session, _):
                for request in self.ledger.requests.values():
                    answer = await session.ask(request)
                    assert "operation_id" in answer, answer
                    self.ledger.note(request, answer)
                while self._open_items() > 1:
                    await anyio.sleep(0.05)
                await session.client.end_input()
                assert await session.client.exit_code() == 0

    def _open_items(self) -> int:
        with LogReader(self.scratch / "data" / "codespace.db", CATALOGUE) as reader:
            return len(reader.open_items())


async def burn(scratch: Path, kills: int, *, is_gentle: bool = False) -> None:
    seed = int(os.environ.get("FIRE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"FIRE_SEED={seed}")
    fire = Fire(scratch, kills, random.Random(seed), is_gentle)
    for root in fire.roots.values():
        lay_out(root)
    with anyio.fail_after(SECONDS_MAX):
        await fire.burn()
    await fire.settle_accounts()

    ledger = fire.ledger
    print(dict(ledger.totals))
    assert list(broken_promises(ledger, fire.roots)) == []
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as reader:
        report = verify(reader)
        assert report.findings == ()
        assert report.open_items == 0
        for root in fire.roots.values():
            assert check_workspace(reader, root).problems == ()
        _compare_with_log(ledger, reader)
    assert "Traceback" not in read_log(scratch)
    for name in ("kills", "SERVER_SHUTTING_DOWN", "lost answers", "applied", "failed_rolled_back", "replayed"):
        count(f"servers {'told to end' if is_gentle else 'under fire'}: {name}", ledger.totals[name])


def _compare_with_log(ledger: Ledger, reader: LogReader) -> None:
    """Each acknowledged operation was minted once and finished once, as it was told, and no key was minted twice."""
    minted: dict[str, list[str]] = {}
    finished: dict[str, list[str]] = {}
    for recorded in reader.read_log():
        if isinstance(recorded.event, OperationMinted):
            assert recorded.event.operation_key is not None
            minted.setdefault(recorded.event.operation_key, []).append(recorded.stream_id)
        elif isinstance(recorded.event, OperationFinished):
            finished.setdefault(recorded.stream_id, []).append(recorded.event.status)
    assert {key: [answers[0]["operation_id"]] for key, answers in ledger.answers.items()} == minted
    for answers in ledger.answers.values():
        told = answers[0].get("status", "rejected")
        assert finished[answers[0]["operation_id"]] == [told]


async def test_what_servers_under_fire_acknowledged_is_true(tmp_path: Path) -> None:
    await burn(tmp_path, kills=int(os.environ.get("FIRE_KILLS", "20")))


async def test_servers_that_are_told_to_end_answer_all_that_was_sent_before(tmp_path: Path) -> None:
    await burn(tmp_path, kills=int(os.environ.get("FIRE_ENDS", "4")), is_gentle=True)


@pytest.mark.soak
async def test_what_servers_under_long_fire_acknowledged_is_true(tmp_path: Path) -> None:
    await burn(tmp_path, kills=500)
