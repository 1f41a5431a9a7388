"""`tools check`: what a server would have, and what is wrong, before it starts."""

import json
from pathlib import Path

import pytest

from support.cli_project import Project
from support.custom_tools import GOOD, having, write_tools


def test_without_any_there_is_nothing_wrong(tmp_path: Path) -> None:
    called = Project.make(tmp_path).call("tools", "check")
    assert (called.returncode, called.stdout, called.stderr) == (0, "", "")


def test_each_tool_and_each_fault_is_a_line(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    write_tools(project.data / "tools", a=GOOD, b="raise ValueError('\x1b[31m')")
    called = project.call("tools", "check")
    assert called.returncode == 1
    assert called.stdout == "ok\ttools/a.py\tgreet\nbad\ttools/b.py\tValueError: \\x1b[31m.\n"


def test_as_json(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    other = tmp_path / "other.py"
    other.write_text(having(name="'second'", annotations="{}"))
    configuration = tmp_path / "c.json"
    configuration.write_text(json.dumps({"custom_tools": [str(other)]}))
    write_tools(project.data / "tools", a=GOOD)
    called = project.call("tools", "check", "--json", "--config", str(configuration))
    assert called.returncode == 0
    assert json.loads(called.stdout) == {
        "tools": [
            {"name": "greet", "label": "Greet", "source": "tools/a.py", "read_only": True},
            {"name": "second", "label": "Greet", "source": str(other), "read_only": False},
        ],
        "errors": [],
    }


def test_a_workspace_is_no_place_for_tools(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    write_tools(project.root / "tools", a=GOOD)
    configuration = tmp_path / "c.json"
    configuration.write_text(json.dumps({
        "custom_tools": [str(project.root / "tools")], "workspaces": {"demo": {"root": str(project.root)}},
    }))
    called = project.call("tools", "check", "--config", str(configuration))
    assert called.returncode == 1
    assert f"it lies in the workspace {project.root}, where an agent could have written it." in called.stdout


@pytest.mark.parametrize("written", ["tools.py", "./tools", ""])
def test_a_path_has_to_be_absolute(tmp_path: Path, written: str) -> None:
    configuration = tmp_path / "c.json"
    configuration.write_text(json.dumps({"custom_tools": [written]}))
    called = Project.make(tmp_path).call("tools", "check", "--config", str(configuration))
    assert called.returncode == 2
    assert f"custom_tools {written!r} must be an absolute path." in called.stderr
