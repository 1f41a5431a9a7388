"""`undo` of several operations: one operation, all or nothing, told first; and of a work, whatever was undone in it."""

import json
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.log.reader import LogReader
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reverting import RevertOperations
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from replay.in_force import work_done
from replay.verify import verify
from support.cli_project import Called, Project
from support.holds import grant, held_and_granted, hold, look, resume
from support.server import Server

ADD = "*** Begin Patch\n*** Add File: {name}\n+{text}\n*** End Patch\n"
CHANGE = "*** Begin Patch\n*** Update File: {name}\n@@\n-{old}\n+{new}\n*** End Patch\n"
MOVE = "*** Begin Patch\n*** Update File: {name}\n*** Move to: {to}\n@@\n-{old}\n+{new}\n*** End Patch\n"
WORK = "work-of-the-test"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def live(project: Project, *patches: tuple[str, str, str | None]) -> None:
    """Apply patches, each with its key and its work."""

    async def run() -> None:
        async with project.opened() as opened:
            caller = Caller("mcp", RequestId("req-1"), "tester/1")
            for key, text, work_id in patches:
                patch = ApplyPatch(workspace_id="demo", patch=text, operation_key=key, work_id=work_id)
                await opened.codespace.handle(patch, caller)

    anyio.run(run)


def three_patches(project: Project) -> None:
    live(
        project,
        ("one", CHANGE.format(name="greeting.txt", old="hello", new="good day"), WORK),
        ("two", ADD.format(name="deep/er/notes.txt", text="note"), None),
        ("three", MOVE.format(name="greeting.txt", to="moved/greeting.txt", old="good day", new="good night"), WORK),
    )


def tree(project: Project) -> dict[str, str | None]:
    return {
        str(path.relative_to(project.root)): path.read_text(encoding="utf-8") if path.is_file() else None
        for path in sorted(project.root.rglob("*"))
    }


def undo(project: Project, *arguments: str) -> Called:
    return project.call("undo", *arguments, "--workspace", f"demo={project.root}")


def test_several_are_told_first_and_undone_as_one_operation_that_can_be_undone(project: Project) -> None:
    before = tree(project)
    three_patches(project)
    between = tree(project)
    told = undo(project, "one", "three", "two")
    assert told.returncode == 0
    lines = [line.split("\t") for line in told.stdout.splitlines()]
    assert [line[0] for line in lines[:4]] == ["undo", "undo", "undo", "status"]
    assert lines[0][3] == "apply_patch: greeting.txt, moved/greeting.txt", "the newest first"
    assert ["move", "greeting.txt"] in lines
    assert ["to do it", "the same with --yes"] in lines
    assert "rename from moved/greeting.txt" in told.stdout
    assert tree(project) == between
    done = json.loads(undo(project, "one", "two", "three", "--yes", "--json").stdout)
    assert (done["status"], len(done["also_reverts"])) == ("applied", 2)
    assert tree(project) == before
    reports = [json.loads(project.call("show", key, "--json").stdout)["report"] for key in ("one", "two", "three")]
    assert {report["reverted_by"] for report in reports} == {done["operation_id"]}
    assert project.call("verify").returncode == 0
    again = undo(project, done["operation_id"])
    assert again.returncode == 0
    assert tree(project) == between


def test_all_or_nothing_when_one_of_them_was_overwritten_or_is_undone_already(project: Project) -> None:
    three_patches(project)
    (project.root / "deep/er/notes.txt").write_text("mine\n", encoding="utf-8")
    left = tree(project)
    refused = undo(project, "one", "two", "three", "--yes")
    assert refused.returncode == 1
    assert "1 of 3 files were changed since: deep/er/notes.txt (by the outside)" in refused.stderr
    assert tree(project) == left
    assert undo(project, "three").returncode == 0
    left = tree(project)
    refused = undo(project, "one", "three", "--yes")
    assert refused.stderr.startswith("codespace-es: REVERT_CONFLICT: op-")
    assert "It was undone already" in refused.stderr
    assert tree(project) == left
    assert project.call("verify").returncode == 0


def test_a_patch_between_them_that_was_not_named_is_to_blame(project: Project) -> None:
    live(
        project,
        ("one", CHANGE.format(name="greeting.txt", old="hello", new="1"), None),
        ("two", CHANGE.format(name="greeting.txt", old="1", new="2"), None),
        ("three", CHANGE.format(name="greeting.txt", old="2", new="3"), None),
    )
    blamed = json.loads(project.call("show", "two", "--json").stdout)["id"]
    refused = undo(project, "one", "three", "--yes")
    assert f"greeting.txt (by {blamed})" in refused.stderr
    assert tree(project) == {"greeting.txt": "3\n"}


