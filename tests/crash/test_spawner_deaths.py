"""Whoever dies, whenever: no program outlives its server, and the locks say so. Real processes, really killed."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from codespace_es.ports.runner import NotStartedError, RunnerLostError
from support.process_runner import (
    Locks,
    Workshop,
    children_of,
    command,
    own_runner,
    processes_with,
    spawner_of,
    traced,
    until_gone,
    until_output,
    until_there,
)

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
MARK = f"deaths-of-{os.getpid()}"
DAEMONS = "trap '' TERM HUP; for i in $(seq 9); do setsid sleep 600 & done; echo ready; sleep 600"


@contextmanager
def server(path: Path, mark: str, script: str, state: str, count: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Have a server in a process of its own that has started commands; and its spawner's pid. Both write to `said`."""
    with (path / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/support/process_parent.py"), str(path), mark, script, state, str(count)],
            stdout=subprocess.PIPE, stderr=said, text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}:{ROOT}/tests"})
    assert process.stdout is not None
    try:
        ready, spawner = process.stdout.readline().split()
        assert ready == "ready"
        yield process, int(spawner)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def test_what_is_tried_to_find_a_sandbox_ends_with_who_tries_it_even_if_it_is_stopped() -> None:
    script = "from adapters.spawner import probe; probe._SCRIPT = 'sleep 600; true'; probe.find_out()"
    with subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": f"{ROOT}/src"}) as trying:
        mark = f"codespace-es-probe-{trying.pid}-"
        with anyio.fail_after(10):
            while len(tried := processes_with(mark)) < 4:  # two of bubblewrap's, the shell in it, and its sleep
                if trying.poll() is not None:
                    pytest.skip("SKIPPED: bubblewrap isn't there to be tried")
                await anyio.sleep(0.005)
            for pid in tried:
                os.kill(pid, signal.SIGSTOP)
            trying.kill()
            await until_gone(mark)
    for place in Path("/var/tmp").glob(f"{mark}*"):
        shutil.rmtree(place)


async def locks_are_free(path: Path, count: int) -> None:
    locks = Locks(path / "locks")
    for name in ("instance", *(f"lease-{number}" for number in range(count))):
        await locks.until_free(name)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_server_takes_thirty_daemons_with_it(tmp_path: Path, number: int) -> None:
    mark = f"{MARK}-server-{number}"
    with server(tmp_path, mark, DAEMONS, "live", 3) as (process, _):
        with anyio.fail_after(10):
            await until_there(mark, 30)
            process.send_signal(number)
            await until_gone(mark)
            await locks_are_free(tmp_path, 3)


async def test_locks_are_held_as_long_as_a_tree_lives_even_if_server_and_spawner_are_killed(tmp_path: Path) -> None:
    mark = f"{MARK}-both"
    with server(tmp_path, mark, DAEMONS, "live", 1) as (process, spawner):
        reaper = children_of(spawner)[0][0]
        with anyio.fail_after(10):
            await until_there(mark, 10)
        with traced(reaper):
            os.kill(spawner, signal.SIGKILL)
            process.kill()
            process.wait()
            locks = Locks(tmp_path / "locks")
            assert len(processes_with(mark)) >= 10
            assert not locks.is_free("lease-0")
            assert not locks.is_free("instance")
        with anyio.fail_after(10):
            await until_gone(mark)
            await locks_are_free(tmp_path, 1)


async def test_the_spawner_sweeps_up_and_holds_the_instance_if_server_and_reaper_are_killed(tmp_path: Path) -> None:
    """Of several reapers it finds out in the moment in which it also finds out that there is nobody to tell."""
    mark = f"{MARK}-blow"
    with server(tmp_path, mark, DAEMONS, "live", 2) as (process, spawner):
        reapers = [pid for pid, _ in children_of(spawner)]
        with anyio.fail_after(10):
            await until_there(mark, 20)
        with traced(spawner):
            for reaper in reapers:
                os.kill(reaper, signal.SIGKILL)
            process.kill()
            process.wait()
            assert len(processes_with(mark)) >= 18
            assert not Locks(tmp_path / "locks").is_free("instance")
        with anyio.fail_after(10):
            await until_gone(mark)
            await locks_are_free(tmp_path, 2)
            while Path(f"/proc/{spawner}").exists():
                await anyio.sleep(0.005)
    assert (tmp_path / "said").read_text() == ""


