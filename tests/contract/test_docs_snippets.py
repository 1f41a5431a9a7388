"""The pages that show code are run: all Python blocks of a page, in order, as one program."""

import re
import runpy
from pathlib import Path

import pytest

from support.stdio_client import have_the_sdk_start_warm_servers

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["for-loop-authors.md", "structural-edits.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_program_on_a_page_runs_to_its_end(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    have_the_sdk_start_warm_servers()
    runpy.run_path(str(program), run_name="__main__")


def test_each_test_that_the_security_page_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+\.py)`", (DOCS / "security.md").read_text(encoding="utf-8")))
    assert named
    assert named <= {path.name for path in (DOCS.parent / "tests").rglob("test_*.py")}
