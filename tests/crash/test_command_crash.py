"""A death at every moment of a command's story: it ran at most once, whoever dies, and the log says how it ended.

Counted by a file that the command itself writes. Source: decisions 18, 19; reliability.md sections 4 and 5.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from codespace_es.invocation import ExecCommand
from codespace_es.ports.fault_points import FaultPoint, no_faults
from codespace_es.vocabulary.errors import CodespaceError
from support.commands import SECONDS_MAX, Commands, lines_of
from support.crash_faults import count as tally
from support.process_runner import children_of, is_alive, spawner_of
from support.server import DieFrom, Server, ServerDied

pytestmark = pytest.mark.anyio

SCRIPT = "echo x >> count; echo said"
COMMAND = ExecCommand(workspace_id="ws", command=["bash", "-c", SCRIPT], operation_key="k")
STORY_POINTS = {
    FaultPoint.EXEC_LEASED, FaultPoint.EXEC_FORKED, FaultPoint.EXEC_RECORDED, FaultPoint.EXEC_GONE,
    FaultPoint.EXEC_ENDED, FaultPoint.EXEC_EXIT_RECORDED,
}


async def run_to_death(scratch: Path, root: Path, k: int) -> tuple[DieFrom, str | None]:
    """Run the command in a server that dies at its k-th point; return the fate, and the id if there was an answer."""
    server = await Server(scratch, {"ws": root}, sandbox="off").start()
    server.hook = fate = DieFrom(k)
    answered = None
    with suppress(ServerDied):
        try:
            answered = (await Commands(server).exec("bash", "-c", SCRIPT, operation_key="k")).process_id
        except CodespaceError as error:
            if error.code != "STORE_UNAVAILABLE":  # on the writer's thread a death is a failed transaction
                raise
    while answered and not server.is_dead and len(server.world.live):
        await anyio.sleep(0.002)
    await server.die()
    return fate, answered


async def test_a_death_at_any_moment_runs_it_at_most_once_and_leaves_a_true_record(memory_path: Path) -> None:
    passed: set[FaultPoint] = set()
    for k in range(1, 60):
        scratch = memory_path / str(k)
        root = scratch / "ws"
        root.mkdir(parents=True)
        with anyio.fail_after(SECONDS_MAX):
            fate, answered = await run_to_death(scratch, root, k)
            passed.update(fate.points)
            tally("command: one death", 1)
            await _check(scratch, root, answered)
        if not fate.has_struck:
            break
    assert passed >= STORY_POINTS


async def _check(scratch: Path, root: Path, answered: str | None) -> None:
    ran = lines_of(root / "count")
    assert ran <= 1
    async with Server(scratch, {"ws": root}, sandbox="off") as server:
        commands = Commands(server)
        again = await commands.exec(*COMMAND.command, operation_key="k")
        assert answered in (None, again.process_id)
        report = await commands.ended(again.process_id)
        assert report.state == "exited"
        if again.replayed is None:
            assert ran == 0, "without a record nothing ran"
            assert report.exit_code == 0
        if report.termination == "exited":
            assert lines_of(root / "count") == 1
            assert (await commands.read(again.process_id)).chunk == "said\n"
        else:
            assert report.termination == "unknown"
            assert again.dispatch_status == "unknown"
            gone = await commands.read(again.process_id)
            assert (gone.chunk, gone.eof, gone.output_lost) == ("", True, True)
        assert lines_of(root / "count") <= 1
        assert not await server.log.open_items(kind="process")
        assert (await commands.run("true"))[0].exit_code == 0
        settled = await commands.topics(again.process_id)
    async with Server(scratch, {"ws": root}, sandbox="off") as server:
        assert await Commands(server).topics(again.process_id) == settled
        assert (await Commands(server).exec(*COMMAND.command, operation_key="k")).process_id == again.process_id
    assert lines_of(root / "count") <= 1


@pytest.fixture
def root(memory_path: Path) -> Path:
    made = memory_path / "ws"
    made.mkdir()
    return made


@pytest.mark.parametrize("live_process", ["exclusive", "shared"])
async def test_a_lost_runner_costs_its_commands_and_nothing_more(
    memory_path: Path, root: Path, live_process: str
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with Server(memory_path, {"ws": root}, sandbox="off", live_process=live_process) as server:
            commands = Commands(server)
            process_id = await commands.shell("echo said; (setsid sleep 300 &); echo $$; sleep 300")
            while len(text := (await commands.read(process_id)).chunk.split()) < 2:
                await anyio.sleep(0.005)
            pid = int(text[1])
            os.kill(spawner_of(os.getpid()), signal.SIGKILL)
            report = await commands.ended(process_id)
            assert not is_alive(pid)
            assert (report.termination, report.exit_code) == ("unknown", None)
            piece = await commands.read(process_id)
            assert (piece.chunk.split()[0], piece.eof, piece.output_lost) == ("said", True, False)
            await commands.terminate(process_id)
            report, output = await commands.run("echo", "again")
            assert (report.exit_code, output) == (0, "again\n")


@pytest.mark.parametrize(
    ("lost_at", "dispatch"), [(FaultPoint.EXEC_RECORDED, "unknown"), (FaultPoint.EXEC_GONE, "confirmed")]
)
async def test_a_runner_lost_around_go_leaves_it_open_whether_it_ran(
    memory_path: Path, root: Path, lost_at: FaultPoint, dispatch: str
) -> None:
    """T-U04: the id is answered, and stands for ever for what may have been started once."""

    def lose_runner(point: FaultPoint) -> None:
        if point == lost_at:
            spawner = spawner_of(os.getpid())
            os.kill(spawner, signal.SIGKILL)
            while is_alive(spawner):
                time.sleep(0.001)

    with anyio.fail_after(SECONDS_MAX):
        async with Server(memory_path, {"ws": root}, sandbox="off") as server:
            commands = Commands(server)
            server.hook = lose_runner
            answer = await commands.exec(*COMMAND.command, operation_key="k")
            server.hook = no_faults
            assert answer.dispatch_status == dispatch
            if dispatch == "unknown":
                at_once = await commands.exec(*COMMAND.command, operation_key="k")
                assert (at_once.process_id, at_once.dispatch_status) == (answer.process_id, "unknown")
            report = await commands.ended(answer.process_id)
            if dispatch == "unknown":
                assert report.termination == "unknown"
            again = await commands.exec(*COMMAND.command, operation_key="k")
            assert (again.process_id, again.replayed) == (answer.process_id, True)
            assert again.dispatch_status == ("unknown" if report.termination == "unknown" else "confirmed")
            assert (await commands.run("echo", "again"))[1] == "again\n"
    assert lines_of(root / "count") <= 1


async def test_a_command_is_known_to_another_server_while_its_own_lives_and_after(
    memory_path: Path, root: Path
) -> None:
    """Decision 5; T19."""
    with anyio.fail_after(SECONDS_MAX):
        first = await Server(memory_path, {"ws": root}, sandbox="off").start()
        process_id = await Commands(first).shell("echo said; sleep 300")
        await Commands(first).until(process_id, "said")
        async with Server(memory_path, {"ws": root}, sandbox="off") as second:
            commands = Commands(second)
            report = await commands.status(process_id)
            assert (report.state, report.live, report.owner) == ("running", False, first.world.instance_id)
            for call in (
                commands.read(process_id), commands.write(process_id, "x"), commands.resize(process_id, 2, 2),
                commands.terminate(process_id),
            ):
                with pytest.raises(CodespaceError) as refusal:
                    await call
                assert refusal.value.code == "PROCESS_NOT_FOUND"
                assert first.world.instance_id in refusal.value.message
            with pytest.raises(CodespaceError) as refusal:
                await commands.start("true")
            assert refusal.value.code == "WORKSPACE_BUSY"
            await first.die()
            report = await commands.ended(process_id)
            assert (report.termination, report.owner, report.live) == ("unknown", None, False)
            await commands.terminate(process_id)
            assert (await commands.run("true"))[0].exit_code == 0


async def test_what_outlived_all_who_watched_it_is_ended_by_the_next_server(memory_path: Path, root: Path) -> None:
    """Server, spawner and reaper are gone at one blow: nobody is left to end the tree but whoever settles it."""
    with anyio.fail_after(SECONDS_MAX):
        first = await Server(memory_path, {"ws": root}, sandbox="off").start()
        commands = Commands(first)
        process_id = await commands.shell("(setsid sleep 300 & echo $!); echo $$; sleep 300")
        while len(text := (await commands.read(process_id)).chunk.split()) < 2:
            await anyio.sleep(0.005)
        pids = [int(pid) for pid in text]
        spawner = spawner_of(os.getpid())
        watchers = [spawner, *(pid for pid, _ in children_of(spawner))]
        first.is_dead = True
        first.hook = DieFrom(1)
        for pid in watchers:
            os.kill(pid, signal.SIGSTOP)
        for pid in watchers:
            os.kill(pid, signal.SIGKILL)
        await first.die()
        async with Server(memory_path, {"ws": root}, sandbox="off") as second:
            report = await Commands(second).ended(process_id)
            assert report.termination == "unknown"
            assert not any(is_alive(pid) for pid in pids)
            assert (await Commands(second).run("true"))[0].exit_code == 0
