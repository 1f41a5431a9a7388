"""The beginning of an id, as timelines and the console show it, is enough where no other id begins like it."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from uuid import UUID

import anyio
import pytest

from adapters.clock_and_ids import RandomIds
from adapters.log.reader import LogReader
from codespace_es.command_handlers.inbox import WriteIntent
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.steering import IntentAnswer, OpenWorkCommand, WorkAnswer
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from codespace_es.vocabulary.patch_result import PatchResult
from support.cli_project import Project, patch

SHORT = len("op-00000000")


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ids begin with their number: the log is real, and which ids are alike is known."""
    number = count(1)
    monkeypatch.setattr(RandomIds, "uuid", lambda _: UUID(f"aaaa{next(number):04x}-0000-4000-8000-000000000000"))


def patched(project: Project, key: str | None = None) -> str:
    async def live() -> str:
        async with project.opened() as opened:
            return (await patch(opened, key=key)).operation_id

    return anyio.run(live)


def test_a_beginning_stands_for_the_id(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    operation = patched(project)
    short = operation[:SHORT]
    assert project.call("show", short).stdout == project.call("show", operation).stdout
    assert project.call("replay", "--at", short).stdout == project.call("replay", "--at", operation).stdout
    undone = project.call("undo", short)
    assert (undone.returncode, undone.stdout.split()[:2]) == (0, ["status", "applied"])
    assert "undone by" in project.call("show", short).stdout


@pytest.mark.usefixtures("numbers")
def test_one_that_several_ids_begin_with_changes_nothing_and_names_two(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    operation = patched(project)
    undo_check = project.call("undo", operation, "--check")
    assert undo_check.returncode == 0  # a preview: the second operation
    with LogReader(project.data / "codespace.db", CATALOGUE) as reader:
        before = reader.head()
        first, second = reader.streams_beginning("op-aaaa")
        assert reader.streams_beginning(first) == [first]
    for command in (["show"], ["undo"], ["replay", "--at"]):
        called = project.call(*command, "op-aaaa")
        assert (called.returncode, called.stdout) == (2, "")
        assert f"several ids begin with 'op-aaaa', such as {first} and {second}" in " ".join(called.stderr.split())
    with LogReader(project.data / "codespace.db", CATALOGUE) as reader:
        assert reader.head() == before


@pytest.mark.parametrize("name", ["op-ffff0000", "op-", "op-aaa", "aaaa0001", "store-aaaa", "op-AAAA0001", "%", ""])
def test_what_no_id_begins_with_is_nothing(tmp_path: Path, name: str) -> None:
    project = Project.make(tmp_path)
    patched(project)
    called = project.call("show", name)
    assert (called.returncode, called.stdout) == (1, "")
    assert "knows no id" in called.stderr


def test_a_key_goes_before_a_beginning(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    operation = patched(project)
    chosen = operation[:SHORT]

    async def with_key() -> str:
        async with project.opened() as opened:
            text = "*** Begin Patch\n*** Add File: other.txt\n+other\n*** End Patch"
            return (await patch(opened, text, key=chosen)).operation_id

    other = anyio.run(with_key)
    assert project.call("show", chosen).stdout == project.call("show", other).stdout


def steered(project: Project, file: str = "new.txt") -> tuple[str, str, str]:
    """Return a work, an instruction of it, and an operation that was done in it."""

    async def live() -> tuple[str, str, str]:
        async with project.opened() as opened:
            caller = Caller("mcp", RequestId(f"req-{opened.world.ids.uuid()}"))
            work = await opened.codespace.handle(OpenWorkCommand(workspace_id="demo", title="Greet"), caller)
            assert isinstance(work, WorkAnswer)
            operator = replace(caller, channel="cli")
            intent = await opened.codespace.handle(WriteIntent(work_id=work.work_id, body="Be brief."), operator)
            assert isinstance(intent, IntentAnswer)
            text = f"*** Begin Patch\n*** Add File: {file}\n+new\n*** End Patch"
            done = await opened.codespace.handle(
                ApplyPatch(workspace_id="demo", patch=text, work_id=work.work_id), caller
            )
            assert isinstance(done, PatchResult)
            return work.work_id, intent.intent_id, done.operation_id

    return anyio.run(live)


def test_works_and_instructions_are_named_by_their_beginnings_too(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    work_id, intent_id, operation_id = steered(project)
    other_work_id, *_ = steered(Project(project.root, tmp_path / "other"), "other.txt")
    work = work_id[: len("work-00000000")]
    for whole, short in ((work_id, work), (intent_id, intent_id[: len("fb-00000000")])):
        assert project.call("show", short).stdout == project.call("show", whole).stdout
        assert project.call("show", short).returncode == 0
    assert project.call("log", "--work", work).stdout == project.call("log", "--work", work_id).stdout != ""
    assert project.call("log", "--operation", operation_id[:SHORT]).stdout.count(operation_id) > 1
    told = project.call("undo", "--work", work, "--yes")
    assert (told.returncode, told.stdout.split()[:2]) == (0, ["status", "applied"])
    for named in (work, work_id, other_work_id):
        again = project.call("undo", "--work", named, "--yes")
        assert (again.returncode, again.stdout) == (1, "")
        assert "Nothing to undo: no operation of work" in again.stderr
        assert "ask again" not in again.stderr


@pytest.mark.usefixtures("numbers")
def test_a_beginning_of_several_works_is_refused(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    first, *_ = steered(project)
    second, *_ = steered(project, "second.txt")
    for command in (["show"], ["undo", "--work"], ["log", "--work"]):
        called = project.call(*command, "work-aaaa")
        assert (called.returncode, called.stdout) == (2, "")
        assert f"several ids begin with 'work-aaaa', such as {first} and {second}" in " ".join(called.stderr.split())
