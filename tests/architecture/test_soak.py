"""No long test is forgotten: each is a part of the soak, or has its command on the page about tests."""

import re

from source_tree import REPOSITORY as ROOT

import soak

PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests"


def test_each_file_with_a_long_test_is_in_the_soak_or_has_its_command_on_the_page() -> None:
    run = " ".join(part.arguments for part in soak.PARTS)
    run += " ".join(re.findall(r"`\./dev test -m soak ([^`]+)`", PAGE))
    long = [
        file.relative_to(ROOT) for file in TESTS.rglob("test_*.py")
        if re.search(r"mark\.soak\b", file.read_text(encoding="utf-8")) and file.name != "test_soak.py"
    ]
    assert len(long) > 8
    forgotten = [str(file) for file in long if str(file) not in run and f"{file.parent} " not in f"{run} "]
    assert not forgotten, f"add a part to tests/soak.py, or a command to docs/testing.md, for: {forgotten}"


def test_what_the_soak_runs_is_there() -> None:
    words = " ".join(part.arguments for part in soak.PARTS).split()
    missing = [word for word in words if word.startswith("tests/") and not (ROOT / word).exists()]
    assert not missing


def test_each_variable_that_is_set_for_tests_is_read_by_one() -> None:
    """A misspelt one would change nothing, and nobody would notice."""
    told = re.findall(r"\b([A-Z][A-Z_]{3,})=", " ".join(part.environment for part in soak.PARTS) + PAGE)
    read = "".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("*.py") if file.name != "soak.py")
    assert {"CODESPACE_EFFORT", "FIRE_SEED"} <= set(told)
    unread = {name for name in told if f'"{name}"' not in read}
    assert not unread, f"no test reads {sorted(unread)}"
