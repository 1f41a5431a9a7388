"""The custom tools that a reader can copy, as shipped: the one on the page and the example."""

import re
from pathlib import Path

import anyio
import pytest

from support.custom_tools import write_tools
from support.stdio_client import ROOT, SECONDS_MAX, ask, connected, product

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_the_tool_on_the_page_counts_files(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "custom-tools.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    write_tools(tmp_path / "data" / "tools", counting=block)
    (tmp_path / "ws").mkdir()
    for name in ("a.md", "b.md", "c.txt"):
        (tmp_path / "ws" / name).write_text(name)
    with anyio.fail_after(2 * SECONDS_MAX):
        async with connected(product(tmp_path, f"demo={tmp_path / 'ws'}:read-only"), tmp_path) as client:
            assert (await ask(client, "count_files", workspace_id="demo", glob="*.md"))["content"] == "2 files"
