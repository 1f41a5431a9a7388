"""The files that a log knows at a moment are the files that were there, whatever was patched and undone."""

from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.log.reader import LogReader
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import ABSENT
from replay.difference import difference
from replay.files_at import content_of, files_at
from support.server import Server

Step = tuple[str, int, int]


def patch_of(kind: str, name: str, other: str, tree: dict[str, str], number: int) -> str:
    old = tree.get(name, "?\n").rstrip("\n")
    section = {
        "add": f"*** Add File: {name}\n+text {number}",
        "update": f"*** Update File: {name}\n@@\n-{old}\n+text {number}",
        "delete": f"*** Delete File: {name}",
        "move": f"*** Update File: {name}\n*** Move to: {other}\n@@\n-{old}\n+text {number}",
    }[kind]
    return f"*** Begin Patch\n{section}\n*** End Patch"


def read_tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


async def live(scratch: Path, root: Path, steps: list[Step]) -> dict[int, dict[str, str]]:
    """Patch and undo as told; return the files by the position at which they stood so."""
    names = ["a.txt", "d/b.txt", "c.txt"]
    trees: dict[int, dict[str, str]] = {}
    applied: list[str] = []
    async with Server(scratch, {"demo": root}) as server:
        for number, (kind, first, second) in enumerate(steps):
            name, other = names[first % 3], names[second % 3]
            try:
                if kind == "undo":
                    if applied:
                        done = await server.handle(RevertOperation(operation_id=applied[first % len(applied)]))
                        applied.append(done.operation_id)
                else:
                    text = patch_of(kind, name, other, read_tree(root), number)
                    done = await server.handle(ApplyPatch(workspace_id="demo", patch=text))
                    applied.append(done.operation_id)
            except CodespaceError:
                pass
            trees[(await server.log.head())[0]] = read_tree(root)
    return trees


def known_tree(source: LogReader, position: int) -> dict[str, str]:
    tree: dict[str, str] = {}
    for workspace in files_at(source, position):
        for file in workspace.files:
            content = content_of(source, file)
            assert content is not None
            if file.version != ABSENT:
                tree[file.path] = content.decode()
    return tree


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "update", "delete", "move", "undo"]), st.integers(0, 2), st.integers(0, 2)),
    min_size=1, max_size=8,
)


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_at_each_position_the_known_files_are_those_that_were_on_disk(tmp_path_factory, steps):
    scratch = tmp_path_factory.mktemp("life")
    (root := scratch / "root").mkdir()
    trees = anyio.run(live, scratch, root, steps)
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as source:
        assert {position: known_tree(source, position) for position in trees} == trees
        first, last = min(trees), max(trees)
        told = {each.path: each for each in difference(source, first, last).files}
    was, now = trees[first], trees[last]
    changed = {path for path in was | now if was.get(path) != now.get(path)}
    assert {path for path, each in told.items() if each.before != each.after} == changed
    for path in changed:
        text = told[path].diff
        assert ("--- /dev/null" in text) == (path not in was)
        assert ("+++ /dev/null" in text) == (path not in now)
        assert all("+" + line in text for line in now.get(path, "").splitlines() if line not in was.get(path, ""))


pytestmark = pytest.mark.anyio


async def test_an_edit_beside_the_server_is_named_where_it_was_met(tmp_path):
    (root := tmp_path / "root").mkdir()
    async with Server(tmp_path, {"demo": root}) as server:
        await server.handle(ApplyPatch(workspace_id="demo", patch=patch_of("add", "a.txt", "", {}, 1)))
        (root / "a.txt").write_text("mine\n")
        tree = read_tree(root)
        await server.handle(ApplyPatch(workspace_id="demo", patch=patch_of("update", "a.txt", "", tree, 2)))
    with LogReader(tmp_path / "data" / "codespace.db", CATALOGUE) as source:
        (file,) = difference(source, 0, source.head()[0]).files
    assert len(file.operations) == 2
    assert [note for note in file.notes if "beside the server" in note]
    assert file.diff == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+text 2\n"


def test_an_operation_in_the_middle_leaves_its_files_as_it_found_them_and_says_so(written_life):
    with LogReader(written_life.path, CATALOGUE) as source:
        (workspace,) = files_at(source, 30)
        by_path = {file.path: file for file in workspace.files}
        assert content_of(source, by_path["a.txt"]) == b"one\n"
        assert written_life.operations["open"] in by_path["a.txt"].note
        assert by_path["b/c.txt"].version == ABSENT
        (then,) = files_at(source, 9)
        assert {file.path: content_of(source, file) for file in then.files if file.version != ABSENT} == {
            "a.txt": b"two\n", "b/c.txt": None
        }
        assert files_at(source, 0) == (), "and the content of b/c.txt was removed from the store since"
