"""The planner: net effect of several sections, errors that help, limits, protection, warnings."""

import json
from pathlib import Path

import pytest

from codespace_es.v4a import overlay
from codespace_es.v4a.parser import parse_patch
from codespace_es.v4a.plan import Plan
from codespace_es.v4a.planner import plan_patch
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import digest_of
from support.patching import apply, patch_text, plan, write
from support.real_tree import RealTree


def rows(made: Plan) -> list[tuple[str, str, str | None]]:
    return [(row.path, row.kind, row.moved_from) for row in made.files]


def refused(root: Path, *lines: str, code: ErrorCode = ErrorCode.INVALID_PATCH) -> CodespaceError:
    with pytest.raises(CodespaceError) as caught:
        plan(root, *lines)
    assert caught.value.code is code
    return caught.value


def test_a_plan_has_rows_images_and_modes(tmp_path: Path) -> None:
    write(tmp_path, {"a.sh": "old\n"})
    (tmp_path / "a.sh").chmod(0o750)
    made = plan(tmp_path, "Update a.sh", "@@", "-old", "+new", "Add d/e/n", "+x", new_file_mode=0o640)
    update, add = made.files
    assert (update.kind, update.before, update.after) == ("update", digest_of(b"old\n"), digest_of(b"new\n"))
    assert (update.mode, update.before_mode, update.before_bytes, update.after_bytes) == (0o750, 0o750, 4, 4)
    assert (add.kind, add.before, add.before_bytes, add.mode, add.before_mode) == ("add", ABSENT, None, 0o640, None)
    assert made.images == {digest_of(content): content for content in (b"old\n", b"new\n", b"x\n")}
    assert made.made_directories == ("d", "d/e")
    assert made.file_order == ("a.sh", "d/e/n")
    assert made.summaries == {"a.sh": "+1 -1", "d/e/n": "+1 -0"}
    assert made.warnings == ()


def test_a_move_is_a_delete_and_a_move_and_carries_its_mode(tmp_path: Path) -> None:
    write(tmp_path, {"a": b"\xff raw, no end"})
    (tmp_path / "a").chmod(0o755)
    made = apply(tmp_path, "Update a", "Move to b/c")
    assert rows(made) == [("a", "delete", None), ("b/c", "move", "a")]
    assert (tmp_path / "b/c").read_bytes() == b"\xff raw, no end"
    assert made.files[1].mode == 0o755
    assert made.diff == "rename from a\nrename to b/c\n"
    assert made.summaries == {"a": "+0 -0", "b/c": "+0 -0"}


def test_a_chain_of_moves_is_one_move(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1\n2\n"})
    made = apply(tmp_path, "Update a", "Move to b", "@@", "-1", "+one", "Update b", "Move to c", "@@", "-2", "+two")
    assert rows(made) == [("a", "delete", None), ("c", "move", "a")]
    assert (tmp_path / "c").read_text() == "one\ntwo\n"
    assert made.summaries["c"] == "+2 -2"


def test_a_swap_updates_both_and_modes_travel(tmp_path: Path) -> None:
    write(tmp_path, {"a": "A\n", "b": "B\n"})
    (tmp_path / "a").chmod(0o700)
    made = apply(tmp_path, "Update a", "Move to t", "Update b", "Move to a", "Update t", "Move to b")
    assert rows(made) == [("a", "update", "b"), ("b", "update", "a")]
    assert [row.mode for row in made.files] == [0o644, 0o700]
    assert (tmp_path / "a").read_text() == "B\n"


def test_there_and_back_is_an_update_that_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a": "A\n"})
    made = plan(tmp_path, "Update a", "Move to b", "Update b", "Move to a")
    assert rows(made) == [("a", "update", None)]
    assert made.files[0].is_no_change
    assert made.diff == ""


def test_add_then_delete_is_nothing(tmp_path: Path) -> None:
    made = plan(tmp_path, "Add d/n", "+x", "Delete d/n")
    assert (made.files, made.images, made.made_directories, made.diff) == ((), {}, (), "")


def test_delete_then_add_is_an_update_by_a_new_file(tmp_path: Path) -> None:
    write(tmp_path, {"r.txt": "old\nkept\n"})
    (tmp_path / "r.txt").chmod(0o755)
    made = apply(tmp_path, "Delete r.txt", "Add r.txt", "+fresh", "+kept")
    assert rows(made) == [("r.txt", "update", None)]
    assert (made.files[0].before_mode, made.files[0].mode) == (0o755, 0o644)
    assert made.diff == "--- a/r.txt\n+++ b/r.txt\n@@ -1,2 +1,2 @@\n-old\n+fresh\n kept\n"


def test_a_deleted_file_gives_way_to_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"d": "x\n"})
    made = apply(tmp_path, "Delete d", "Add d/e/f", "+y")
    assert made.made_directories == ("d", "d/e")
    assert (tmp_path / "d/e/f").read_text() == "y\n"


