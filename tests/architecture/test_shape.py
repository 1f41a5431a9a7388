"""A file holds one idea, a function fits on a screen, and each file says what it is."""

import ast

import pytest
from source_tree import SourceFile, all_files, product_files

LINES_MAX = 400
TEST_LINES_MAX = 600
FUNCTION_LINES_MAX = 70


def by_name(file: SourceFile) -> str:
    return file.name


@pytest.mark.parametrize("file", all_files(), ids=by_name)
def test_a_file_holds_one_idea(file):
    lines = len(file.text.splitlines())
    limit = TEST_LINES_MAX if file.name.startswith("tests/") else LINES_MAX
    assert lines <= limit, f"{file.name} has {lines} lines: split it where its second idea begins"


@pytest.mark.parametrize("file", all_files(), ids=by_name)
def test_a_function_fits_on_a_screen(file):
    long = [
        f"{function.name} ({length} lines)" for function in file.functions()
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not long, f"{file.name}: give the steps of {', '.join(long)} names of their own"


@pytest.mark.parametrize("file", all_files(), ids=by_name)
def test_a_file_says_what_it_is(file):
    if not file.text.strip():
        pytest.skip("an empty file says nothing")
    assert ast.get_docstring(file.tree), f"{file.name}: begin with one sentence of what this file is"


@pytest.mark.parametrize("file", product_files(), ids=by_name)
def test_nothing_is_left_to_be_done(file):
    marks = [mark for mark in ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error") if mark in file.text]
    assert not marks, f"{file.name}: finish it, or open an issue; {marks} tells nobody"


@pytest.mark.parametrize("file", product_files(), ids=by_name)
def test_no_error_is_swallowed(file):
    swallowing = [
        node.lineno for node in ast.walk(file.tree)
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node)
        and all(isinstance(step, ast.Pass) for step in node.body)
    ]
    assert not swallowing, f"{file.name}:{swallowing}: name the error that may pass, and say why"


@pytest.mark.parametrize("file", all_files(), ids=by_name)
def test_an_ignored_type_error_has_its_reason(file):
    mark = "# type:" + " ignore"
    bare = [
        number for number, line in enumerate(file.text.splitlines(), start=1)
        if mark in line and (f"{mark}[" not in line or "#" not in line.partition(mark)[2])
        and not file.name.startswith("tests/")
    ]
    assert not bare, f"{file.name}:{bare}: write `{mark}[code]  # why`"


def _catches_everything(node: ast.ExceptHandler) -> bool:
    return node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
