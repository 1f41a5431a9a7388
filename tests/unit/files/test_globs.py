"""Globs against a naive reference, and what each form means."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.files.globs import literal_directory, path_test
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

SEGMENT_PIECES = st.sampled_from(("*", "?", "a", "b", ".", "é", "[ab]", "[!a]", "[a-c]", "\\*"))
SEGMENT = st.lists(SEGMENT_PIECES, min_size=1, max_size=4) | st.just(["**"])
PATHS = st.lists(st.text("abc.é*", min_size=1, max_size=4), min_size=1, max_size=4)


def is_named(glob: str, path: str) -> bool:
    test = path_test(glob)
    return test is None or test(path.encode())


def naive_segment(pieces: list[str], name: str) -> bool:
    if not pieces:
        return not name
    piece, rest = pieces[0], pieces[1:]
    if piece in {"*", "**"}:
        return any(naive_segment(rest, name[at:]) for at in range(len(name) + 1))
    takes = {"?": lambda _: True, "[ab]": "ab".__contains__, "[!a]": lambda c: c != "a", "[a-c]": "abc".__contains__,
             "\\*": "*".__contains__}.get(piece, piece.__eq__)
    return bool(name) and bool(takes(name[0])) and naive_segment(rest, name[1:])


def naive(segments: list[list[str]], path: list[str]) -> bool:
    if not segments:
        return not path
    if segments[0] == ["**"]:
        if len(segments) == 1:
            return bool(path)
        return any(naive(segments[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and naive_segment(segments[0], path[0]) and naive(segments[1:], path[1:])


@settings(max_examples=300)
@given(segments=st.lists(SEGMENT, min_size=1, max_size=4), path=PATHS)
def test_a_glob_names_what_the_naive_reading_names(segments: list[list[str]], path: list[str]) -> None:
    glob = "/".join("".join(pieces) for pieces in segments)
    if glob.startswith("./"):
        return
    # Two stars that met within a segment are still one that stays there.
    expected = naive_segment(segments[0], path[-1]) if len(segments) == 1 else naive(
        [["**"] if set("".join(pieces)) == {"*"} and len("".join(pieces)) > 1 else pieces for pieces in segments], path
    )
    assert is_named(glob, "/".join(path)) == expected


@pytest.mark.parametrize(
    ("glob", "named", "unnamed"),
    [
        ("*.py", ["a.py", "x/y/.b.py", ".py"], ["a.pyc", "a.py/x"]),
        ("**/*.py", ["a.py", "x/y/b.py"], ["a.pyc"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/x/a.py", "x/src/a.py"]),
        ("src/**", ["src/a", "src/x/.y"], ["src", "srcs/a"]),
        ("src/", ["src/a", "src/x/y"], ["src"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "xa/b"]),
        ("/top", ["top"], ["x/top"]),
        ("./top", ["top"], ["x/top"]),
        ("{src,test}/**/*.{py,ts}", ["src/a.py", "test/x/b.ts"], ["lib/a.py", "src/a.js"]),
        ("{id}.json", ["x/{id}.json"], ["id.json"]),
        ("app/[[]id]/**", ["app/[id]/(g)/p.ts"], ["app/i/p.ts"]),
        ("app/\\[id\\]/*", ["app/[id]/p"], ["app/i/p"]),
        ("[id]", ["x/i", "d"], ["id", "[id]"]),
        ("[!a-c]?", ["xé", "éx"], ["ax", "x"]),
        ("[]x]", ["]", "x"], ["[]x]"]),
        ("[[:digit:][:upper:]-]", ["7", "A", "-"], ["a", ":"]),
        ("a[.-0]b", ["a.b", "a0b"], ["a/b"]),
        ("x[/]y/z", [], ["x/y/z", "xy/z"]),
        ("caf?.md", ["café.md"], ["cafe\u0301.md"]),
        ("*", ["a", "x/y"], []), ("", ["a", "x/y"], []), ("**", ["a", "x/y"], []),
        ("f{1..3}", ["f2"], ["f4"]),
        ("a\nb", ["a\nb"], ["ab"]), ("a*b", ["a\nb"], []),
    ],
)
def test_each_form_of_glob(glob: str, named: list[str], unnamed: list[str]) -> None:
    assert [path for path in named if not is_named(glob, path)] == []
    assert [path for path in unnamed if is_named(glob, path)] == []


@pytest.mark.parametrize("glob", ["[a", "a\\", "[z-a]", "[[:word:]]", "{a,b}" * 12, "x" * 5_000, "[\\", "\ud800*x/",
                                  "{" * 400, "{a," * 1_000 + "b", "{a,b" * 1_000])
def test_a_glob_that_cannot_be_understood_is_an_invalid_argument(glob: str) -> None:
    with pytest.raises(CodespaceError) as refusal:
        path_test(glob)
    assert refusal.value.code is ErrorCode.INVALID_ARGUMENT
    assert refusal.value.detail == {"field": "glob"}


def test_braces_within_braces_are_read() -> None:
    assert is_named("{a," * 100 + "b" + "}" * 100, "b")


def test_a_hostile_glob_is_decided() -> None:
    assert not is_named("**/a/" * 60 + "b", "a/" * 2_000)
    assert not is_named("*a" * 200 + "b/x", "a" * 4_000)


@pytest.mark.parametrize(
    ("glob", "directory"),
    [(None, ""), ("*.py", ""), ("src/x/*.py", "src/x"), ("src/x.py", "src"), ("src/", "src"), ("./src/x/**", "src/x"),
     ("src/{a,b}/c", "src"), ("s{a,b}/c", ""), ("s\\*/c", ""),
     ("/top", ""), ("**/*", "")],
)
def test_the_directory_that_a_glob_stays_below(glob: str | None, directory: str) -> None:
    assert literal_directory(glob) == directory
