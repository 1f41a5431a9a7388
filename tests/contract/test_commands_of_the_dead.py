"""A command whose server is dead never counts as running, also where nobody may settle it; a read writes nothing."""

import json
import signal
from pathlib import Path

import anyio
import pytest

from codespace_es.ports.fault_points import FaultHook, FaultPoint
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.cli_project import Project
from support.commands import SECONDS_MAX, Commands, lines_of
from support.crash_faults import Death
from support.server import Server, ServerDied
from support.stdio_client import product, raw_client

pytestmark = pytest.mark.anyio


def die_at(point: FaultPoint) -> FaultHook:
    """Return a death at the first such point; the dead don't act."""
    passed: list[FaultPoint] = []

    def reach(reached: FaultPoint) -> None:
        passed.append(reached)
        if point in passed:
            raise Death

    return reach


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / name for name in ("ws", "other")}
    for root in made.values():
        root.mkdir()
    return made


async def left_running(scratch: Path, root: Path) -> tuple[str, str]:
    """Return a command whose server died while it ran, and that server."""
    server = await Server(scratch, {"ws": root}, sandbox="off").start()
    process_id = await Commands(server).shell("echo said; sleep 300")
    await Commands(server).until(process_id, "said")
    await server.die()
    return process_id, server.world.instance_id


async def test_a_server_of_another_workspace_says_that_the_owner_is_dead(
    tmp_path: Path, roots: dict[str, Path]
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        process_id, owner = await left_running(tmp_path, roots["ws"])
        async with Server(tmp_path, {"other": roots["other"]}, sandbox="off") as server:
            commands = Commands(server)
            head = await server.log.head()
            report = await commands.status(process_id)
            assert (report.state, report.termination, report.live, report.eof) == ("exited", "unknown", False, True)
            assert (report.owner, [each.kind for each in report.warnings]) == (owner, ["owner_dead"])
            assert owner in report.warnings[0].message
            read = await commands.read(process_id)
            assert (read.chunk, read.eof, read.output_lost) == ("", True, True)
            with pytest.raises(CodespaceError) as refusal:
                await commands.write(process_id, "x")
            assert refusal.value.code is ErrorCode.PROCESS_NOT_RUNNING
            await commands.terminate(process_id)
            assert await server.log.head() == head
        async with Server(tmp_path, {"ws": roots["ws"]}, sandbox="off") as server:
            report = await Commands(server).status(process_id)
            assert (report.state, report.termination, report.owner, report.warnings) == ("exited", "unknown", None, ())


async def test_a_repeat_by_key_tells_no_start_that_nobody_knows_of(tmp_path: Path, roots: dict[str, Path]) -> None:
    """Its server died between the record of it and the moment when it would have been let go."""
    argv = ("bash", "-c", "echo x >> count")
    with anyio.fail_after(SECONDS_MAX):
        async with Server(tmp_path, {"ws": roots["ws"]}, sandbox="off") as server:
            dying = await Server(tmp_path, {"ws": roots["ws"]}, sandbox="off").start()
            dying.hook = die_at(FaultPoint.EXEC_RECORDED)
            with pytest.raises(ServerDied):
                await Commands(dying).exec(*argv, operation_key="k")
            await dying.die()
            again = await Commands(server).exec(*argv, operation_key="k")
            assert (again.replayed, again.dispatch_status) == (True, "unknown")
            assert (await Commands(server).ended(again.process_id)).termination == "unknown"
            assert lines_of(roots["ws"] / "count") == 0


async def test_a_repeat_waits_for_what_runs_in_another_server(tmp_path: Path, roots: dict[str, Path]) -> None:
    argv = ("bash", "-c", "read word; exit 3")
    with anyio.fail_after(SECONDS_MAX):
        async with (
            Server(tmp_path, {"ws": roots["ws"]}, sandbox="off") as server,
            Server(tmp_path, {"ws": roots["ws"]}, sandbox="off") as other,
            anyio.create_task_group() as tasks,
        ):
            process_id = await Commands(server).start(*argv, stdin="pipe", operation_key="k")
            answers = []

            async def repeat(wait_ms: int) -> None:
                answers.append(await Commands(other).exec(*argv, stdin="pipe", operation_key="k", wait_ms=wait_ms))

            await repeat(1)
            assert (answers[0].state, answers[0].dispatch_status) == ("running", "confirmed")
            tasks.start_soon(repeat, limits.READ_OUTPUT_WAIT_MS_MAX)
            await anyio.wait_all_tasks_blocked()
            await Commands(server).write(process_id, "", eof=True)
            while len(answers) < 2:
                await anyio.sleep(0.005)
            assert (answers[1].process_id, answers[1].state, answers[1].exit_code) == (process_id, "exited", 3)
            assert answers[1].dispatch_status == "confirmed"


async def test_one_that_can_not_be_settled_here_is_told_alike(tmp_path: Path, roots: dict[str, Path]) -> None:
    """The root on record was replaced by another directory: it stays open, and nobody is told that it runs."""
    with anyio.fail_after(SECONDS_MAX):
        process_id, owner = await left_running(tmp_path, roots["ws"])
        roots["ws"].rename(tmp_path / "moved")
        roots["ws"].mkdir()
        async with Server(tmp_path, {"ws": roots["ws"]}, sandbox="off") as server:
            report = await Commands(server).status(process_id)
            assert (report.state, report.termination, report.owner) == ("exited", "unknown", owner)
            assert [item.stream_id for item in await server.log.open_items(kind="process")] == [process_id]


async def test_the_command_line_asks_the_lock_of_a_server_that_was_killed(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(product(tmp_path, f"demo={project.root}:workspace-write"), tmp_path) as client:
            started = await client.call("exec_command", workspace_id="demo", command=["sleep", "300"])
            process_id = started["process_id"]
            assert (await anyio.to_thread.run_sync(project.call, "processes")).stdout.split("\t")[1] == "running"
            client.kill(signal.SIGKILL)
            await client.exit_code()
        while "running" in (listed := await anyio.to_thread.run_sync(project.call, "processes")).stdout:
            await anyio.sleep(0.01)  # its spawner holds the lock until what it ran has ended
    assert listed.stdout.split("\t")[:2] == [process_id, "unknown"]
    told = json.loads(project.call("show", process_id, "--json").stdout)["process"]
    assert (told["report"]["state"], told["report"]["termination"]) == ("exited", "unknown")
    assert "is dead, so how it ended is unknown" in told["note"]
    assert "process.spawned" in (log := project.call("log").stdout)
    assert "process.exited" not in log
