"""The custom tools that a reader can copy, as shipped: the one on the page and the example."""

import re
from pathlib import Path

import anyio
import pytest

from support.custom_tools import write_tools
from support.stdio_client import SECONDS_MAX, ask, connected, product, refused
from support.warm_servers import ROOT

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


def contents(root: Path) -> dict[str, bytes]:
    """Return what every file holds, by path."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_the_batch_rename_renames_what_it_showed_or_nothing(tmp_path: Path) -> None:
    example = (ROOT / "examples" / "batch_rename.py").read_text(encoding="utf-8")
    write_tools(tmp_path / "data" / "tools", batch_rename=example)
    root = tmp_path / "ws"
    (root / "deep").mkdir(parents=True)
    before = {"test_a.py": b"a\n", "deep/test_\u00fc b.py": b"b\r\n", "other.py": b"", "test_c.txt": b"c"}
    for name, content in before.items():
        (root / name).write_bytes(content)
    command = product(tmp_path, f"demo={root}")
    request = {"workspace_id": "demo", "glob": "**/*.py", "pattern": "^test_(.*)", "replacement": r"check_\1"}
    with anyio.fail_after(3 * SECONDS_MAX):
        async with connected(command, tmp_path) as client:
            nothing = await refused(client, "batch_rename", **{**request, "pattern": "^no_(such)"})
            assert nothing["message"] == "No name of a file that matches **/*.py matches ^no_(such)."
            onto = await refused(client, "batch_rename", **{**request, "replacement": "other.py"})
            assert onto["code"] == "MOVE_DESTINATION_EXISTS"
            (root / "more_test.py").write_text("")
            dropped = await ask(client, "batch_rename", **{**request, "pattern": "more_test", "replacement": "less"})
            told = await ask(client, "resolve", action="discard", id=dropped["action_id"], reason="too many")
            assert told["text"] == "No file was renamed. too many"
            (root / "more_test.py").unlink()
            preview = await ask(client, "batch_rename", **request)
        assert contents(root) == before
        async with connected(command, tmp_path) as client:  # a preview outlives its server
            assert preview["content"].splitlines()[1:] == [
                "deep/test_ü b.py -> deep/check_ü b.py", "test_a.py -> check_a.py",
            ]
            told = await ask(client, "resolve", action="apply", id=preview["action_id"])
            assert told["text"].endswith("Renamed 2 file(s).")
            assert contents(root) == {name.replace("test_", "check_") if name.endswith(".py") else name: content
                                      for name, content in before.items()}
            await ask(client, "operation_revert", operation_id=told["operation_id"])
            assert contents(root) == before

            stale = await ask(client, "batch_rename", **request)
            (root / "test_a.py").write_text("changed")
            refusal = await refused(client, "resolve", action="apply", id=stale["action_id"])
            assert refusal["message"].startswith("Apply failed: Preview is stale, nothing was renamed: test_a.py")
            assert refusal["detail"]["outcome"] == "failed"
            assert contents(root) == before | {"test_a.py": b"changed"}
