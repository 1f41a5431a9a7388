"""Properties over generated files and edits: what is written, what is never touched, and that the diff tells it."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from codespace_es.v4a.diff import DiffWriter, differences, file_diff
from support.patching import apply, plan, write

TEXTS = st.sampled_from(["a", "b", "  c", "d  ", "", "é€", "*** End Patch", "@@ x", "-m", "+p", "\u2028", "x\x1f"])
OLD_LINES = st.lists(TEXTS, min_size=1, max_size=14)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Return old lines, each unique, and the marked lines of one hunk over all of them."""
    old = [f"{number} {text}" for number, text in enumerate(draw(OLD_LINES))]
    marked: list[str] = []
    for line in old:
        marked += [f"+{text}" for text in draw(st.lists(TEXTS, max_size=2))]
        marked.append(draw(st.sampled_from(" -")) + line)
    return old, marked + [f"+{text}" for text in draw(st.lists(TEXTS, max_size=2))]


def hunks_of(marked: list[str]) -> list[str]:
    """Return the marked lines cut into hunks of one context line or more around each change."""
    parts: list[str] = ["@@"]
    for index, line in enumerate(marked):
        parts.append(line)
        is_quiet = all(near.startswith(" ") for near in marked[index : index + 3])
        if is_quiet and index + 3 < len(marked) and len(parts) > 1 and parts[-2] != "@@":
            parts.append("@@")
    return parts


@given(edits(), ENDS, st.booleans(), st.booleans(), st.booleans())
def test_a_patch_made_from_an_edit_gives_the_new_content(
    edit: tuple[list[str], list[str]], end: str, has_mark: bool, is_terminated: bool, is_executable: bool
) -> None:
    old, marked = edit
    mark = "\ufeff" if has_mark else ""
    first_end = end if is_terminated or len(old) > 1 else "\n"
    new = [line[1:] for line in marked if line[0] != "-"]
    with TemporaryDirectory() as name:
        root = Path(name)
        write(root, {"f": mark + end.join(old) + (end if is_terminated else "")})
        (root / "f").chmod(0o755 if is_executable else 0o644)

        apply(root, "Update f", *hunks_of(marked))

        assert (root / "f").read_bytes().decode() == mark + "".join(line + first_end for line in new)
        assert (root / "f").stat().st_mode & 0o777 == (0o755 if is_executable else 0o644)


@given(edits(), st.lists(ENDS, min_size=14, max_size=14))
def test_kept_lines_of_a_mixed_file_keep_their_own_ends(edit: tuple[list[str], list[str]], ends: list[str]) -> None:
    old, marked = edit
    whole = {line: line + end for line, end in zip(old, ends, strict=False)}
    new = [whole[line[1:]] if line[0] == " " else line[1:] + ends[0] for line in marked if line[0] != "-"]
    with TemporaryDirectory() as name:
        root = Path(name)
        write(root, {"f": "".join(whole.values())})
        made = plan(root, "Update f", "@@", *marked)
        assert made.images[made.files[0].after].decode() == "".join(new)


@given(st.lists(st.tuples(TEXTS, ENDS), min_size=1, max_size=12), st.data())
def test_context_alone_never_changes_a_byte(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    content = "".join(text + end for text, end in lines)
    cut = re.sub("\r\n|\r", "\n", content).split("\n")[:-1]
    start = data.draw(st.integers(0, len(cut) - 1))
    length = data.draw(st.integers(1, len(cut) - start))
    with TemporaryDirectory() as name:
        root = Path(name)
        write(root, {"f": content})
        made = plan(root, "Update f", "@@", *[f" {line}" for line in cut[start : start + length]])
        assert made.files[0].is_no_change
        assert (made.diff, made.summaries["f"]) == ("", "+0 -0")


def applied(old: list[str], diff: str) -> list[str]:
    """Return `old` after a unified diff, checking every line of it."""
    result: list[str] = []
    position = 0
    for line in diff.split("\n")[2:-1]:
        if header := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(header[1]) - (header[2] != "0")
            result += old[position:start]
            position = start
            assert len(result) == int(header[3]) - (header[4] != "0")
        elif line[0] == "+":
            result.append(line[1:])
        elif line[0] != "\\":
            assert old[position] == line[1:]
            position += 1
            result += [line[1:]] if line[0] == " " else []
    return result + old[position:]


@given(st.lists(st.sampled_from("abcde"), max_size=30), st.lists(st.sampled_from("abcde"), max_size=30))
def test_the_diff_of_two_contents_leads_from_one_to_the_other(old: list[str], new: list[str]) -> None:
    writer = DiffWriter()
    contents = ["".join(f"{line}\n" for line in lines).encode() for lines in (old, new)]
    writer.write(file_diff("f", "f", *contents))
    assert applied(old, writer.text) == new
    assert (writer.text == "") == (old == new)


@given(edits(), st.booleans())
def test_the_diff_of_an_update_leads_to_the_new_lines(edit: tuple[list[str], list[str]], is_terminated: bool) -> None:
    old, marked = edit
    with TemporaryDirectory() as name:
        root = Path(name)
        write(root, {"f": "\n".join(old) + ("\n" if is_terminated else "")})
        made = plan(root, "Update f", "@@", *marked)
        assert applied(old, made.diff) == [line[1:] for line in marked if line[0] != "-"]
        added = sum(line.startswith("+") for line in made.diff.split("\n")[2:])
        removed = sum(line.startswith("-") for line in made.diff.split("\n")[2:])
        assert made.summaries["f"] == f"+{added} -{removed}"


def test_lines_that_occur_once_are_not_shown_as_changed() -> None:
    old = [f"line {number}" for number in range(1_000)]
    new = [*old[:10], "x", *old[10:500], *old[501:]]
    assert differences(old, new) == [(10, 10, 10, 11), (500, 501, 501, 501)]


def test_the_diff_stops_at_its_limit_between_lines() -> None:
    writer = DiffWriter(bytes_max=100)
    writer.write(file_diff(None, "f", b"", b"0123456789\n" * 50))
    writer.write(file_diff(None, "g", b"", b"x\n"))
    assert writer.is_truncated
    assert len(writer.text.encode()) <= 100
    assert writer.text.endswith("+0123456789\n")


def test_the_diff_marks_a_missing_line_end() -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        write(root, {"f": "a\nb", "g": b"\xff"})
        made = plan(root, "Update f", "@@", "-a", "+x", "Delete g")
        assert made.diff == (
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+x\n-b\n\\ No newline at end of file\n+b\n"
            "Binary files a/g and /dev/null differ\n"
        )
