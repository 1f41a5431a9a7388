"""Lists that have to be complete both ways: fault points, stories behind the door, pages, changelog."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

from source_tree import REPOSITORY, python_files

from codespace_es.codespace import HANDLERS
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.vocabulary.answer import Command


def test_every_fault_point_is_passed_somewhere():
    passed = "\n".join(
        file.text for file in python_files("src/") if not file.name.endswith("ports/fault_points.py")
    )
    unused = [point.name for point in FaultPoint if f"FaultPoint.{point.name}" not in passed]
    assert unused == [], "no code passes them: call the hook there, or take the points off the list"


def test_every_fault_point_is_tried_by_a_test():
    texts = [file.text for file in python_files("tests/") if not file.name.startswith("tests/architecture/")]
    over_all = re.compile(r"\b(in|list\(|tuple\(|set\(|sampled_from\()\s*\(?FaultPoint\b(?!\.)")
    if not any(over_all.search(text) for text in texts):
        whole = "\n".join(texts)
        untried = [point.name for point in FaultPoint if point.name not in whole and point.value not in whole]
        assert untried == [], "die at them in tests/crash"


def test_every_command_has_its_story_and_every_story_its_command():
    def below(kind: type[Command]) -> set[type[Command]]:
        return {kind, *(each for child in kind.__subclasses__() for each in below(child))}

    commands = {kind for kind in below(Command) - {Command} if kind.__module__.startswith("codespace_es.")}
    assert commands == set(HANDLERS), "the door's table names each command once"


def _generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("reference", REPOSITORY / "docs/generate_reference.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_a_reference_page_says_what_the_code_says():
    stale = [
        name for name, text in _generator().pages().items()
        if (REPOSITORY / "docs" / "reference" / name).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run python docs/generate_reference.py"


def test_the_changelog_has_an_entry_for_this_version():
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = REPOSITORY / "CHANGELOG.md"
    assert changelog.exists(), "write CHANGELOG.md in the form of Keep a Changelog"
    headings = re.findall(r"^## \[?([^\]\s]+)", changelog.read_text(encoding="utf-8"), re.MULTILINE)
    assert version in headings or "Unreleased" in headings, f"add a heading `## {version}`"


def test_every_event_that_is_stored_is_explained_by_a_page():
    page = Path(REPOSITORY / "docs/reference/events.md").read_text(encoding="utf-8")
    topics = (Path(__file__).parent / "golden" / "topics.txt").read_text(encoding="utf-8").split()
    assert [topic for topic in topics if f"`{topic}`" not in page] == []


def test_what_a_page_has_a_stranger_run_of_these_files_runs_in_their_environment():
    """A bare `python FILE` finds neither the product nor what it needs."""
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    program = r"(?<!run )(?<!group bench )\b(?:python|pytest|uv run)\b"
    bare = re.compile(program + r"[^`\n]* (?:docs|tests|benchmarks)/\S+\.py")
    found = [f"{page.name}: {each[0]}" for page in pages for each in bare.finditer(page.read_text(encoding="utf-8"))]
    assert found == [], "put ./dev run before it"
