"""The files port, finding and searching: what is listed, what is left out, what is said about it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.beneath import open_root
from adapters.files.finding import find
from adapters.files.searching import search
from adapters.files.walking import WalkCaps
from adapters.files.workspace_files import DirectoryFilesByRoot
from codespace_es.ports.files import SearchMatch, SearchQuery, WorkspaceFiles
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import SEARCH_FILE_BYTES_MAX, SEARCH_LINE_BYTES_MAX
from support.bound import bound


@pytest.fixture
def files(tmp_path: Path) -> WorkspaceFiles:
    return DirectoryFilesByRoot().open(str(tmp_path))


@pytest.fixture
def root_fd(tmp_path: Path) -> Iterator[int]:
    descriptor = open_root(str(tmp_path))
    yield descriptor
    os.close(descriptor)


def write(root: Path, **contents: str) -> None:
    for name, text in contents.items():
        (root / name).write_text(text)


def plant(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def test_only_regular_files_are_listed_sorted_by_bytes(files: WorkspaceFiles, tmp_path: Path) -> None:
    plant(tmp_path, "b", "a/z", "a.txt", "loop/s/t", "é", ".hidden/x", "Z")
    os.symlink(".", tmp_path / "loop" / "s" / "self")
    os.symlink("b", tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")
    listing = files.find(None)
    assert list(listing.paths) == [".hidden/x", "Z", "a.txt", "a/z", "b", "loop/s/t", "é"]
    assert (listing.ignored_count, listing.is_incomplete, listing.unreadable_count) == (0, False, 0)


def test_a_name_that_is_not_utf8_is_shown_and_counted(files: WorkspaceFiles, tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))).write_text("needle")
    listing = files.find("*.txt")
    assert list(listing.paths) == ["caf\\xe9.txt"]
    assert listing.unreadable_count == 1
    assert [match.path for match in files.search(SearchQuery("needle")).matches] == ["caf\\xe9.txt"]
    with pytest.raises(CodespaceError) as refusal:
        files.read_window("caf\\xe9.txt", offset=0, limit=1)
    assert refusal.value.code is ErrorCode.FILE_NOT_FOUND


def test_git_is_never_entered_and_ignored_files_only_on_demand(files: WorkspaceFiles, tmp_path: Path) -> None:
    plant(tmp_path, ".git/config", "sub/.git/x", "sub/keep.log", "a.log", "build/deep/x", "secret", ".gitignore",
          "sub/.gitignore", ".git/info/exclude")
    write(tmp_path, **{".gitignore": "*.log\nbuild/\n", "sub/.gitignore": "!keep.log\n", ".git/info/exclude": "secret"})
    assert list(files.find(None).paths) == [".gitignore", "sub/.gitignore", "sub/keep.log"]
    assert files.find(None).ignored_count == 3
    assert files.find("*.log").ignored_count == 2
    everything = files.find(None, include_ignored=True)
    assert list(everything.paths) == [
        ".gitignore", "a.log", "build/deep/x", "secret", "sub/.gitignore", "sub/keep.log"
    ]
    assert everything.ignored_count == 0


@pytest.mark.parametrize(
    "caps", [WalkCaps(entries_max=3), WalkCaps(directories_max=2), WalkCaps(depth_max=2)]
)
def test_each_cap_is_said(root_fd: int, tmp_path: Path, caps: WalkCaps) -> None:
    plant(tmp_path, "a/1", "a/b/2", "a/b/c/3")
    assert find(root_fd, None, caps=caps).is_incomplete
    assert len(find(root_fd, None, caps=caps).paths) < 3
    assert not find(root_fd, None).is_incomplete


def test_a_literal_directory_in_the_glob_keeps_the_walk_there(root_fd: int, tmp_path: Path) -> None:
    plant(tmp_path, *(f"l/aa/{number}/x" for number in range(20)), "l/zz/only")
    listing = find(root_fd, "l/zz/**", caps=WalkCaps(directories_max=3))
    assert (list(listing.paths), listing.is_incomplete) == (["l/zz/only"], False)


def test_a_slash_in_front_names_the_root(files: WorkspaceFiles, tmp_path: Path) -> None:
    plant(tmp_path, "top", "x/top")
    assert list(files.find("/top").paths) == ["top"]
    assert list(files.find("top").paths) == ["top", "x/top"]


def test_a_match_has_line_column_text_and_context(files: WorkspaceFiles, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("one\r\nhéé two\r\nthree\r\ntwo\u2028x".encode())
    assert files.search(SearchQuery("two", context_lines=1)).matches == [
        SearchMatch("f", 2, 5, "héé two", ("one",), ("three",)), SearchMatch("f", 4, 1, "two\u2028x", ("three",), ()),
    ]
    ending_in_e = files.search(SearchQuery("E$", is_regex=True, is_case_sensitive=False)).matches
    assert [match.line for match in ending_in_e] == [1, 3]


LINES = st.lists(st.text("ab é", max_size=5), max_size=8)


@given(lines=LINES, has_last_end=st.booleans(), pattern=st.sampled_from(
    ("a", "^a", "b$", "^$", "a+b", r"\Aa", r"b\z", "[^a]b", r"\s", "é", "x*", ".", "a|é$")))
def test_a_regular_expression_matches_the_lines_that_match_alone(
    files: WorkspaceFiles, tmp_path: Path, lines: list[str], has_last_end: bool, pattern: str
) -> None:
    import re

    text = "\n".join(lines) + ("\n" if has_last_end else "")
    (tmp_path / "f").write_text(text)
    whole = text.split("\n")
    if whole[-1] == "":
        whole.pop()
    alone = re.compile(pattern.replace(r"\z", r"\Z"))
    expected = [
        (number, found.start() + 1, line) for number, line in enumerate(whole, 1) if (found := alone.search(line))
    ]
    found = files.search(SearchQuery(pattern, is_regex=True)).matches
    assert [(match.line, match.column, match.text) for match in found] == expected


def test_pages_of_matches_join_to_the_whole(files: WorkspaceFiles, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"f{number:02}").write_text("tok\nno\ntok tok\n")
    whole = files.search(SearchQuery("tok"))
    assert (len(whole.matches), whole.is_truncated, whole.files_searched) == (60, False, 30)
    pages = [files.search(SearchQuery("tok", limit=25, offset=offset)) for offset in (0, 25, 50)]
    assert [page.is_truncated for page in pages] == [True, True, False]
    assert [match for page in pages for match in page.matches] == list(whole.matches)
    assert not files.search(SearchQuery("tok", limit=60)).is_truncated


def test_binary_files_are_skipped_and_other_bytes_replaced(files: WorkspaceFiles, tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"end\0end")
    (tmp_path / "latin").write_bytes(b"ok \x92 end\n")
    findings = files.search(SearchQuery("end"))
    assert [(match.path, match.column, match.text) for match in findings.matches] == [("latin", 6, "ok \ufffd end")]
    assert findings.files_searched == 1


def test_a_long_line_is_shown_around_its_match(files: WorkspaceFiles, tmp_path: Path) -> None:
    (tmp_path / "min.js").write_text("k" * 90_000 + "END" + "z" * 900)
    (match,) = files.search(SearchQuery("E.D", is_regex=True)).matches
    assert (match.line, match.column, len(match.text)) == (1, 90_001, 500)
    assert "END" in match.text


def test_many_lines_are_numbered_across_blocks(files: WorkspaceFiles, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"line {number}\n" for number in range(1, 30_001)))
    found = files.search(SearchQuery(r"0000$|99\b", is_regex=True, limit=10_000)).matches
    assert len(found) == 303
    assert all(match.text == f"line {match.line}" for match in found)


@pytest.mark.parametrize(
    "pattern", ["", "(", "(?=a)", r"(a)\1", "a\nb", "x" * 5_000, "\ud800", "a)(b", r"((\pL{99}){9}){9}"]
)
def test_a_bad_pattern_is_an_invalid_argument(files: WorkspaceFiles, pattern: str) -> None:
    with pytest.raises(CodespaceError) as refusal:
        files.search(SearchQuery(pattern, is_regex=True))
    assert (refusal.value.code, refusal.value.detail) == (ErrorCode.INVALID_ARGUMENT, {"field": "pattern"})


def test_a_pathological_pattern_ends(files: WorkspaceFiles, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 30_000 + "\n" + "ab" * 30_000)
    assert files.search(SearchQuery("(a+a+)+c|[ab]*a[ab]{200}c", is_regex=True)).matches == []


def test_the_time_limit_cuts_and_is_said(root_fd: int, tmp_path: Path) -> None:
    plant(tmp_path, "a", "b", "c")
    ticks = iter(range(100))
    findings = search(root_fd, SearchQuery("a"), seconds_max=2, clock=lambda: next(ticks))
    assert (findings.is_incomplete, findings.files_searched) == (True, 1)


def test_what_is_too_large_to_search_is_said(files: WorkspaceFiles, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(SEARCH_FILE_BYTES_MAX + 1)
    assert files.search(SearchQuery("x")).is_incomplete
    (tmp_path / "large").write_text("y" * SEARCH_LINE_BYTES_MAX + "x")
    assert files.search(SearchQuery("[x]", is_regex=True)).is_incomplete
    assert len(files.search(SearchQuery("x")).matches) == 1


def test_special_files_do_not_block_a_search(files: WorkspaceFiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, f="needle")
    assert [match.path for match in files.search(SearchQuery("needle")).matches] == ["f"]


def test_an_unreadable_directory_makes_the_listing_incomplete(files: WorkspaceFiles, tmp_path: Path) -> None:
    plant(tmp_path, "d/x")
    (tmp_path / "d").chmod(0)
    try:
        assert bound(lambda: files.find(None)).is_incomplete
    finally:
        (tmp_path / "d").chmod(0o700)