def test_a_work_is_undone_and_what_was_not_its_own_stays(project: Project) -> None:
    before = tree(project)
    three_patches(project)
    told = undo(project, "--work", WORK)
    assert told.stdout.count("undo\top-") == 2
    done = undo(project, "--work", WORK, "--yes")
    assert done.returncode == 0, done.stderr
    assert tree(project) == {**before, "deep": None, "deep/er": None, "deep/er/notes.txt": "note\n"}
    nothing = undo(project, "--work", WORK, "--yes")
    assert (nothing.returncode, nothing.stderr) == (
        1, f"codespace-es: Nothing to undo: no operation of work {WORK!r} is in force.\n"
    )
    assert undo(project, "--work", "work-that-never-was").returncode == 1


def test_wrong_usage_is_told(project: Project) -> None:
    three_patches(project)
    assert undo(project).returncode == 2
    assert undo(project, "one", "--work", WORK).returncode == 2
    assert undo(project, "one", "op-nothing", "--yes").returncode == 1


def test_operations_of_two_directories_are_refused_together(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    async def run() -> CodespaceError:
        async with Server(tmp_path, {"demo": project.root, "other": other}) as server:
            made = [
                (await server.handle(ApplyPatch(workspace_id=each, patch=ADD.format(name="f", text="x")))).to_wire()
                for each in ("demo", "other")
            ]
            first, second = (each["operation_id"] for each in made)
            with pytest.raises(CodespaceError) as refusal:
                await server.handle(RevertOperations(operation_id=first, also=(second,)))
            with pytest.raises(CodespaceError) as crowd:
                await server.handle(RevertOperations(operation_id=first, also=tuple(f"op-{n}" for n in range(1000))))
            assert (crowd.value.code, crowd.value.detail["field"]) == ("INVALID_ARGUMENT", "also")
            return refusal.value

    refusal = anyio.run(run)
    assert refusal.code == "INVALID_ARGUMENT"
    assert (other / "f").exists()


def test_an_undo_of_several_is_held_told_and_resumed_like_any_other(project: Project) -> None:
    before = tree(project)

    async def run() -> None:
        async with Server(project.data.parent, {"demo": project.root}, approvals="confirm") as server:
            names = []
            for name in ("one", "two"):
                patch = ApplyPatch(workspace_id="demo", patch=ADD.format(name=name, text=name))
                done = await resume(server, await held_and_granted(server, patch))
                names.append(done["apply_patch"]["operation_id"])
            held = await hold(server, RevertOperations(operation_id=names[0], also=(names[1],)))
            told = await look(server, held)
            assert told["title"] == "Undo 2 operations: two, one"
            assert told["files"] == ["two", "one"]
            assert "-one" in told["diff"]
            await grant(server, held)
            undone = (await resume(server, held))["operation_revert"]
            assert (undone["reverts"], undone["also_reverts"]) == (names[1], [names[0]])

    anyio.run(run)
    assert tree(project) == before


STEPS = st.lists(
    st.tuples(st.sampled_from(["ours", "theirs", "undo", "undo in the work"]), st.sets(st.integers(0, 9), max_size=3)),
    min_size=2, max_size=9,
)


@given(steps=STEPS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_undone_and_brought_back_a_works_undo_takes_away_just_what_it_left(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, set[int]]]
) -> None:
    scratch = tmp_path_factory.mktemp("work")
    (root := scratch / "root").mkdir()
    anyio.run(_live_and_undo, scratch, root, steps)


async def _live_and_undo(scratch: Path, root: Path, steps: list[tuple[str, set[int]]]) -> None:
    """Each patch adds a file of its own, so that a file is there exactly while its patch is in force."""
    in_force: list[tuple[str, set[str]]] = []
    async with Server(scratch, {"demo": root}) as server:
        for number, (step, chosen) in enumerate(steps):
            work_id = None if step in ("theirs", "undo") else WORK
            if step in ("ours", "theirs"):
                name = f"{step}-{number}"
                patch = ApplyPatch(workspace_id="demo", patch=ADD.format(name=name, text="x"), work_id=work_id)
                in_force.append(((await server.handle(patch)).to_wire()["operation_id"], {name}))
                continue
            undone = [in_force[index] for index in sorted(chosen) if index < len(in_force)]
            files = {name for _, names in undone for name in names}
            if not undone or (work_id is not None and any(name.startswith("theirs") for name in files)):
                continue
            names = tuple(each for each, _ in undone)
            command = RevertOperations(operation_id=names[0], also=names[1:], work_id=work_id)
            done = (await server.handle(command)).to_wire()
            in_force = [*(each for each in in_force if each not in undone), (done["operation_id"], files)]
        before = {path.name for path in root.iterdir()}
        with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as source:
            left = work_done(source, WORK)
        if left.in_force:
            await server.handle(RevertOperations(operation_id=left.in_force[0], also=left.in_force[1:]))
        after = {path.name for path in root.iterdir()}
        if not left.left_out:
            assert after == {name for name in before if name.startswith("theirs")}
        with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as source:
            assert verify(source).findings == ()
