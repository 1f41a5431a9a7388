"""The child that a reaper forks ahead: the next command is what it would be without it, and it holds nobody up."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from codespace_es.ports.runner import NotStartedError
from support.process_runner import Locks, Workshop, children_of, command, is_alive, own_runner, spawner_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    root = tmp_path / "root"
    root.mkdir()
    with anyio.fail_after(30):
        async with own_runner(tmp_path) as runner:
            yield Workshop(runner, root, Locks(tmp_path / "locks"))


def children_of_reapers() -> list[int]:
    reapers = [pid for pid, _ in children_of(spawner_of(os.getpid()))]
    return [pid for reaper in reapers for pid, state in children_of(reaper) if state not in "ZX"]


async def spare_after(workshop: Workshop, *argv: str) -> int:
    """Return the process id of the spare child that follows a command."""
    await workshop.ended(*(argv or ("true",)))
    return await spare()


async def spare() -> int:
    while not (found := children_of_reapers()):
        await anyio.sleep(0.005)
    assert len(found) == 1
    return found[0]


async def test_the_next_command_is_the_spare_child(workshop: Workshop) -> None:
    waiting = await spare_after(workshop)
    child = await workshop.runner.start(command(workshop.root, "sleep", "600"), lease=workshop.locks.take("w"))
    assert child.pid == waiting
    stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    assert child.started_ticks == int(stat[19])
    assert not workshop.locks.is_free("w")
    process = await child.go()
    await process.end(signal=signal.SIGKILL, grace_ms=0)
    end = await process.wait()
    assert (os.waitstatus_to_exitcode(end.wait_status or 0), end.swept) == (-signal.SIGKILL, 0)


async def test_an_abandoned_spare_child_has_run_nothing(workshop: Workshop) -> None:
    waiting = await spare_after(workshop)
    lease = workshop.locks.take("w")
    child = await workshop.runner.start(command(workshop.root, "touch", "ran"), lease=lease)
    lease.release()
    assert not workshop.locks.is_free("w")
    await child.abandon()
    assert not is_alive(waiting)
    assert not (workshop.root / "ran").exists()
    assert workshop.locks.is_free("w")


@pytest.mark.parametrize("sandbox", ["off", "auto"])
@pytest.mark.parametrize("stdin", ["null", "pipe"])
async def test_it_inherits_what_a_child_forked_anew_does(workshop: Workshop, sandbox: str, stdin: str) -> None:
    script = (
        "ls /proc/self/fd; readlink /proc/self/fd/0 | tr -d '[0-9]'; ulimit -a; pwd; env | grep -v CODESPACE_EXEC | "
        "sort; grep -E '^(Sig(Blk|Ign|Cgt)|Umask|NoNewPrivs|Seccomp)' /proc/self/status; "
        "ps -o sid= -p $$ | grep -cw $$; exit 7"
    )

    async def told() -> tuple[int | None, bytes]:
        end = await workshop.ended("bash", "-c", script, sandbox=sandbox, stdin=stdin, environment={"A": "ö\n\udcff"})
        return end.wait_status, end.tail

    anew = await told()
    assert os.waitstatus_to_exitcode(anew[0] or 0) == 7
    await spare()
    assert await told() == anew


@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_it_reads_what_is_written_to_it(workshop: Workshop, sandbox: str) -> None:
    await spare_after(workshop)
    process = await workshop.run("cat", stdin="pipe", sandbox=sandbox)
    await process.write(b"word", is_eof=True)
    assert (await process.wait()).tail == b"word"


async def test_a_command_that_is_refused_leaves_the_spare_child_to_the_next(workshop: Workshop) -> None:
    waiting = await spare_after(workshop)
    with pytest.raises(NotStartedError):
        await workshop.run("no-such-program")
    assert children_of_reapers() == [waiting]
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"


async def test_a_command_that_it_cant_be_ends_it_and_runs(workshop: Workshop) -> None:
    """One on a terminal, and one whose order doesn't fit into a socket."""
    waiting = await spare_after(workshop)
    assert (await workshop.ended("sh", "-c", "test -t 0 && echo hi", tty=True)).tail == b"hi\r\n"
    assert not is_alive(waiting)
    waiting = await spare()
    words = ["x" * 100_000] * 8
    end = await workshop.ended("sh", "-c", "echo $#", "sh", *words)
    assert end.tail == b"8\n"
    assert not is_alive(waiting)


async def test_one_that_is_killed_is_done_without(workshop: Workshop) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM):
        waiting = await spare_after(workshop)
        os.kill(waiting, number)
        while is_alive(waiting):
            await anyio.sleep(0.001)
        assert (await workshop.ended("echo", "hi")).tail == b"hi\n"


async def test_one_that_is_stopped_goes_on(workshop: Workshop) -> None:
    waiting = await spare_after(workshop)
    os.kill(waiting, signal.SIGSTOP)
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"
    waiting = await spare()
    os.kill(waiting, signal.SIGSTOP)
    assert (await workshop.ended("echo", "hi", tty=True)).tail == b"hi\r\n"
    assert not is_alive(waiting)


async def test_a_reaper_that_is_stopped_goes_on(workshop: Workshop) -> None:
    await spare_after(workshop)
    (reaper, _), = children_of(spawner_of(os.getpid()))
    os.kill(reaper, signal.SIGSTOP)
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"


@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGSTOP])
async def test_it_ends_with_its_reaper(workshop: Workshop, number: signal.Signals) -> None:
    waiting = await spare_after(workshop)
    os.kill(waiting, number)
    (reaper, _), = children_of(spawner_of(os.getpid()))
    os.kill(reaper, signal.SIGKILL)
    while is_alive(waiting):
        await anyio.sleep(0.005)
    assert (await workshop.ended("echo", "hi")).tail == b"hi\n"


async def test_it_holds_no_lease_and_ends_with_the_runner(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks")
    with anyio.fail_after(30):
        async with own_runner(tmp_path) as runner:
            workshop = Workshop(runner, tmp_path, locks)
            lease = locks.take("w")
            await workshop.ended("true", lease=lease)
            waiting = await spare()
            assert locks.is_free("w")
        assert not is_alive(waiting)
        assert locks.is_free("instance")
