"""Every line of the page about auditing is run, in order, and does what the page says: nothing fails."""

import os
import re
import shlex
from pathlib import Path

import anyio
import pytest

from support.cli_project import Project, patch

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
BACK = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-good day\n+hello\n*** End Patch\n"


def test_every_line_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project.make(tmp_path / "made")

    async def live() -> None:
        async with project.opened() as opened:
            await patch(opened, key="first")
            await patch(opened, BACK, key="second")

    anyio.run(live)
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    lines = re.findall(r"^\$ codespace-es (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 15
    for line in lines:
        words = shlex.split(line)
        done = project.run(*words) if words[0] == "export" else project.call(*words)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout, line
    assert sorted(os.listdir(here)) == ["kept.json", "report.html", "then"]


def test_the_page_names_every_command_of_the_audit() -> None:
    text = PAGE.read_text(encoding="utf-8")
    reading = ("log", "show", "replay", "diff", "files", "verify", "compare", "export", "report")
    for name in (*reading, "prune", "store reindex"):
        assert f"codespace-es {name}" in text
