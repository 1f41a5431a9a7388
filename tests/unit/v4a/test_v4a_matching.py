"""How hunks match: warnings, strict matching, stacked seek lines, blank-line traps, the byte-order mark."""

from pathlib import Path
from typing import Any

import pytest

from codespace_es.vocabulary.errors import CodespaceError
from support.patching import apply, plan, write

OVEN = "class A:\n    def f():\n        x\n    def g():\n        x\nclass B:\n    def f():\n        x\n"


def warned(root: Path, *lines: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in warning.to_wire().items() if key != "message"}
            for warning in plan(root, *lines).warnings]


def strictly_refused(root: Path, *lines: str) -> CodespaceError:
    with pytest.raises(CodespaceError) as caught:
        plan(root, *lines, matching="strict")
    return caught.value


def test_a_loose_match_is_reported_and_strictly_refused(tmp_path: Path) -> None:
    tabs = "def early(p):\n\tif p:\n\t\tdone()\n\n\ndef wanted(q):\n\tfor i in q:\n\t\tif i:\n\t\t\tdone()\n"
    write(tmp_path, {"h.py": tabs})
    lines = ["Update h.py", "@@", "-    done()", "+    stop()"]
    assert warned(tmp_path, *lines) == [
        {"kind": "hunk_match", "path": "h.py", "hunk": 1, "line": 3, "match": "surrounding_space", "candidates": 2}
    ]
    assert strictly_refused(tmp_path, *lines).detail["places"] == [3, 9]


@pytest.mark.parametrize(("content", "wanted", "match"), [
    ("x  \n", "x", "trailing_space"), ("  x\n", "x", "surrounding_space"),
    ("blue\u00a0car\n", "blue car", "folded_punctuation"),
])
def test_each_pass_has_its_name(tmp_path: Path, content: str, wanted: str, match: str) -> None:
    write(tmp_path, {"a": content})
    assert warned(tmp_path, "Update a", "@@", f"-{wanted}", "+y")[0]["match"] == match
    strictly_refused(tmp_path, "Update a", "@@", f"-{wanted}", "+y")


def test_one_exact_place_says_nothing_and_is_strict_enough(tmp_path: Path) -> None:
    write(tmp_path, {"a": OVEN})
    made = plan(tmp_path, "Update a", "@@ class B:", "@@     def f():", "-        x", "+        y", matching="strict")
    assert made.warnings == ()


def test_an_exact_place_that_is_not_the_only_one_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a": OVEN})
    assert warned(tmp_path, "Update a", "@@", "-        x", "+        y") == [
        {"kind": "hunk_match", "path": "a", "hunk": 1, "line": 3, "match": "exact", "candidates": 3}
    ]


def test_stacked_seek_lines_narrow_in_order(tmp_path: Path) -> None:
    write(tmp_path, {"a": OVEN})
    apply(tmp_path, "Update a", "@@ class B:", "@@     def f():", "-        x", "+        y")
    assert (tmp_path / "a").read_text() == OVEN[: OVEN.rindex("x")] + "y\n"


def test_a_loose_seek_line_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a": OVEN})
    entries = warned(tmp_path, "Update a", "@@ def g():", "-        x", " class B:")
    assert [entry["kind"] for entry in entries] == ["seek_match"]


def test_line_numbers_of_a_unified_diff_are_no_text(tmp_path: Path) -> None:
    write(tmp_path, {"a": OVEN, "n": "-1 +1 @@\nx\nx\n"})
    apply(tmp_path, "Update a", "@@ -6,2 +6,2 @@ class B:", "-class B:", "+class C:")
    assert "class C:" in (tmp_path / "a").read_text()
    assert warned(tmp_path, "Update n", "@@ -1 +1 @@", "-x", "+y")[0]["line"] == 2


def test_additions_alone_say_that_their_seek_line_was_ignored(tmp_path: Path) -> None:
    write(tmp_path, {"a": OVEN})
    assert warned(tmp_path, "Update a", "@@ class A:", "+    z") == [
        {"kind": "seek_ignored", "path": "a", "hunk": 1, "line": 9, "candidates": 1}
    ]


