"""A command whose server is dead never counts as running, also where nobody may settle it; a read writes nothing."""

import json
import signal
from pathlib import Path

import anyio
import pytest

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.cli_project import Project
from support.commands import SECONDS_MAX, Commands
from support.server import Server
from support.stdio_client import product, raw_client

pytestmark = pytest.mark.anyio


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