@pytest.mark.parametrize("victims", ["server", "server and spawner"])
@pytest.mark.parametrize("stopped", ["spawner", "reaper", "both"])
async def test_whoever_is_stopped_hears_of_the_end_of_the_others(tmp_path: Path, victims: str, stopped: str) -> None:
    mark = f"{MARK}-{victims}-{stopped}"
    with server(tmp_path, mark, DAEMONS, "live", 1) as (process, spawner):
        reaper = children_of(spawner)[0][0]
        with anyio.fail_after(10):
            await until_there(mark, 10)
            for pid in {"spawner": [spawner], "reaper": [reaper], "both": [spawner, reaper]}[stopped]:
                os.kill(pid, signal.SIGSTOP)
            for victim in victims.split(" and "):
                os.kill({"server": process.pid, "spawner": spawner}[victim], signal.SIGKILL)
            await until_gone(mark)
            await locks_are_free(tmp_path, 1)


@pytest.mark.parametrize("victim", ["server", "spawner", "reaper"])
async def test_who_dies_between_fork_and_go_has_run_nothing(tmp_path: Path, victim: str) -> None:
    mark = f"{MARK}-gate-{victim}"
    with server(tmp_path, mark, "touch ran; sleep 600", "gated", 2) as (process, spawner):
        reapers = [pid for pid, _ in children_of(spawner)]
        gated = [pid for reaper in reapers for pid, _ in children_of(reaper)]
        assert len(gated) == 2
        victims = {"server": [process.pid], "spawner": [spawner], "reaper": reapers}[victim]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        with anyio.fail_after(10):
            while any(Path(f"/proc/{pid}/exe").exists() for pid in gated):
                await anyio.sleep(0.005)
            if victim == "server":
                await locks_are_free(tmp_path, 2)
        assert not (tmp_path / "ran").exists()


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    with anyio.fail_after(30):
        async with own_runner(tmp_path) as runner:
            yield Workshop(runner, tmp_path, Locks(tmp_path / "locks"))


async def test_a_killed_spawner_is_a_loss_that_everybody_hears_of_and_the_next_command_runs(
    workshop: Workshop
) -> None:
    mark = f"{MARK}-spawner"
    losses = []

    async def listen() -> None:
        losses.append("lost")

    await workshop.runner.on_loss(listen)
    lease = workshop.locks.take("w")
    process = await workshop.shell(DAEMONS, environment={"MARK": mark}, lease=lease, stdin="pipe")
    await until_output(process, b"ready")
    gated = await workshop.runner.start(command(workshop.root, "touch", "ran"), lease=workshop.locks.take("g"))
    failures: list[RunnerLostError] = []

    async def wait() -> None:
        try:
            await process.wait()
        except RunnerLostError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        os.kill(spawner_of(os.getpid()), signal.SIGKILL)
    assert [error.is_dispatched for error in failures] == [True]
    with pytest.raises(RunnerLostError):
        await gated.go()
    with pytest.raises(RunnerLostError):
        await process.write(b"x", is_eof=False)
    with pytest.raises(RunnerLostError):
        await process.end(signal=signal.SIGTERM, grace_ms=0)
    await until_gone(mark)
    await workshop.locks.until_free("w")
    assert (await process.read(0, wait_ms=20_000, bytes_max=100)).content == b"ready\n"
    assert losses == ["lost"]
    assert (await workshop.ended("echo", "again")).tail == b"again\n"
    assert not (workshop.root / "ran").exists()


async def test_a_stopped_reaper_hears_of_the_end_of_its_spawner(workshop: Workshop) -> None:
    lease = workshop.locks.take("w")
    process = await workshop.run("sleep", "600", lease=lease)
    spawner = spawner_of(os.getpid())
    os.kill(children_of(spawner)[0][0], signal.SIGSTOP)
    os.kill(spawner, signal.SIGKILL)
    with pytest.raises(RunnerLostError):
        await process.wait()
    await workshop.locks.until_free("w")


async def test_whoever_waits_for_the_end_of_a_lost_spawner_and_is_cancelled_leaves_it_to_the_next(
    workshop: Workshop
) -> None:
    await workshop.ended("true")
    spawner = spawner_of(os.getpid())
    with traced(spawner):
        link = workshop.runner._link
        assert link is not None
        link.close()
        with anyio.move_on_after(0.05) as scope:
            await workshop.ended("true")
        assert scope.cancelled_caught
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"
    assert spawner not in [pid for pid, _ in children_of(os.getpid())]


async def test_a_killed_reaper_loses_the_status_but_no_process(workshop: Workshop) -> None:
    mark = f"{MARK}-reaper"
    other = await workshop.shell("sleep 600", environment={"MARK": f"{MARK}-bystander"})
    lease = workshop.locks.take("w")
    process = await workshop.shell(DAEMONS, environment={"MARK": mark}, lease=lease)
    await until_output(process, b"ready")
    (reaper,) = {
        parent for parent, _ in children_of(spawner_of(os.getpid()))
        if any(f"MARK={mark}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()
               for pid, _ in children_of(parent))}
    os.kill(reaper, signal.SIGKILL)
    end = await process.wait()
    assert end.wait_status is None
    assert end.swept >= 9  # the daemons; their leader ends with its reaper, mostly before it can be swept
    assert processes_with(mark) == []
    assert workshop.locks.is_free("w")
    assert len(processes_with(f"{MARK}-bystander")) == 1
    await other.end(signal=signal.SIGKILL, grace_ms=0)
    assert (await other.wait()).wait_status == signal.SIGKILL


