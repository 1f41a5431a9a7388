"""Whoever is stopped on a command's way holds nobody up for ever: he is continued, or the start is given up."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from adapters.runner import spawner_link
from adapters.runner.conversation import Conversation
from codespace_es.ports.runner import LiveProcess, NotStartedError
from support.process_runner import (
    Locks,
    Workshop,
    children_of,
    command,
    is_alive,
    own_runner,
    spawner_of,
    traced,
    until_gone,
    until_output,
)

pytestmark = pytest.mark.anyio

STOP_REAPER = "kill -STOP $PPID; echo stopped; sleep 600"


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    with anyio.fail_after(60):
        async with own_runner(tmp_path) as runner:
            yield Workshop(runner, tmp_path, Locks(tmp_path / "locks"))


def reapers() -> list[int]:
    return [pid for pid, state in children_of(spawner_of(os.getpid())) if state not in "ZX"]


async def spare_after(workshop: Workshop) -> int:
    await workshop.ended("true")
    while not (found := [pid for reaper in reapers() for pid, state in children_of(reaper) if state not in "ZX"]):
        await anyio.sleep(0.005)
    return found[0]


async def test_a_spawner_that_is_stopped_goes_on_for_a_new_reaper(workshop: Workshop) -> None:
    other = await workshop.run("sleep", "600")
    os.kill(spawner_of(os.getpid()), signal.SIGSTOP)
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"
    await other.end(signal=signal.SIGKILL, grace_ms=0)
    await other.wait()


async def test_a_runner_whose_spawner_is_stopped_ends(tmp_path: Path) -> None:
    with anyio.fail_after(8):  # it isn't waited for until it would be killed
        async with own_runner(tmp_path) as runner:
            await Workshop(runner, tmp_path, Locks(tmp_path / "locks")).ended("true")
            os.kill(spawner_of(os.getpid()), signal.SIGSTOP)


async def test_a_command_that_stops_its_reaper_and_ends_has_ended(workshop: Workshop) -> None:
    process = await workshop.shell("setsid sleep 600 & kill -STOP $PPID; exit 7")
    assert (await process.wait()).wait_status == 7 << 8


@pytest.mark.parametrize("tty", [False, True])
async def test_a_command_that_stops_its_reaper_is_ended_all_the_same(workshop: Workshop, *, tty: bool) -> None:
    process = await workshop.shell(STOP_REAPER, tty=tty)
    await until_output(process, b"stopped")
    await process.end(signal=signal.SIGTERM, grace_ms=100)
    assert (await process.wait()).wait_status is not None


async def test_the_end_of_a_killed_reaper_is_told_though_the_spawner_is_stopped(workshop: Workshop) -> None:
    lease = workshop.locks.take("w")
    process = await workshop.shell("setsid sleep 600 & echo ready; sleep 600", lease=lease)
    await until_output(process, b"ready")
    (reaper,) = reapers()
    os.kill(spawner_of(os.getpid()), signal.SIGSTOP)
    os.kill(reaper, signal.SIGKILL)
    assert (await process.wait()).wait_status is None
    assert workshop.locks.is_free("w")


async def test_one_that_stops_it_again_and_again_is_ended_all_the_same(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawner_link, "_PATIENCE_SECONDS", (0.05, 0.05))
    script = "trap '' TERM; echo stopping; while kill -STOP $PPID; do :; done"
    process = await workshop.shell(script, environment={"MARK": f"again-{os.getpid()}"})
    await until_output(process, b"stopping")
    await process.end(signal=signal.SIGTERM, grace_ms=50)
    await until_gone(f"again-{os.getpid()}")
    assert (await process.wait()).wait_status == signal.SIGKILL


async def test_a_terminal_gets_its_size_though_the_reaper_is_stopped(workshop: Workshop) -> None:
    process = await workshop.shell("kill -STOP $PPID; echo stopped; read line; stty size", tty=True)
    await until_output(process, b"stopped")
    await process.resize(7, 77)
    await process.write(b"\n", is_eof=False)
    await until_output(process, b"7 77")
    await process.end(signal=signal.SIGKILL, grace_ms=0)
    await process.wait()


async def test_a_child_at_its_gate_is_abandoned_though_the_reaper_is_stopped(workshop: Workshop) -> None:
    lease = workshop.locks.take("w")
    child = await workshop.runner.start(command(workshop.root, "touch", "ran"), lease=lease)
    lease.release()
    for reaper in reapers():
        os.kill(reaper, signal.SIGSTOP)
    await child.abandon()
    assert not is_alive(child.pid)
    assert workshop.locks.is_free("w")
    assert not (workshop.root / "ran").exists()


async def test_a_child_that_is_killed_at_its_gate_ends_though_the_reaper_is_stopped(workshop: Workshop) -> None:
    child = await workshop.runner.start(command(workshop.root, "true"), lease=workshop.locks.take("w"))
    (reaper,) = reapers()
    os.kill(reaper, signal.SIGSTOP)
    os.kill(child.pid, signal.SIGKILL)
    assert (await (await child.go()).wait()).wait_status == signal.SIGKILL


@pytest.mark.parametrize("who", ["child", "reaper"])
async def test_a_start_in_which_a_debugger_holds_somebody_is_given_up_and_leaves_nothing(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    spare = await spare_after(workshop)
    await anyio.sleep(0.05)
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(spawner_link, "_PATIENCE_SECONDS", (0.05, 0.05))
    lease = workshop.locks.take("w")
    with traced(spare if who == "child" else reapers()[0]):
        with pytest.raises(NotStartedError, match="may have been stopped"):
            await workshop.runner.start(command(workshop.root, "touch", "ran"), lease=lease)
        lease.release()
        await anyio.sleep(0.2)
    await workshop.locks.until_free("w")
    monkeypatch.undo()
    while len(os.listdir("/proc/self/fd")) >= before:  # the link to the reaper is gone too
        await anyio.sleep(0.005)
    assert not (workshop.root / "ran").exists()
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"


async def test_what_the_spawner_comes_to_late_hits_no_other_command(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawner_link, "_PATIENCE_SECONDS", (0.05, 0.05))
    asked = anyio.Event()
    sweep = spawner_link.SpawnerLink.sweep

    def ask(link: spawner_link.SpawnerLink, conversation: Conversation) -> None:
        sweep(link, conversation)
        asked.set()

    monkeypatch.setattr(spawner_link.SpawnerLink, "sweep", ask)
    first = await workshop.run("sleep", "600")
    (reaper,) = reapers()
    later: list[LiveProcess] = []

    async def run_later() -> None:
        later.append(await workshop.run("sleep", "600"))

    async with anyio.create_task_group() as tasks:
        with traced(spawner_of(os.getpid())):
            with traced(reaper):
                await first.end(signal=signal.SIGKILL, grace_ms=0)
                await asked.wait()
            await first.wait()
            monkeypatch.undo()
            tasks.start_soon(run_later)
            await anyio.sleep(0.05)
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"
    (process,) = later
    assert process.leader_status is None
    await process.end(signal=signal.SIGKILL, grace_ms=0)
    await process.wait()
