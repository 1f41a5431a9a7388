"""A file holds one idea, a function fits on a screen, and each file says what it is.

One test is one rule, which names every file that breaks it.
"""

import ast

from source_tree import all_files, product_files

LINES_MAX = 400
TEST_LINES_MAX = 600
FUNCTION_LINES_MAX = 70


def test_a_file_holds_one_idea():
    lengths = {file.name: len(file.text.splitlines()) for file in all_files()}
    long = [
        f"{name} has {lines} lines" for name, lines in lengths.items()
        if lines > (TEST_LINES_MAX if name.startswith("tests/") else LINES_MAX)
    ]
    assert not long, "split it where its second idea begins: " + "; ".join(long)


def test_a_function_fits_on_a_screen():
    long = [
        f"{file.name}:{function.lineno}: {function.name} ({length} lines)"
        for file in all_files() for function in file.functions()
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not long, "give its steps names of their own: " + "; ".join(long)


def test_a_file_says_what_it_is():
    silent = [file.name for file in all_files() if file.text.strip() and not ast.get_docstring(file.tree)]
    assert not silent, "begin with one sentence of what this file is: " + "; ".join(silent)


def test_nothing_is_left_to_be_done():
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")
    left = [f"{file.name}: {mark}" for file in product_files() for mark in marks if mark in file.text]
    assert not left, "finish it, or open an issue; a mark tells nobody: " + "; ".join(left)


def test_no_error_is_swallowed():
    swallowing = [
        f"{file.name}:{node.lineno}" for file in product_files() for node in file.nodes
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node)
        and all(isinstance(step, ast.Pass) for step in node.body)
    ]
    assert not swallowing, "name the error that may pass, and say why: " + "; ".join(swallowing)


def test_an_ignored_type_error_has_its_reason():
    mark = "# type:" + " ignore"
    bare = [
        f"{file.name}:{number}"
        for file in all_files() if mark in file.text and not file.name.startswith("tests/")
        for number, line in enumerate(file.text.splitlines(), start=1)
        if mark in line and (f"{mark}[" not in line or "#" not in line.partition(mark)[2])
    ]
    assert not bare, f"write `{mark}[code]  # why`: " + "; ".join(bare)


def _catches_everything(node: ast.ExceptHandler) -> bool:
    return node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
