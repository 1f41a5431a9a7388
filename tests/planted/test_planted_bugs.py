"""Tests are tested: each bug is planted in a copy of the tree, and some test there has to fail.

`pytest -m soak -s tests/planted` plants all of them and prints who caught which: the table of docs/testing.md.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planted.bugs import BUGS, Bug

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 600
"""A test that hangs on a bug has caught it too."""


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_can_still_be_planted(bug: Bug) -> None:
    assert (ROOT / bug.file).read_text(encoding="utf-8").count(bug.old) == 1, "the place has changed: say the bug anew"
    assert bug.old != bug.new
    assert all((ROOT / test).exists() for test in bug.tests)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, without what is made in it."""
    target = tmp_path_factory.mktemp("planted") / "tree"
    made = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, target, ignore=made)
    return target


@pytest.mark.soak
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug, copy: Path) -> None:
    file = copy / bug.file
    healthy = file.read_text(encoding="utf-8")
    file.write_text(healthy.replace(bug.old, bug.new), encoding="utf-8")
    try:
        caught_by = first_failure(copy, bug.tests)
    finally:
        file.write_text(healthy, encoding="utf-8")
    print(f"\n| {bug.name} | {caught_by or '**nobody**'} |")
    assert caught_by


def first_failure(tree: Path, tests: tuple[str, ...]) -> str | None:
    """Return the test that fails in `tree`, None if all pass."""
    sources = os.pathsep.join(str(tree / part) for part in ("src", ".", "tests"))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no", *tests], cwd=tree,
            env={**variables, "PYTHONPATH": sources}, capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a hang in {tests[0]}"
    found = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[| |$)", ended.stdout, re.MULTILINE)
    assert ended.returncode in {0, 1}, ended.stdout + ended.stderr
    return found[1] if found else None
