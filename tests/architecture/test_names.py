"""Names say what a thing is; nothing in the tree speaks of where it was made."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from source_tree import SourceFile, product_files, repository_files

BANNED = {
    "util": "what it does", "utils": "what it does", "helper": "what it does", "helpers": "what it does",
    "common": "what its parts have in common", "misc": "one idea a file", "manager": "what it does with them",
    "base": "the role, or the port", "data": "what the bytes are", "info": "what is told",
    "handler": "which handling",
}
"""Word -> what to say instead."""

TERMS = re.compile(
    r"workspace_?info|data_?dir(ectory)?|data_?version|sqlite_data|command_handlers?|BaseModel|Database(Error)?",
    re.IGNORECASE,
)
"""Terms of the contract, of a library or of the system that hold such a word."""

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def names_of(file: SourceFile) -> Iterator[str]:
    """Yield the names that a file gives: its own, its classes', functions' and parameters'."""
    yield from file.module.split(".")
    for node in file.nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def words_of(name: str) -> set[str]:
    return {word.lower() for word in WORDS.findall(TERMS.sub("", name))}


def test_a_name_says_what_the_thing_is():
    advice = [
        f"{file.name}: {name!r}: say {BANNED[word]} instead of {word!r}"
        for file in product_files() if "/tools/" not in file.name  # a tool is called what the contract calls it
        for name in dict.fromkeys(names_of(file)) for word in words_of(name) & set(BANNED)
    ]
    assert not advice, "; ".join(advice)


def test_the_tree_does_not_speak_of_the_place_where_it_was_made():
    marks = re.compile("|".join(["(?<![\\w.-])/wor" + "k/", "/ro" + "ot/", "PREFACE" + r"\.md"]))
    found = [
        f"{path.name}:{number}: {line.strip()[:80]}"
        for path in repository_files() if path.suffix in (".py", ".md", ".toml", ".txt", ".json", ".jsonl", ".sh", "")
        for number, line in enumerate(_lines(path), start=1) if marks.search(line)
    ]
    assert not found, "use a path relative to the repository, or a made-up one: " + "; ".join(found)


def _lines(path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []


def test_no_two_files_of_tests_have_one_name():
    """They are imported by their name alone: the second would be taken for the first, and its tests never run."""
    names = Counter(path.name for path in repository_files() if path.name.startswith("test_"))
    assert [name for name, files in names.items() if files > 1] == []