async def test_a_child_that_is_killed_at_its_gate_ran_nothing_and_ends(workshop: Workshop) -> None:
    lease = workshop.locks.take("w")
    child = await workshop.runner.start(command(workshop.root, "touch", "ran"), lease=lease)
    lease.release()
    os.kill(child.pid, signal.SIGKILL)
    end = await (await child.go()).wait()
    assert end.wait_status == signal.SIGKILL
    assert workshop.locks.is_free("w")
    assert not (workshop.root / "ran").exists()


async def test_an_idle_reaper_that_is_killed_costs_nothing(workshop: Workshop) -> None:
    await workshop.ended("true")
    for reaper, _ in children_of(spawner_of(os.getpid())):
        os.kill(reaper, signal.SIGKILL)
    try:
        assert (await workshop.ended("echo", "hi")).tail == b"hi\n"
    except NotStartedError:  # it was asked before anybody had noticed: certain, and the next one runs
        assert (await workshop.ended("echo", "hi")).tail == b"hi\n"


@pytest.mark.parametrize("is_at_gate", [True, False])
async def test_a_word_of_a_reaper_that_comes_after_the_loss_of_its_spawner_is_of_no_more_use(
    workshop: Workshop, *, is_at_gate: bool
) -> None:
    """The server is busy while both happen, and hears of the spawner's end first."""
    await workshop.ended("true")
    opened = len(os.listdir("/proc/self/fd"))
    lease = workshop.locks.take("w")
    outcomes: list[object] = []

    async def run() -> None:
        try:
            child = await workshop.runner.start(command(workshop.root, "sh", "-c", "touch ran; sleep 600"), lease=lease)
            await (await child.go()).wait()
        except RunnerLostError as error:
            outcomes.append(error)

    (reaper, _), = children_of(spawner_of(os.getpid()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        while not (workshop.root / "ran").exists() and not is_at_gate:
            await anyio.sleep(0.005)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        link = workshop.runner._link
        assert link is not None
        if not is_at_gate:
            os.kill(reaper, signal.SIGTERM)
        wait_until_readable(link._reapers[reaper]._line._link.fileno())
        os.kill(spawner_of(os.getpid()), signal.SIGKILL)
        wait_until_readable(link._line._link.fileno())
        link._lose_all()
    assert len(outcomes) == 1
    while link.is_up:
        await anyio.sleep(0.001)
    lease.release()
    await workshop.locks.until_free("w")
    assert len(os.listdir("/proc/self/fd")) <= opened
    assert (workshop.root / "ran").exists() is not is_at_gate
    assert (await workshop.ended("echo", "again")).tail == b"again\n"


def wait_until_readable(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(10_000), "nothing came"


async def test_one_idle_reaper_is_kept_of_those_that_worked_at_once(workshop: Workshop) -> None:
    def reapers() -> list[int]:
        return [pid for pid, _ in children_of(spawner_of(os.getpid()))]

    processes = [await workshop.run("sleep", "600") for _ in range(3)]
    assert len(reapers()) == 3
    for process in processes:
        await process.end(signal=signal.SIGKILL, grace_ms=0)
        await process.wait()
    while len(reapers()) > 1:
        await anyio.sleep(0.005)
    (kept,) = reapers()
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"
    assert reapers() == [kept]


async def test_a_program_inherits_neither_locks_nor_links(workshop: Workshop) -> None:
    lease = workshop.locks.take("w")
    gated = await workshop.runner.start(command(workshop.root, "sleep", "600"), lease=lease)

    def opened() -> list[str]:
        place = Path(f"/proc/{gated.pid}/fd")
        return sorted(os.readlink(place / number).partition(":")[0] for number in os.listdir(place))

    await until(lambda: opened() == ["/dev/null", "pipe", "pipe", "pipe"])  # the gate's own is the fourth
    process = await gated.go()
    await until(lambda: opened() == ["/dev/null", "pipe", "pipe"])
    await process.end(signal=signal.SIGKILL, grace_ms=0)
    await process.wait()


async def until(is_so: Callable[[], bool]) -> None:
    """Return as soon as `is_so`; what vanishes while it looks isn't so yet."""
    while True:
        with suppress(FileNotFoundError):
            if is_so():
                return
        await anyio.sleep(0.005)
