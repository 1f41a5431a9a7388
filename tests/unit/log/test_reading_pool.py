"""Reading from a PostgreSQL that is away: tried for a while once, then for a shorter while, and by few at a time."""

import anyio
import anyio.lowlevel
import pytest

from adapters.log.postgres import reading_pool
from adapters.log.postgres.connecting import PostgresError
from adapters.log.postgres.reading_pool import CONNECTIONS_MAX, ReadingPool
from adapters.settings.postgres_address import PostgresAddress

pytestmark = pytest.mark.anyio

CALLERS = 5 * CONNECTIONS_MAX


class Connection:
    """What has a connection of the driver, and answers."""

    async def fetch(self, _statement: str, _parameters: tuple[()], *, seconds: float) -> list[tuple[int]]:
        return [(int(seconds > 0),)]


class Server:
    """Refuses while it is away. Each attempt to connect takes a second, by the clock that the pool is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.is_away = True
        monkeypatch.setattr(reading_pool, "connect", self._connect)
        monkeypatch.setattr(reading_pool, "_PAUSE_SECONDS", 0.0)
        monkeypatch.setattr(reading_pool, "time", self)

    def monotonic(self) -> float:
        """Return the time."""
        return float(self.asked)

    async def _connect(self, _address: PostgresAddress, *, settings: dict[str, str]) -> Connection:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        if self.is_away:
            raise PostgresError(f"nobody is there for {sorted(settings)}", is_unanswered=True)
        return Connection()

    async def attempts(self, pool: ReadingPool) -> int:
        """Return how often it was asked for one read, which is refused."""
        before = self.asked
        with pytest.raises(PostgresError, match="nobody is there"):
            await pool.fetch("SELECT 1", ())
        return self.asked - before


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server that is away."""
    return Server(monkeypatch)


@pytest.fixture
def pool() -> ReadingPool:
    """Return a pool that has read nothing yet."""
    return ReadingPool(PostgresAddress("postgresql://codespace@127.0.0.1/x"))


async def test_who_was_found_away_is_tried_for_a_shorter_while_until_it_answers(
    server: Server, pool: ReadingPool
) -> None:
    assert [await server.attempts(pool) for _ in range(3)] == [11, 3, 3]
    server.is_away = False
    assert await pool.fetch("SELECT 1", ()) == [(1,)]


async def test_many_who_wait_for_one_that_is_away_are_refused_together(
    server: Server, pool: ReadingPool
) -> None:
    refusals: list[PostgresError] = []

    async def read() -> None:
        try:
            await pool.fetch("SELECT 1", ())
        except PostgresError as error:
            refusals.append(error)

    async with anyio.create_task_group() as tasks:
        for _ in range(CALLERS):
            tasks.start_soon(read)
    assert len(refusals) == CALLERS
    assert all(error.is_passing and "nobody is there" in str(error) for error in refusals)
    assert server.asked <= 10 + CONNECTIONS_MAX
