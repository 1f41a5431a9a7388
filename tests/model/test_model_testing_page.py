"""Every snippet of docs/model-testing.md runs, and the machines that it makes find nothing."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "model-testing.md"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Run the page from top to bottom; return what it made."""
    names: dict[str, Any] = {"__name__": "page"}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(snippet, str(PAGE), "exec"), names)
    return names


@pytest.mark.parametrize("name", ["TestOurPolicies", "TestNothingIsForgotten", "TestOnlyPatches"])
def test_the_machines_of_the_page_run(made: dict[str, Any], name: str) -> None:
    case = made[name]
    case("runTest").runTest()


def test_the_page_shows_these_machines_and_no_other(made: dict[str, Any]) -> None:
    assert {name for name in made if name.startswith("Test")} == {
        "TestOurPolicies", "TestNothingIsForgotten", "TestOnlyPatches",
    }
