"""The parser: what it accepts beyond the case file, where it says an error is, and that it never breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace_es.v4a.parser import parse_patch
from codespace_es.v4a.patch import AddSection, DeleteSection, Patch, UpdateSection
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

FRAGMENTS = [
    "*** Begin Patch", "*** End Patch", "*** Add File: a", "*** Delete File: b", "*** Update File: c", "*** Move to: d",
    "*** Move to: ", "*** End of File", "*** Environment ID: x", "@@", "@@ x", "@@ -1,2 +1 @@", "@@x", "+x", "-x", " x",
    "", "x", "\t", "   ", "```", "~~~~py", "apply_patch <<'EOF'", "<<EOF", "EOF", "  *** End Patch", "+x\r\r\r",
    "\ud800", "*** Update File:  c", "*** Add File: a/", "\u001f", "\ufeff",
]


def only_update(text: str) -> UpdateSection:
    section = parse_patch(text).sections[0]
    assert isinstance(section, UpdateSection)
    return section


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("\n".join) | st.text())
def test_any_text_is_a_patch_or_invalid(text: str) -> None:
    try:
        patch = parse_patch(text)
    except CodespaceError as error:
        assert error.code is ErrorCode.INVALID_PATCH  # noqa: PT017
    else:
        assert patch.sections


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12))
def test_a_body_between_the_markers_is_a_patch_or_invalid(body: list[str]) -> None:
    try:
        patch = parse_patch("\n".join(["*** Begin Patch", "*** Update File: c", "@@", "-x", *body, "*** End Patch"]))
    except CodespaceError as error:
        assert error.code is ErrorCode.INVALID_PATCH  # noqa: PT017
    else:
        assert isinstance(patch.sections[0], UpdateSection)


def test_every_line_knows_its_place_in_the_text_as_sent() -> None:
    body = "*** Delete File: a\n*** Update File: b\n@@ one\n@@ two\n x\n-y"
    text = f"\n\n```diff\n*** Begin Patch\n{body}\n*** End Patch\n```\n"
    patch = parse_patch(text)
    lines = text.split("\n")
    delete, update = patch.sections
    assert isinstance(update, UpdateSection)
    hunk = update.hunks[0]
    assert lines[delete.patch_line_number - 1] == "*** Delete File: a"
    assert lines[update.patch_line_number - 1] == "*** Update File: b"
    assert [lines[seek.patch_line_number - 1] for seek in hunk.seek_lines] == ["@@ one", "@@ two"]
    assert [lines[number - 1] for number in hunk.old_line_numbers] == [" x", "-y"]
    assert lines[hunk.patch_line_number - 1] == "@@ one"


def test_sections_keep_order_and_content() -> None:
    patch = parse_patch("*** Begin Patch\n*** Add File: a\n+x\n++y\n*** Delete File: b\n*** End Patch")
    assert patch == Patch((AddSection("a", ("x", "+y"), 2), DeleteSection("b", 5)))


@pytest.mark.parametrize("wrapped", [
    "```\n{}\n```", "~~~patch\n\n{}\n\n~~~~", "apply_patch <<'EOF'\n{}\nEOF", 'applypatch << "END"\n{}\nEND',
    "```bash\napply_patch <<EOF\n{}\nEOF\n```", "<<'EOF'\n{}\nEOF",
])
def test_wrappers_around_the_whole_patch_are_peeled_off(wrapped: str) -> None:
    inner = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    section = parse_patch(wrapped.format(inner)).sections[0]
    assert isinstance(section, DeleteSection)
    assert section.path == "a"


@pytest.mark.parametrize("wrapped", [
    "```\n{}", "{}\n```", "````\n{}\n```", "apply_patch <<'EOF'\n{}\nEOT", "cat <<'EOF'\n{}\nEOF",
])
def test_a_wrapper_that_is_not_closed_is_refused(wrapped: str) -> None:
    with pytest.raises(CodespaceError, match="line of the patch must be"):
        parse_patch(wrapped.format("*** Begin Patch\n*** Delete File: a\n*** End Patch"))


def test_two_carriage_returns_before_a_line_feed_go_and_a_third_stays() -> None:
    section = parse_patch("*** Begin Patch\r\n*** Add File: a\r\n+x\r\r\n+y\r\r\r\n*** End Patch\r\n").sections[0]
    assert isinstance(section, AddSection)
    assert section.lines == ("x", "y\r")


def test_an_error_names_section_hunk_and_line() -> None:
    with pytest.raises(CodespaceError) as refused:
        parse_patch("*** Begin Patch\n*** Delete File: a\n*** Update File: b\n@@\n-x\n@@\n*** End Patch")
    assert refused.value.detail == {"path": "b", "section": 2, "hunk": 2, "patch_line": 7}


def test_a_pure_rename_has_no_hunk() -> None:
    section = only_update("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch")
    assert (section.move_to, section.hunks) == ("b", ())


def test_a_thousand_sections_are_accepted_and_one_more_is_not() -> None:
    def patch(count: int) -> str:
        return "*** Begin Patch\n" + "".join(f"*** Delete File: f{n}\n" for n in range(count)) + "*** End Patch\n"

    assert len(parse_patch(patch(1_000)).sections) == 1_000
    with pytest.raises(CodespaceError, match="more than 1000 sections"):
        parse_patch(patch(1_001))


@pytest.mark.parametrize("character", ["x", "\u20ac"])
def test_more_than_eight_mebibytes_are_refused(character: str) -> None:
    body = character * (8 * 1024 * 1024 // len(character.encode()) + 1)
    with pytest.raises(CodespaceError, match="larger than 8 MiB"):
        parse_patch(f"*** Begin Patch\n*** Add File: a\n+{body}\n*** End Patch\n")
