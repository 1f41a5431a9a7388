"""The process zoo: programs that behave badly, each of which ends, whole tree and all, and tells how."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from codespace_es.ports.runner import LiveProcess, ProcessEnd
from support.process_runner import (
    Locks,
    Workshop,
    children_of,
    command,
    own_runner,
    processes_with,
    until_gone,
    until_output,
    until_there,
    whole_output,
)
from support.system_python import PYTHON

pytestmark = pytest.mark.anyio

MARK = f"zoo-of-{os.getpid()}"


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    with anyio.fail_after(40):
        async with own_runner(tmp_path, processes_max=256) as runner:
            yield Workshop(runner, tmp_path, Locks(tmp_path / "locks"))
        assert processes_with(MARK) == []


async def zoo(workshop: Workshop, script: str, **fields: object) -> LiveProcess:
    return await workshop.shell(script, environment={"MARK": MARK}, **fields)


async def end(process: LiveProcess, number: int = signal.SIGTERM, *, grace_ms: int = 20_000) -> ProcessEnd:
    await process.end(signal=number, grace_ms=grace_ms)
    return await process.wait()


def exit_code(ended: ProcessEnd) -> int:
    assert ended.wait_status is not None
    return os.waitstatus_to_exitcode(ended.wait_status)


async def test_daemons_of_one_command_end_with_it_and_those_of_another_live_on(workshop: Workshop) -> None:
    daemonise = (
        f"{PYTHON} -c \"import os\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
        "os.execve('/bin/sleep', ['sleep', '600'], {'WHOSE': '%s'})\"; echo ready; sleep 600")
    one = await zoo(workshop, daemonise % f"{MARK}-one")
    other = await zoo(workshop, daemonise % f"{MARK}-other")
    await until_output(one, b"ready")
    await until_output(other, b"ready")
    ended = await end(one)
    assert ended.swept >= 1
    assert processes_with(f"{MARK}-one") == []
    await until_there(f"{MARK}-other", 1)
    await end(other)


async def test_a_child_that_holds_the_output_is_swept_after_its_leader(workshop: Workshop) -> None:
    process = await zoo(workshop, "sleep 600 & echo started; exit 5")
    ended = await process.wait()
    assert (exit_code(ended), ended.swept, ended.is_output_cut, ended.tail) == (5, 1, False, b"started\n")
    assert ended.duration_ms < 600_000


async def test_what_ends_soon_after_its_leader_isnt_swept(workshop: Workshop) -> None:
    process = await zoo(workshop, "(sleep 0.2; echo late) & exit 0")
    ended = await process.wait()
    assert (ended.swept, ended.tail) == (0, b"late\n")


async def test_who_ignores_term_is_killed_after_the_grace(workshop: Workshop) -> None:
    process = await zoo(workshop, "trap '' TERM; (trap '' TERM; echo ready; sleep 600) & wait")
    await until_output(process, b"ready")
    ended = await end(process, grace_ms=100)
    assert exit_code(ended) == -signal.SIGKILL
    assert ended.swept >= 1


async def test_who_obeys_term_has_time_to_clean_up(workshop: Workshop) -> None:
    process = await zoo(workshop, "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done")
    await until_output(process, b"ready")
    ended = await end(process)
    assert exit_code(ended) == 7
    assert ended.tail.endswith(b"bye\n")


async def test_a_stopped_program_gets_its_term(workshop: Workshop) -> None:
    process = await zoo(workshop, "echo ready; kill -STOP $$; sleep 600")
    await until_output(process, b"ready")
    assert exit_code(await end(process)) == -signal.SIGTERM


async def test_a_fork_bomb_under_a_cap_is_ended(workshop: Workshop) -> None:
    bomb = ("import os,sys,time\nprint('ready', flush=True)\nuntil = time.monotonic() + 60\n"
            "while time.monotonic() < until:\n"
            "    try:\n        if len(os.listdir('/proc')) < 400: os.fork()\n        else: time.sleep(0.001)\n"
            "    except OSError: pass\n")
    process = await workshop.run(PYTHON, "-c", bomb, environment={"MARK": MARK})
    await until_output(process, b"ready")
    ended = await end(process, signal.SIGKILL)
    assert exit_code(ended) == -signal.SIGKILL
    await until_gone(MARK)


async def test_every_way_to_end_is_told_apart(workshop: Workshop) -> None:
    for script, code in (("exit 0", 0), ("exit 200", 200), ("kill -KILL $$", -9), ("kill -SEGV $$", -11)):
        assert exit_code(await (await zoo(workshop, script)).wait()) == code
        assert exit_code(await (await zoo(workshop, script, tty=True)).wait()) == code


async def test_binary_output_without_a_newline_arrives_as_it_is(workshop: Workshop) -> None:
    every = bytes(range(256)) * 500
    (workshop.root / "every").write_bytes(every)
    assert (await workshop.ended("cat", "every")).tail == every


async def test_a_program_that_closes_its_output_early_ends_by_itself(workshop: Workshop) -> None:
    process = await zoo(workshop, "echo first; exec >&- 2>&-; sleep 0.3; exit 4")
    assert await whole_output(process) == b"first\n"
    assert process.leader_status is None
    assert exit_code(await process.wait()) == 4


async def test_a_gigabyte_that_nobody_reads_is_counted_and_holds_nobody_up(workshop: Workshop) -> None:
    writer = "import os\nblock = b'x' * 65536\nfor _ in range(16384): os.write(1, block)\n"
    process = await workshop.run(PYTHON, "-c", writer)
    answered = 0
    while not process.peek().is_end:
        await anyio.sleep(0.01)
        answered += 1
    ended = await process.wait()
    assert ended.output_bytes == 1 << 30
    assert len(ended.tail) == 256 * 1024
    assert answered > 3


async def test_two_hundred_at_once_all_end_and_say_their_own(workshop: Workshop) -> None:
    said = {}

    async def run(number: int) -> None:
        said[number] = (await workshop.ended("sh", "-c", f"echo {number}; exit {number % 100}")).tail

    async with anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(run, number)
    assert said == {number: b"%d\n" % number for number in range(200)}


@pytest.mark.parametrize("tty", [False, True])
async def test_hundred_commands_leave_no_descriptor_no_zombie_and_no_process(
    workshop: Workshop, *, tty: bool
) -> None:
    await repeat_and_compare(workshop, 100, tty=tty)


@pytest.mark.soak
async def test_a_thousand_commands_leave_nothing(tmp_path: Path) -> None:
    with anyio.fail_after(300):
        async with own_runner(tmp_path, processes_max=256) as runner:
            workshop = Workshop(runner, tmp_path, Locks(tmp_path / "locks"))
            await repeat_and_compare(workshop, 1000, tty=False)
            await repeat_and_compare(workshop, 1000, tty=True)


async def repeat_and_compare(workshop: Workshop, count: int, *, tty: bool) -> None:
    async def one(number: int) -> None:
        match number % 5:
            case 0:
                lease = workshop.locks.take(f"abandoned-{number}")
                child = await workshop.runner.start(command(workshop.root, "true", tty=tty), lease=lease)
                lease.release()
                await child.abandon()
            case 1:
                process = await workshop.run("cat", stdin="pipe", tty=tty)
                await process.write(b"hi\n", is_eof=True)
                await process.wait()
            case 2:
                await end(await workshop.run("sleep", "600", stdin="pipe", tty=tty), signal.SIGKILL)
            case _:
                assert b"word" in (await workshop.ended("echo", "word", tty=tty)).tail

    def state() -> tuple[int, list[int], int]:
        children = [pid for pid, _ in children_of(os.getpid())]  # other tests' servers among them
        spawners = [pid for pid in children if b"/spawner/main.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert spawners
        assert [state for pid in spawners for _, state in children_of(pid) if state in "ZX"] == []
        open_there = [len(os.listdir(f"/proc/{pid}/fd")) for pid in spawners]
        open_there += [len(os.listdir(f"/proc/{reaper}/fd")) for pid in spawners for reaper, _ in children_of(pid)]
        return len(os.listdir("/proc/self/fd")), open_there, len(os.listdir("/proc/self/task"))

    def more_than(before: tuple[int, list[int], int]) -> list[str]:
        own, there, tasks = state()
        counts = {"descriptors here": (own, before[0]), "descriptors there": (sum(there), sum(before[1])),
                  "threads": (tasks, before[2])}
        return [f"{name}: {late}, before {early}" for name, (late, early) in counts.items() if late > early]

    for number in range(5):
        await one(number)
    before = state()
    for number in range(count):
        await one(number)
    # What belongs to the last command is closed by a task of its own, a moment after its end: so it is for the first
    # look, which may have seen one descriptor more than stays, as for this one.
    with anyio.move_on_after(10):
        while more_than(before):
            await anyio.sleep(0.01)
    assert more_than(before) == []
