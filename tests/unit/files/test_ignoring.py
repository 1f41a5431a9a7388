"""Ignore rules against git itself: on random trees and rules, both leave out the same files."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.files.ignoring import parse_rules
from adapters.files.workspace_files import DirectoryFilesByRoot

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git isn't installed")

NAMES = ("a", "b", "ab", "foo", "b.c", "[x]", "x y", "é")
DIRECTORIES = ("a", "b", "foo", "a/b", "a/foo", "b/a", "foo/ab", "a/b/foo")
PIECES = ("*", "**", "?", "a", "b", "foo", ".c", "[ab]", "[!a]", "[^b]", "[a-f]", "[[:alpha:]]", "[]a]", "\\[", "\\x",
          "\\", "[", " ", "/", "/", "**/", "/**", "é", "[\\]x[]", "[[:bad:]]", "[[:]x]", "[a-]", "[--0]")
FIXED = ("", "#a", "\\#a", "!", "!foo", "\\!a", "/", "a ", "a\\ ", "a\t", "a\r", "**", "*", "!*/", "/a", "a/", "!/a/b",
         "a/**", "**/foo", "a/**/foo", "foo**", "a/f**", "fo**/ab", "a//b", "*.c", "!b.c", "\\", "a\\", "[a", "./a")
rule = st.sampled_from(FIXED) | st.builds(
    lambda negation, pieces: negation + "".join(pieces), st.sampled_from(("", "", "!")),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
)
rules = st.lists(rule, max_size=5).map("\n".join)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    if shutil.which("git") is not None:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        subprocess.run(["git", "-C", str(root), "config", "core.excludesFile", "/dev/null"], check=True)
    for directory in DIRECTORIES:
        (root / directory).mkdir(parents=True, exist_ok=True)
    for directory in ("", *DIRECTORIES):
        for name in NAMES:
            if not (root / directory / name).is_dir():
                (root / directory / name).touch()
    return root


def kept_by_git(root: Path, paths: list[str]) -> list[str]:
    asked = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths).encode(), capture_output=True, check=False,
    )
    assert asked.returncode in {0, 1}, asked.stderr
    ignored = set(asked.stdout.decode().split("\0"))
    return [path for path in paths if path not in ignored]


@needs_git
@settings(max_examples=80)
@example(top="foo**\n!foo", nested="", deeper="/foo**\n!foo", excluded="", ending="")
@given(top=rules, nested=rules, deeper=rules, excluded=rules, ending=st.sampled_from(("", "\n")))
def test_find_leaves_out_what_git_ignores(  # noqa: PLR0917 (what is drawn)
    tree: Path, top: str, nested: str, deeper: str, excluded: str, ending: str
) -> None:
    for place, text in (
        (".gitignore", top), ("a/.gitignore", nested), ("a/b/.gitignore", deeper), (".git/info/exclude", excluded)
    ):
        (tree / place).write_bytes((text + ending).encode())
    files = DirectoryFilesByRoot().open(str(tree))
    everything = list(files.find(None, include_ignored=True).paths)
    assert list(files.find(None).paths) == kept_by_git(tree, everything)


def test_a_rules_file_that_states_nothing_is_none() -> None:
    assert parse_rules(b"\xef\xbb\xbf# only words\n\n") is None


def test_many_and_hard_rules_are_decided() -> None:
    text = b"".join(b"name%d*x*y*z/\n" % number for number in range(2_000)) + b"*a*a*a*a*a*a*a*b\n!**/keep*\n"
    parsed = parse_rules(text)
    assert parsed is not None
    assert parsed.verdict(b"d/name7_x_y_z", is_directory=True) is True
    assert parsed.verdict(b"d/name7_x_y_z", is_directory=False) is None
    assert parsed.verdict(b"a" * 4_000, is_directory=False) is None
    assert parsed.verdict(b"aaaaaaaab", is_directory=False) is True
    assert parsed.verdict(b"d/keep" + b"a" * 9 + b"b", is_directory=False) is False
