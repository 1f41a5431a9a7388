"""A server that has no descriptors left starts nothing, says so, and loses neither what runs nor a descriptor."""

import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from adapters.locks.flock import HeldFlock
from codespace_es.ports.runner import LiveProcess, NotStartedError, RunnerLostError
from support.process_runner import Locks, Workshop, command, own_runner

pytestmark = pytest.mark.anyio

FREE = range(9)
"""A start needs no more than these."""


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    with anyio.fail_after(60):
        async with own_runner(tmp_path) as runner:
            yield Workshop(runner, tmp_path, Locks(tmp_path / "locks"))


def opened() -> int:
    return len(os.listdir("/proc/self/fd"))


async def until_opened(count: int) -> None:
    while opened() > count:
        await anyio.sleep(0.002)


@contextmanager
def only(free: int) -> Iterator[None]:
    """Have room for so many descriptors more, and no other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened() + 50, hard))
    hogs: list[int] = []
    try:
        while True:
            try:
                hogs.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                break
        for _ in range(free):
            os.close(hogs.pop())
        yield
    finally:
        for hog in hogs:
            os.close(hog)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def attempt(workshop: Workshop, lease: HeldFlock, **fields: object) -> LiveProcess | None:
    try:
        child = await workshop.runner.start(command(workshop.root, "echo", "hi", **fields), lease=lease)
    except NotStartedError:
        return None
    finally:
        lease.release()
    return await child.go()


@pytest.mark.parametrize("has_idle_reaper", [True, False])
@pytest.mark.parametrize("fields", [{}, {"stdin": "pipe"}, {"tty": True}], ids=["null", "pipe", "tty"])
async def test_one_start(workshop: Workshop, fields: dict[str, object], *, has_idle_reaper: bool) -> None:
    bystander = await workshop.run("cat", stdin="pipe")
    outcomes = []
    for free in FREE:
        if has_idle_reaper:
            await workshop.ended("true")
        before = opened()
        lease = workshop.locks.take(f"w{free}")
        with only(free):
            process = await attempt(workshop, lease, **fields)
        outcomes.append(process is not None)
        if process is not None:
            assert (await process.wait()).tail.strip() == b"hi"
        del process
        await workshop.locks.until_free(f"w{free}")
        await until_opened(before + 1)  # a reaper that is idle from here on
    assert outcomes[0] is False
    assert outcomes[-1] is True
    await bystander.write(b"still here", is_eof=True)
    assert (await bystander.wait()).tail == b"still here"


async def test_many_starts_at_once(workshop: Workshop) -> None:
    bystander = await workshop.run("cat", stdin="pipe")
    for free in (0, 1, 2, 5, 9, 14):
        started = []

        async def start(lease: HeldFlock, started: list[LiveProcess | None] = started) -> None:
            started.append(await attempt(workshop, lease))

        leases = [workshop.locks.take(f"many-{number}") for number in range(6)]
        with only(free):
            async with anyio.create_task_group() as tasks:
                for lease in leases:
                    tasks.start_soon(start, lease)
        for process in started:
            if process is not None:
                assert (await process.wait()).tail == b"hi\n"
    await bystander.write(b"still here", is_eof=True)
    assert (await bystander.wait()).tail == b"still here"


async def test_the_first_start_which_needs_a_spawner(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks")
    with anyio.fail_after(60):
        for free in (0, 1, 3, 5, 7):
            async with own_runner(tmp_path) as runner:
                workshop = Workshop(runner, tmp_path, locks)
                before = opened()
                lease = locks.take("w")
                with only(free):
                    try:
                        process = await attempt(workshop, lease)
                    except RunnerLostError:
                        process = None
                if process is not None:
                    await process.wait()
                del process
                await locks.until_free("w")
                assert (await workshop.ended("echo", "hi")).tail == b"hi\n"
            await until_opened(before)
