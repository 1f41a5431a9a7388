"""What is published: the wheel and the source archive work as built; the registry entry and the recording are true."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SHELLS = {"bash": "complete -o nosort", "zsh": "compdef", "fish": "complete --no-files"}


def run(*argv: str | Path, home: Path, **environment: str) -> str:
    """Run a program that knows nothing of this user or of the sources; return what it printed. It has to succeed."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", **environment}
    done = subprocess.run(
        [str(word) for word in argv], env=variables, cwd=home, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_registrys_entry_names_this_package_and_version() -> None:
    """The registry proves who owns a package by the name in its README."""
    entry = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    package, = entry["packages"]
    assert entry["$schema"].startswith("https://static.modelcontextprotocol.io/schemas/")
    assert (entry["version"], package["version"]) == (PROJECT["version"], PROJECT["version"])
    assert package["identifier"] == PROJECT["name"]
    assert f"mcp-name: {entry['name']} " in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert len(entry["description"]) <= 100


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_is_taught_to_complete_as_the_page_says(shell: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert f"_CODESPACE_ES_COMPLETE={shell}_source codespace-es" in page
    program = Path(sys.executable).with_name("codespace-es")
    taught = run(program, home=tmp_path, _CODESPACE_ES_COMPLETE=f"{shell}_source")
    assert SHELLS[shell] in taught
    offered = run(program, home=tmp_path, _CODESPACE_ES_COMPLETE="bash_complete",
                  COMP_WORDS="codespace-es approvals gr", COMP_CWORD="2")
    assert offered == "plain,grant\n"


def test_the_recording_is_a_terminals_and_under_two_minutes() -> None:
    lines = (ROOT / "docs" / "demo.cast").read_text(encoding="utf-8").splitlines()
    header, *pieces = (json.loads(line) for line in lines)
    times = [at for at, _, _ in pieces]
    shown = "".join(text for _, _, text in pieces)
    assert header["version"] == 2
    assert times == sorted(times)
    assert times[-1] < 120
    assert {kind for _, kind, _ in pieces} == {"o"}
    assert "All went as told." in shown
    assert "whole and unchanged" in shown


@pytest.mark.soak
def test_the_recording_can_be_made_anew(tmp_path: Path) -> None:
    run(sys.executable, ROOT / "docs" / "make_recording.py", tmp_path / "demo.cast", home=tmp_path)
    assert "All went as told." in (tmp_path / "demo.cast").read_text(encoding="utf-8")


@pytest.mark.soak
def test_wheel_and_archive_work_as_built(tmp_path: Path) -> None:
    """Built from the archive, installed where nothing else is, run by somebody who has no sources."""
    network = ("UV_", "PIP_", "SSL_", "HTTP", "NO_PROXY", "ALL_PROXY")
    known = {name: value for name, value in os.environ.items() if name.upper().startswith(network)}
    environment = {**known, "UV_CACHE_DIR": str(tmp_path / "cache")}
    dist = tmp_path / "dist"
    run(UV, "build", "--out-dir", dist, ROOT, home=tmp_path, **environment)
    wheel, = dist.glob("*.whl")
    archive, = dist.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"dev", "server.json", "tests/contract/test_distribution.py", "docs/demo.cast"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(".venv")]

    venv.create(tmp_path / "fresh")
    python = tmp_path / "fresh" / "bin" / "python"
    run(UV, "pip", "install", "--python", python, wheel, home=tmp_path, **environment)
    program = python.with_name("codespace-es")
    assert run(program, "--version", home=tmp_path).split() == ["codespace-es,", "version", PROJECT["version"]]
    assert "All went as told." in run(program, "demo", home=tmp_path)
    told = run(UV, "tool", "run", "--from", wheel, "codespace-es", "--version", home=tmp_path, **environment)
    assert told.split()[-1] == PROJECT["version"]