@pytest.mark.parametrize(("lines", "code"), [
    (["Add first.txt", "+x", "Add first.txt/nested.txt", "+y"], ErrorCode.PATH_NOT_DIRECTORY),
    (["Add d/a", "+x", "Add d", "+y"], ErrorCode.SPECIAL_FILE_REJECTED),
    (["Add d/a", "+x", "Delete d/a", "Add d", "+y"], ErrorCode.SPECIAL_FILE_REJECTED),
    (["Update a", "Move to a/b"], ErrorCode.PATH_NOT_DIRECTORY),
    (["Update a", "Move to ./a"], ErrorCode.MOVE_DESTINATION_EXISTS),
    (["Add n", "+x", "Update a", "Move to n"], ErrorCode.MOVE_DESTINATION_EXISTS),
    (["Add n", "+x", "Add x/../n", "+y"], ErrorCode.ADD_FILE_EXISTS),
    (["Delete a", "Delete a"], ErrorCode.FILE_NOT_FOUND),
    (["Update gone", "@@", "-x"], ErrorCode.FILE_NOT_FOUND),
    (["Add ../a", "+x"], ErrorCode.PATH_ESCAPE),
    (["Delete folder"], ErrorCode.SPECIAL_FILE_REJECTED),
])
def test_sections_that_cannot_be_carried_out_are_refused(tmp_path: Path, lines: list[str], code: ErrorCode) -> None:
    write(tmp_path, {"a": "A\n", "folder/x": ""})
    error = refused(tmp_path, *lines, code=code)
    assert {"path", "section", "patch_line"} <= error.detail.keys()


@pytest.mark.parametrize("lines", [
    ["Add .git/hooks/x", "+x"], ["Delete .git/config"], ["Update .git/config", "@@", "-c", "+d"],
    ["Update .git/config", "Move to c"], ["Update a", "Move to x/../.git/c"],
])
def test_protected_paths_are_never_written(tmp_path: Path, lines: list[str]) -> None:
    write(tmp_path, {".git/config": "c\n", "a": "A\n"})
    with pytest.raises(CodespaceError) as caught:
        plan(tmp_path, *lines, protected=lambda path: path.startswith(".git/"))
    assert caught.value.code is ErrorCode.PATH_PROTECTED


def test_an_error_shows_what_was_expected_and_what_stands_there(tmp_path: Path) -> None:
    write(tmp_path, {"k.txt": "l1\nl2\nl3\nl4\nl5\nl6\nl7\n"})
    error = refused(tmp_path, "Add n", "+x", "Update ./k.txt", "@@", "-l1", "+L1", "@@", " l4", "-five", "+X")
    assert error.detail == {
        "path": "./k.txt", "section": 2, "hunk": 2, "patch_line": 10, "expected": "five",
        "nearest": {"line": 4, "lines": ["l4", "l5", "l6", "l7"]},
    }
    assert "five" not in error.message


def test_hunks_out_of_order_are_told_apart_from_lines_that_are_missing(tmp_path: Path) -> None:
    write(tmp_path, {"a": "one\ntwo\nthree\n"})
    assert "above line 4" in refused(tmp_path, "Update a", "@@", "-three", "@@", "-one").message
    error = refused(tmp_path, "Update a", "@@", "-one", "*** End of File")
    assert "not at the end of the file" in error.message


def test_the_detail_of_an_error_stays_within_two_kibibytes(tmp_path: Path) -> None:
    name = "\u20ac" * 60
    write(tmp_path, {name: "".join(f"\u20ac{'y' * 5_000}{n}\n" for n in range(9))})
    error = refused(tmp_path, f"Update {name}", "@@", "-" + "\u20ac" * 9_000)
    assert len(json.dumps(error.detail)) <= 2048
    assert error.detail["nearest"]["lines"]


def test_a_file_that_is_not_text_is_refused_with_the_offset(tmp_path: Path) -> None:
    write(tmp_path, {"gbk.py": b"n = 1\n# \304\343\272\303\n"})
    error = refused(tmp_path, "Update gbk.py", "@@", "-n = 1", "+n = 2")
    assert error.detail["byte_offset"] == 8
    refused(tmp_path, "Update gbk.py", "@@", "+only added")


def test_an_image_and_all_images_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "IMAGE_BYTES_MAX", 100)
    monkeypatch.setattr(overlay, "PATCH_IMAGES_BYTES_MAX", 250)
    write(tmp_path, {"a": "x" * 89 + "\n"})
    assert "larger than" in refused(tmp_path, "Update a", "@@", "+" + "y" * 20).message
    plan(tmp_path, *["Update a", "@@", "+y"] * 3)
    plan(tmp_path, "Update a", "@@", "+y", "Add b", "+" + "z" * 60)
    assert "together" in refused(tmp_path, "Update a", "@@", "+y", "Add b", "+" + "z" * 70).message


def test_each_file_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1\n2\n"})
    tree = RealTree(tmp_path)
    text = patch_text("Update a", "@@", "-1", "+x", "Update ./a", "@@", "-2", "+y", "Delete a")
    plan_patch(parse_patch(text), tree, matching="lenient", protected=lambda _: False)
    assert tree.reads == ["a"]
