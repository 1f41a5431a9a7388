"""The composition root: the order of coming to life, what a start that fails says, and what an end leaves."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from adapters.bootstrap import open_codespace
from adapters.cli.options import effective_settings
from adapters.locks.flock import lock_directory_of_user
from adapters.locks.instance_lock import FlockInstanceLocks
from adapters.log.reader import LogReader
from adapters.settings.load import Flags, Settings
from adapters.settings.problem import StartupError
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from support.cli_project import GREETING, Project, patch
from support.warm_servers import own_environment, run_program

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def settings_of(project: Project, **changes: object) -> Settings:
    flags = Flags(data_dir=str(project.data), workspaces=(f"demo={project.root}",))
    return replace(effective_settings(flags, {}), **changes)  # type: ignore[arg-type]  # named by the test


def topics(project: Project) -> list[str]:
    with LogReader(project.data / "codespace.db", CATALOGUE) as log:
        return [recorded.topic for recorded in log.read_log()]


async def test_a_life_begins_with_the_store_and_ends_with_a_reason(project: Project) -> None:
    async with project.opened() as opened:
        result = await patch(opened)
    assert result.status == "applied"
    assert topics(project) == [
        "store.created.v1", "instance.started.v1", "workspace.bound.v1", "operation.minted.v1",
        "operation.finished.v1", "instance.stopped.v1",
    ]


async def test_the_instance_s_lock_is_held_exactly_while_it_lives(project: Project) -> None:
    locks = FlockInstanceLocks(lock_directory_of_user())
    async with project.opened() as opened:
        instance_id = opened.world.instance_id
        assert locks.try_take(instance_id) is None
    assert f"{instance_id}.lock" not in os.listdir(lock_directory_of_user())
    held = locks.try_take(instance_id)
    assert held is not None
    held.release()


async def test_the_log_and_its_directory_are_this_user_s_alone(project: Project) -> None:
    before = os.umask(0)
    try:
        async with project.opened():
            pass
    finally:
        os.umask(before)
    assert project.data.stat().st_mode & 0o077 == 0
    assert (project.data / "codespace.db").stat().st_mode & 0o077 == 0


async def test_an_ephemeral_store_leaves_nothing_behind(project: Project) -> None:
    async with open_codespace(settings_of(project, log_path=None), transport="stdio") as opened:
        assert (await patch(opened)).status == "applied"
    assert not project.data.exists()


async def test_an_error_of_the_body_escapes_as_itself(project: Project) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with project.opened():
            raise KeyError("mine")


async def test_a_refusal_of_the_body_is_no_start_up_error(project: Project) -> None:
    with pytest.raises(CodespaceError):
        async with project.opened() as opened:
            await patch(opened, "nonsense")
    assert topics(project)[-1] == "instance.stopped.v1"


async def test_a_cancelled_body_ends_without_an_error_of_its_own(project: Project) -> None:
    with anyio.move_on_after(0):
        async with project.opened():
            await anyio.sleep_forever()


@pytest.mark.parametrize("content", [b"this is no database, only text " * 100, None])
async def test_what_is_no_log_is_refused_in_one_sentence(project: Project, content: bytes | None) -> None:
    project.data.mkdir()
    log = project.data / "codespace.db"
    if content is None:
        log.mkdir()
    else:
        log.write_bytes(content)
    with pytest.raises(StartupError, match="can't start") as refused:
        async with project.opened():
            pytest.fail("it came to life")
    assert "\n" not in str(refused.value)
    assert not str(refused.value).endswith("..")


async def test_a_log_that_fails_ends_the_body_and_says_why(project: Project) -> None:
    reached: list[str] = []

    async def serve() -> None:
        async with project.opened() as opened:
            # The log calls this when an I/O error means that nothing can be acknowledged any more.
            opened.world.log._on_failure("broken")  # type: ignore[attr-defined]  # the adapter's own hook
            await anyio.sleep(0)
            reached.append("went on")

    with pytest.raises(StoreUnavailableError, match="broken"):
        await serve()
    assert not reached


@pytest.mark.parametrize(
    ("point", "status", "content"),
    [("patch.minted", "failed_rolled_back", GREETING), ("install.swapped", "applied", "good day\n")],
)
async def test_the_first_answer_of_a_new_server_tells_the_truth_of_what_a_killed_one_left(
    project: Project, point: str, status: str, content: str
) -> None:
    killed = await _patch_and_be_killed(project, point)
    assert killed == -9
    async with project.opened() as opened:
        caller = Caller("mcp", RequestId("req-1"))
        told = await opened.codespace.handle(ReportOperation(operation_key="cut"), caller)
    assert told.to_wire()["status"] == status
    assert (project.root / "greeting.txt").read_text(encoding="utf-8") == content
    assert "instance.recovered.v1" in topics(project)


async def test_what_a_killed_server_left_is_settled_although_nobody_asks(project: Project) -> None:
    await _patch_and_be_killed(project, "install.swapped")
    async with project.opened() as opened:
        with anyio.fail_after(10):
            async for recorded in opened.world.log.follow():
                if recorded.topic == "instance.recovered.v1":
                    break
        assert not await opened.world.log.open_items(kind="operation")


async def _patch_and_be_killed(project: Project, point: str) -> int:
    """Let a process of its own begin a patch and kill itself at `point`; return its exit status."""
    command = [sys.executable, "-m", "support.dying_patch", str(project.root), str(project.data), point]
    return (await run_program(command, env=own_environment())).returncode
