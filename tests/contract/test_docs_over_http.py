"""The loop on the page about HTTP is run against a real server, as it stands there."""

import os
import re
import sys
from pathlib import Path

import anyio
import pytest

from support.http_client import TOKEN, http_product, serving

PAGE = Path(__file__).parents[2] / "docs" / "http.md"

pytestmark = pytest.mark.anyio


async def test_the_loop_on_the_page_finds_files_over_http(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    project = tmp_path / "project"
    project.mkdir()
    (project / "greeting.py").write_text("", encoding="utf-8")
    async with serving(http_product(tmp_path, f"demo={project}"), tmp_path, token=TOKEN) as server:
        with anyio.fail_after(120):
            ended = await anyio.run_process(
                [sys.executable, "-c", program],
                env={**os.environ, "CODESPACE_ADDRESS": server.url, "CODESPACE_HTTP_TOKEN": TOKEN},
                check=False,
            )
    assert (ended.returncode, ended.stdout.decode().strip()) == (0, "['greeting.py']"), ended.stderr.decode()
