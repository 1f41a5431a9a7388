"""The event log on PostgreSQL against the same log in a file: appends, gateways together, reading, size.

    python benchmarks/postgres.py [--quick]

Starts a PostgreSQL of its own (`fsync` on, on this machine, over TCP on loopback), and prints one line a figure. The
floor is one row inserted by a prepared statement, one transaction each. With `--saturate URL NUMBER SECONDS CALLERS`
it is one of several gateways instead.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY), str(REPOSITORY / "tests"), str(REPOSITORY / "benchmarks")]

import anyio  # noqa: E402
import log_load as load  # noqa: E402

from adapters.log.places import LogPlace  # noqa: E402
from adapters.log.postgres.connecting import connect  # noqa: E402
from adapters.log.reader import LogReader  # noqa: E402
from adapters.settings.postgres_address import PostgresAddress  # noqa: E402
from support.postgres import PostgresServer, schema_of  # noqa: E402


def middle_and_late(taken: list[float]) -> str:
    cuts = quantiles(taken, n=100)
    return f"p50 {cuts[49] * 1000:.2f} ms, p99 {cuts[98] * 1000:.2f} ms"


async def appends(place: LogPlace, callers: int, seconds: float) -> list[float]:
    """Return what each append took, of so many callers that never pause."""
    taken: list[float] = []
    async with load.make_log(place) as log:
        await log.append(load.start(), load.CALLER)
        end = time.perf_counter() + seconds

        async def call() -> None:
            while (begun := time.perf_counter()) < end:
                await log.append(load.claim(), load.CALLER)
                taken.append(time.perf_counter() - begun)

        async with anyio.create_task_group() as group:
            for _ in range(callers):
                group.start_soon(call)
    return taken


async def mints(place: LogPlace, count: int) -> list[float]:
    taken: list[float] = []
    async with load.make_log(place) as log:
        await log.append(load.start(), load.CALLER)
        for _ in range(count):
            append = load.mint()
            begun = time.perf_counter()
            await log.append(append, load.CALLER)
            taken.append(time.perf_counter() - begun)
    return taken


async def floor(address: PostgresAddress, seconds: float) -> list[float]:
    connection = await connect(address, settings={})
    await connection.fetch("CREATE TABLE floor (position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state bytea)")
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        await connection.fetch("INSERT INTO floor (state) VALUES (?)", (bytes(420),))
        taken.append(time.perf_counter() - begun)
    await connection.close()
    return taken


async def saturate(url: str, number: int, seconds: float, callers: int) -> None:
    """Be one gateway of several; print how many appends it made and the slowest in milliseconds."""
    slowest, count = 0.0, 0
    async with load.make_log(PostgresAddress(url), number) as log:
        await log.append(load.start(number), load.CALLER)
        end = time.perf_counter() + seconds

        async def call() -> None:
            nonlocal slowest, count
            while (begun := time.perf_counter()) < end:
                await log.append(load.claim(), load.CALLER)
                slowest = max(slowest, time.perf_counter() - begun)
                count += 1

        async with anyio.create_task_group() as group:
            for _ in range(callers):
                group.start_soon(call)
    print(count, round(slowest * 1000, 1))


def gateways(server: PostgresServer, count: int, seconds: float, callers: int) -> tuple[float, float]:
    """Return appends a second of so many gateways together, and the slowest append in milliseconds."""
    address = server.new_log()
    running = [
        subprocess.Popen([sys.executable, __file__, "--saturate", address.url, str(number), str(seconds), str(callers)],
                         stdout=subprocess.PIPE, text=True)
        for number in range(1, count + 1)
    ]
    told = [each.communicate()[0].split() for each in running]
    return sum(int(count) for count, _ in told) / seconds, max(float(slowest) for _, slowest in told)


async def point_reads(place: LogPlace, count: int) -> list[float]:
    taken: list[float] = []
    async with load.make_log(place, 2) as log:
        await log.append(load.start(2), load.CALLER)
        append = load.mint()
        await log.append(append, load.CALLER)
        for _ in range(count):
            begun = time.perf_counter()
            await log.read_stream(append.events[1].stream_id)
            taken.append(time.perf_counter() - begun)
    return taken


def reading(place: LogPlace) -> tuple[int, float, float]:
    """Return the events of a log, and events a second of a bare scan and of following the chain."""
    with LogReader(place, load.CATALOGUE) as reader:
        begun = time.perf_counter()
        count = sum(1 for _ in reader.raw_rows())
        scanned = time.perf_counter() - begun
        begun = time.perf_counter()
        assert list(reader.find_breaks()) == []
        return count, count / scanned, count / (time.perf_counter() - begun)


def tell(what: str, figure: str) -> None:
    print(f"{what:<58} {figure}", flush=True)


def compare(seconds: float) -> None:
    server = PostgresServer()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            taken = anyio.run(floor, server.new_schema(), seconds)
            tell("floor: one row by a prepared INSERT", f"{len(taken) / seconds:,.0f}/s, {middle_and_late(taken)}")
            for callers in (1, 8, 32):
                for name, place in (("file", Path(scratch, f"{callers}.db")), ("PostgreSQL", server.new_log())):
                    taken = anyio.run(appends, place, callers, seconds)
                    tell(f"append, {callers} callers of one gateway, {name}",
                         f"{len(taken) / seconds:,.0f}/s, {middle_and_late(taken)}")
            for name, place in (("file", Path(scratch, "mint.db")), ("PostgreSQL", server.new_log())):
                tell(f"mint of a patch with 8.4 KB of contents, {name}",
                     middle_and_late(anyio.run(mints, place, int(100 * seconds))))
                tell(f"one stream read, {name}", middle_and_late(anyio.run(point_reads, place, int(200 * seconds))))
            for count in (1, 2, 4):
                rate, slowest = gateways(server, count, seconds, callers=8)
                tell(f"{count} gateways of 8 callers, PostgreSQL", f"{rate:,.0f}/s together, slowest {slowest:.0f} ms")
            _read_and_weigh(server, Path(scratch, "long.db"), int(5_000 * seconds))
        finally:
            server.stop()


def _read_and_weigh(server: PostgresServer, file: Path, events: int) -> None:
    address = server.new_log()
    for name, place in (("file", file), ("PostgreSQL", address)):
        anyio.run(_fill, place, events)
        count, scanned, verified = reading(place)
        tell(f"scan and chain of {count:,} events, {name}", f"{scanned:,.0f} and {verified:,.0f} events/s")
    (size,) = server.query(f"SELECT pg_total_relation_size('{schema_of(address)}.events')")
    tell("bytes an event, table and indexes: file, PostgreSQL",
         f"{file.stat().st_size / events:,.0f}, {int(size) / events:,.0f}")


async def _fill(place: LogPlace, events: int) -> None:
    async with load.make_log(place, 9) as log:
        await log.append(load.start(9), load.CALLER)
        for _ in range(events // 100):
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(log.append, load.claim(), load.CALLER)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true")
    options.add_argument("--saturate", nargs=4, metavar=("URL", "NUMBER", "SECONDS", "CALLERS"))
    chosen = options.parse_args()
    if chosen.saturate:
        url, number, seconds, callers = chosen.saturate
        anyio.run(saturate, url, int(number), float(seconds), int(callers))
    else:
        compare(1.0 if chosen.quick else 5.0)
