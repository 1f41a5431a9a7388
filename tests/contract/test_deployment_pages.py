"""The pages on deployment: units that systemd understands, a composition that holds together, commands that we have."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCS = Path(__file__).parents[2] / "docs"
PROGRAM = Path(sys.executable).with_name("codespace-es")
SERVICE_KEYS = {"image", "command", "environment", "secrets", "volumes", "ports", "depends_on", "healthcheck"}
"""What a service here says, of all that the Compose Specification knows."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def composition() -> dict[str, Any]:
    loaded = yaml.safe_load(blocks("postgresql.md", "yaml")[0])
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd isn't installed")
@pytest.mark.parametrize("is_broken", [False, True], ids=["as it stands", "with a misspelt key"])
def test_the_users_unit_is_one_that_systemd_understands(tmp_path: Path, *, is_broken: bool) -> None:
    text = blocks("http.md", "ini")[0].replace("%h/.local/bin/codespace-es", "/bin/true")
    unit = tmp_path / "codespace-es.service"
    unit.write_text(text.replace("Restart=", "Restrt=") if is_broken else text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(unit)], capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    has_complaints = "codespace-es.service:" in done.stderr
    assert (done.returncode == 0 and not has_complaints) != is_broken, done.stderr


def test_the_composition_names_only_what_it_has() -> None:
    """What a service leans on is declared, what has to be healthy says how that is asked."""
    composed = composition()
    assert set(composed) == {"services", "volumes", "secrets"}
    services = composed["services"]
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service.get("secrets", ())) <= set(composed["secrets"]), name
        sources = {mount.partition(":")[0] for mount in service.get("volumes", ())}
        assert {source for source in sources if not source.startswith(".")} <= set(composed["volumes"]), name
        for other, wanted in service.get("depends_on", {}).items():
            assert wanted == {"condition": "service_healthy"}
            assert services[other]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    host = re.fullmatch(r"postgresql://\w+@(\w+)/\w+", services["gateway"]["environment"]["CODESPACE_STORE"])
    assert host is not None
    assert host[1] in services
    said = {services["db"]["environment"][name] for name in ("POSTGRES_USER", "POSTGRES_DB")}
    assert said == {"codespace"}, "who the gateway is, and where its log is"


def test_the_composition_is_one_that_docker_understands(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker's plugin for compositions isn't installed")
    (tmp_path / "compose.yaml").write_text(blocks("postgresql.md", "yaml")[0], encoding="utf-8")
    (tmp_path / "db-password.txt").write_text("secret", encoding="utf-8")
    done = subprocess.run(
        [docker, "compose", "--project-directory", str(tmp_path), "config", "--quiet"], capture_output=True, text=True,
        env={**os.environ, "CODESPACE_HTTP_TOKEN": "x" * 32}, check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_commands_that_a_deployment_runs_are_ours() -> None:
    """Each is a command that we have, with options that it has."""
    script = composition()["services"]["gateway"]["command"][-1]
    places = [*blocks("http.md", "ini"), *blocks("postgresql.md", "ini"), script]
    lines = sorted({line for text in places for line in re.findall(r"codespace-es ((?:serve|store)\b[^\n&]*)", text)})
    assert len(lines) >= 4
    told: dict[str, str] = {}
    for line in lines:
        words = line.split()
        command = " ".join(words[: 2 if words[0] == "store" else 1])
        if command not in told:
            asked = [PROGRAM, *command.split(), "--help"]
            told[command] = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        for option in re.findall(r"--[a-z-]+", line):
            assert f"{option} " in told[command], line