def test_a_blank_line_that_is_not_there_anchors_nothing_at_the_top(tmp_path: Path) -> None:
    write(tmp_path, {"a": "one\ntwo\n"})
    with pytest.raises(CodespaceError, match="blank one"):
        plan(tmp_path, "Update a", "@@", "-", "+x")
    made = plan(tmp_path, "Update a", "@@ one", "-", "+x")
    assert made.images[made.files[0].after] == b"one\nx\ntwo\n"
    assert [warning.kind for warning in made.warnings] == ["blank_line_absent"]
    strictly_refused(tmp_path, "Update a", "@@ one", "-", "+x")


def test_a_blank_line_between_hunks_is_forgiven_in_silence(tmp_path: Path) -> None:
    write(tmp_path, {"a": "one\ntwo\n"})
    lines = ["Update a", "@@", "-one", "+1", "", "@@", "-two", "+2"]
    assert plan(tmp_path, *lines, matching="strict").warnings == ()


@pytest.mark.parametrize(("hunk", "after"), [
    (["-first", "+erste"], "\ufefferste\nzweite\n"),
    ([" first", "-zweite"], "\ufefffirst\n"),
    (["-\ufefffirst", "+\ufefferste"], "\ufefferste\nzweite\n"),
    (["-first", "+\ufefferste"], "\ufefferste\nzweite\n"),
    (["-\ufefffirst", "+erste"], "erste\nzweite\n"),
    ([" \ufefffirst", "-zweite", "+2"], "\ufefffirst\n2\n"),
    (["+top", " first"], "\ufefftop\nfirst\nzweite\n"),
])
def test_a_byte_order_mark_stays_once_at_the_start(tmp_path: Path, hunk: list[str], after: str) -> None:
    write(tmp_path, {"s.ps1": "\ufefffirst\nzweite\n"})
    made = apply(tmp_path, "Update s.ps1", "@@", *hunk)
    assert (tmp_path / "s.ps1").read_bytes().decode() == after
    assert made.warnings == ()


def test_a_missing_final_newline_is_added_and_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a": "x = 1\ny = 2\nz = 3"})
    made = apply(tmp_path, "Update a", "@@", "-x = 1", "+x = 9")
    assert (tmp_path / "a").read_text() == "x = 9\ny = 2\nz = 3\n"
    assert [(warning.kind, warning.line) for warning in made.warnings] == [("final_newline_added", 3)]


def test_a_file_with_several_names_is_replaced_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, {"notes.txt": "body\n"})
    (tmp_path / "alias.txt").hardlink_to(tmp_path / "notes.txt")
    made = plan(tmp_path, "Update notes.txt", "@@", "-body", "+body2")
    assert [(warning.kind, warning.path) for warning in made.warnings] == [("hard_link_broken", "notes.txt")]
    assert plan(tmp_path, "Update notes.txt", "@@", " body").warnings == ()


def test_quotes_are_written_as_the_patch_writes_them(tmp_path: Path) -> None:
    write(tmp_path, {"q.txt": "name = 'x'\n"})
    apply(tmp_path, "Update q.txt", "@@", "-name = 'x'", "+name = \u2018x\u2019")
    assert (tmp_path / "q.txt").read_text() == "name = \u2018x\u2019\n"


def test_a_marker_behind_a_blank_is_text(tmp_path: Path) -> None:
    write(tmp_path, {"g.md": "chapter one\n*** End Patch\nwas\n", "b2.txt": "b\n"})
    first = ["Update g.md", "@@", " chapter one", " *** End Patch", "-was", "+is"]
    apply(tmp_path, *first, "Update b2.txt", "@@", "-b", "+B")
    assert (tmp_path / "g.md").read_text() == "chapter one\n*** End Patch\nis\n"
    assert (tmp_path / "b2.txt").read_text() == "B\n"
