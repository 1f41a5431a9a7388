"""The runner's promises, with real processes, for a spawner of our own and for one behind a socket."""

import errno
import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from adapters.runner.spawner_runner import SpawnerRunner
from codespace_es.ports.runner import (
    InputClosedError,
    LimitReachedError,
    NotStartedError,
    NotTerminalError,
    RunnerLostError,
)
from support.process_runner import (
    Locks,
    SharedWorkshop,
    Workshop,
    command,
    is_alive,
    own_runner,
    processes_with,
    uds_runner,
    until_gone,
    until_output,
    whole_output,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Share a runner between the tests."""
    return "asyncio"


@pytest.fixture(scope="module", params=[own_runner, uds_runner], ids=["own", "uds"])
async def runner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SpawnerRunner]:
    async with request.param(tmp_path_factory.mktemp("runner"), processes_max=4) as opened:
        yield opened


@pytest.fixture
async def workshop(runner: SpawnerRunner, tmp_path: Path) -> AsyncIterator[Workshop]:
    root = tmp_path / "root"
    root.mkdir()
    with anyio.fail_after(30):
        made = SharedWorkshop(runner, root, Locks(tmp_path / "locks"))
        yield made
        await made.end_all()


async def test_a_command_runs_in_its_root_with_its_environment_alone(workshop: Workshop) -> None:
    end = await workshop.ended("sh", "-c", "pwd; env | sort; echo problem >&2; exit 3", environment={"MINE": "ö"})
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == 3
    lines = end.tail.decode().splitlines()
    assert lines[0] == str(workshop.root)
    assert lines[-1] == "problem"
    names = {line.partition("=")[0] for line in lines[1:-1]}
    assert names <= {"PATH", "LANG", "TERM", "MINE", "CODESPACE_EXEC", "PWD", "SHLVL", "_", "OLDPWD", "HOME", "TMPDIR"}
    assert "MINE=ö" in lines
    assert (end.swept, end.is_output_cut, end.retained_from, end.output_bytes) == (0, False, 0, len(end.tail))


async def test_a_gated_child_has_an_identity_and_has_run_nothing(workshop: Workshop) -> None:
    mark = workshop.root / "ran"
    gated = command(workshop.root, "touch", "ran", sandbox="auto")
    child = await workshop.runner.start(gated, lease=workshop.locks.take("w"))
    stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    assert child.started_ticks == int(stat[19])
    assert child.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert child.pid_namespace == os.stat("/proc/self/ns/pid").st_ino
    expected = await workshop.runner.sandbox()
    assert (child.sandbox.level, child.sandbox.kind) == (expected.level, expected.kind)
    assert not mark.exists()
    process = await child.go()
    await process.wait()
    assert mark.exists()


async def test_an_abandoned_child_never_runs_and_frees_its_slot_and_lease(workshop: Workshop) -> None:
    for number in range(6):  # more than there are slots
        lease = workshop.locks.take("w")
        child = await workshop.runner.start(command(workshop.root, "touch", f"ran{number}"), lease=lease)
        lease.release()
        assert not workshop.locks.is_free("w")
        await child.abandon()
        await child.abandon()
        assert not is_alive(child.pid)
        assert workshop.locks.is_free("w")
    assert list(workshop.root.iterdir()) == []


async def cancel(scope: anyio.CancelScope) -> None:
    scope.cancel()


async def test_a_start_that_is_cancelled_runs_nothing_and_frees_its_slot(workshop: Workshop) -> None:
    await workshop.ended("true")
    for number in range(6):
        lease = workshop.locks.take("w")
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel, scope)
                await workshop.runner.start(command(workshop.root, "touch", f"ran{number}"), lease=lease)
        assert scope.cancelled_caught
        lease.release()
        await workshop.locks.until_free("w")
    assert list(workshop.root.iterdir()) == []


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize(("argv", "number", "words"), [
    (["no-such-program"], errno.ENOENT, "isn't in PATH"),
    (["/etc"], errno.EISDIR, "directory"),
    (["/etc/passwd"], errno.EACCES, "may not be executed"),
    (["./text"], errno.ENOEXEC, "isn't a program"),
    (["./lost"], errno.ENOENT, "interpreter"),
    (["true", "a\0b"], errno.EINVAL, "NUL"),
    (["true", "x" * 200_000], errno.E2BIG, "131071"),
    (["true", *["x" * 100_000] * 100], errno.E2BIG, "together"),
    (["true", *["x" * 100_000] * 200], errno.E2BIG, "long"),
])
async def test_what_cant_be_started_says_why_and_leaves_nothing(
    workshop: Workshop, argv: list[str], number: int, words: str, *, tty: bool
) -> None:
    for name, content in (("text", "echo hi\n"), ("lost", "#!/nowhere/sh\n")):
        (workshop.root / name).write_text(content)
        (workshop.root / name).chmod(0o755)
    for _ in range(6):  # more than there are slots
        lease = workshop.locks.take("w")
        with pytest.raises(NotStartedError, match=words) as caught:
            await workshop.runner.start(command(workshop.root, *argv, tty=tty), lease=lease)
        assert caught.value.errno == number
        lease.release()
        assert workshop.locks.is_free("w")


async def test_a_missing_working_directory_is_named(workshop: Workshop) -> None:
    with pytest.raises(NotStartedError, match="working directory"):
        await workshop.runner.start(command(workshop.root / "gone", "true"), lease=workshop.locks.take("w"))


async def test_a_program_that_is_gone_after_the_gate_is_told_in_the_output(workshop: Workshop) -> None:
    for script, code in (("#!/bin/sh\n", 127), ("", 126)):
        program = workshop.root / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        lease = workshop.locks.take("w")
        child = await workshop.runner.start(command(workshop.root, "./program"), lease=lease)
        lease.release()
        program.unlink()
        if code == 126:
            program.write_text(script)
        end = await (await child.go()).wait()
        assert end.wait_status is not None
        assert os.waitstatus_to_exitcode(end.wait_status) == code
        assert end.tail.startswith(b"codespace-es: ./program couldn't be executed")


async def test_over_the_limit_nothing_is_made_until_a_slot_is_free(workshop: Workshop) -> None:
    live = [await workshop.run("sleep", "600") for _ in range(4)]
    with pytest.raises(LimitReachedError, match="4 processes are live"):
        await workshop.runner.start(command(workshop.root, "touch", "ran"), lease=workshop.locks.take("w"))
    await live[0].end(signal=signal.SIGTERM, grace_ms=5000)
    await live[0].wait()
    assert (await workshop.ended("true")).wait_status == 0
    for process in live[1:]:
        await process.end(signal=signal.SIGKILL, grace_ms=0)
        await process.wait()
    assert list(workshop.root.iterdir()) == []


async def test_the_lease_is_held_exactly_as_long_as_the_tree_lives(workshop: Workshop) -> None:
    lease = workshop.locks.take("w")
    process = await workshop.run("sh", "-c", "setsid sleep 600 & echo ready", lease=lease)
    await until_output(process, b"ready")
    while process.leader_status is None:
        await anyio.sleep(0.005)
    assert not workshop.locks.is_free("w")
    end = await process.wait()
    assert end.swept == 1
    assert workshop.locks.is_free("w")


_SIGNALS_OF_THE_C_LIBRARY = 0b11 << 31
"""32 and 33: whoever started the tests may have them ignored, and no program can change that."""


async def test_a_program_inherits_three_descriptors_and_default_signals(workshop: Workshop) -> None:
    for tty in (False, True):
        end = await workshop.ended("bash", "-c", "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status", tty=tty)
        *descriptors, _, blocked, _, ignored = end.tail.split()
        assert descriptors == [b"0", b"1", b"2", b"3"]
        assert int(blocked, 16) == 0
        assert int(ignored, 16) & ~_SIGNALS_OF_THE_C_LIBRARY == 0
    end = await workshop.ended("bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}")
    assert end.tail == b"y\n141\n"


async def test_a_program_has_the_servers_soft_limit_of_open_files_and_the_spawner_all_it_may(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
    try:
        with anyio.fail_after(30):
            async with own_runner(tmp_path) as runner:
                workshop = Workshop(runner, tmp_path, Locks(tmp_path / "locks"))
                end = await workshop.ended("bash", "-c", "ulimit -Sn; ulimit -Hn; grep 'open files' /proc/$PPID/limits")
                assert [int(word) for word in end.tail.split() if word.isdigit()] == [hard // 2, hard, hard, hard]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_reading_waits_for_the_first_new_byte_and_says_where_it_stands(workshop: Workshop) -> None:
    process = await workshop.run("cat", stdin="pipe")
    assert (await process.read(0, wait_ms=0, bytes_max=10)).content == b""
    chunks = []

    async def read() -> None:
        chunks.append(await process.read(0, wait_ms=20_000, bytes_max=3))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await process.write(b"abcdef", is_eof=False)
    assert chunks[0].content == b"abc"[: len(chunks[0].content)]
    await until_output(process, b"abcdef")
    again = await process.read(2, wait_ms=0, bytes_max=100)
    assert (again.start, again.content, again.is_end, again.retained_from, again.total) == (2, b"cdef", False, 0, 6)
    beyond = await process.read(99, wait_ms=0, bytes_max=10)
    assert (beyond.start, beyond.content, beyond.is_end) == (99, b"", False)
    await process.write(b"", is_eof=True)
    end = await process.wait()
    assert (end.tail, end.wait_status) == (b"abcdef", 0)
    last = await process.read(2, wait_ms=0, bytes_max=100)
    assert (last.content, last.is_end) == (b"cdef", True)
    assert (await process.read(99, wait_ms=10_000, bytes_max=1)).is_end
    assert (process.peek().start, process.peek().is_end) == (6, True)


async def test_input_is_taken_in_order_and_closed_behind_the_end(workshop: Workshop) -> None:
    process = await workshop.run("cat", stdin="pipe", output_retention_bytes=4 << 20)
    sent = b"".join(b"%07d\n" % number for number in range(250_000))
    for start in range(0, len(sent), 100_000):
        await process.write(sent[start : start + 100_000], is_eof=False)
    await process.write(b"", is_eof=True)
    with pytest.raises(InputClosedError):
        await process.write(b"more", is_eof=False)
    end = await process.wait()
    assert end.tail == sent
    assert end.head == b"", "the tail reaches back to the beginning"


async def test_a_child_that_never_reads_blocks_nobody_and_its_queue_is_bounded(workshop: Workshop) -> None:
    deaf = await workshop.run("sleep", "600", stdin="pipe")
    await deaf.write(b"x" * (15 << 20), is_eof=False)
    deaf.require_room(1000)
    with pytest.raises(LimitReachedError):
        deaf.require_room(2 << 20)
    with pytest.raises(LimitReachedError):
        await deaf.write(b"x" * (2 << 20), is_eof=False)
    assert (await workshop.ended("cat")).wait_status == 0
    await deaf.end(signal=signal.SIGTERM, grace_ms=5000)
    await deaf.wait()
    with pytest.raises(InputClosedError):
        await deaf.write(b"x", is_eof=False)


async def test_input_that_isnt_there_or_was_closed_by_the_child_is_refused(workshop: Workshop) -> None:
    without = await workshop.run("sleep", "600")
    with pytest.raises(InputClosedError):
        without.require_room(0)
    with pytest.raises(InputClosedError):
        await without.write(b"x", is_eof=False)
    with pytest.raises(NotTerminalError):
        await without.resize(1, 1)
    closed = await workshop.shell("exec <&-; echo closed; sleep 600", stdin="pipe")
    await until_output(closed, b"closed")
    with pytest.raises(InputClosedError):
        await closed.write(b"x", is_eof=False)
    for process in (without, closed):
        await process.end(signal=signal.SIGKILL, grace_ms=0)
        await process.wait()


async def test_more_output_than_is_retained_keeps_head_tail_and_exact_counts(workshop: Workshop) -> None:
    for retention in (1000, 3 << 20):
        process = await workshop.run("seq", "1", "1000000", output_retention_bytes=retention, head_bytes=50)
        end = await process.wait()
        whole = b"".join(b"%d\n" % number for number in range(1, 1_000_001))
        assert end.output_bytes == len(whole)
        assert (end.tail, end.head) == (whole[-retention:], whole[:50])
        assert end.retained_from == len(whole) - retention
        chunk = await process.read(0, wait_ms=0, bytes_max=10)
        assert (chunk.start, chunk.content) == (end.retained_from, end.tail[:10])


async def test_a_link_that_is_closed_ends_all_and_raises_in_whoever_waits(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with own_runner(tmp_path) as runner:
            workshop = Workshop(runner, tmp_path, Locks(tmp_path / "locks"))
            process = await workshop.shell("setsid sleep 600 & sleep 600", environment={"MARK": "closing-down"})
            child = await runner.start(command(tmp_path, "touch", "ran"), lease=workshop.locks.take("w"))
            failures = []

            async def wait() -> None:
                try:
                    await process.wait()
                except RunnerLostError as error:
                    failures.append(error)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.lowlevel.checkpoint()
                await runner.close()
            assert len(failures) == 1
            await child.abandon()
            with pytest.raises(RunnerLostError):
                await process.end(signal=signal.SIGTERM, grace_ms=0)
        await until_gone("closing-down")
        assert not (tmp_path / "ran").exists()


async def test_another_process_can_read_what_it_prints_while_it_runs(workshop: Workshop) -> None:
    process = await workshop.shell("for i in 1 2 3; do echo $i; done", stdin="null")
    assert await whole_output(process) == b"1\n2\n3\n"
    await process.wait()
    assert processes_with("never-a-mark") == []

