"""The page about HTTP: its blocks are what its readers paste, so each is read by what it is for."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from adapters.http.guard import Admittance
from adapters.settings.file import check_settings
from codespace_es.vocabulary import limits

PAGE = Path(__file__).parents[2] / "docs" / "http.md"


def blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return [str(each) for each in found]


def test_every_client_is_told_the_same_address() -> None:
    cursor, vscode = (json.loads(block) for block in blocks("json"))
    codex, _settings = (tomllib.loads(block) for block in blocks("toml"))
    urls = {
        cursor["mcpServers"]["codespace"]["url"], vscode["servers"]["codespace"]["url"],
        codex["mcp_servers"]["codespace"]["url"],
    }
    assert urls == {"http://127.0.0.1:8787/mcp"}


def test_the_configuration_behind_a_proxy_lets_the_proxied_request_in() -> None:
    http = check_settings(tomllib.loads(blocks("toml")[1]), origin="http.md").http
    admittance = Admittance.to_listener(
        http.host, http.port, allowed_hosts=http.allowed_hosts, allowed_origins=http.allowed_origins
    )
    assert "code.example.org" in admittance.hosts
    assert "https://code.example.org" in admittance.origins


def test_the_limit_that_the_page_tells_is_the_limit() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert limits.MESSAGE_BYTES_MAX == 16 * limits.MIB
    assert "16 MiB" in text
    assert "client_max_body_size 16m;" in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd isn't installed")
def test_the_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    unit = tmp_path / "codespace-es.service"
    unit.write_text(blocks("ini")[0].replace("%h/.local/bin/codespace-es", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, "codespace-es.service:" in done.stderr) == (0, False), done.stderr
