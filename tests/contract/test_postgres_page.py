"""The page about PostgreSQL: its rights, settings and unit are tried, and its backup is made and restored."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import anyio
import pytest

from adapters.settings.file import check_settings
from adapters.settings.postgres_address import PostgresAddress
from support.cli_project import Project
from support.postgres import PostgresServer, schema_of
from unit.log.sample_events import CALLER, finished, make_log, minted, started

PAGE = Path(__file__).parents[2] / "docs" / "postgresql.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.anyio
async def test_the_rights_on_the_page_are_enough_to_append_and_too_few_to_tamper(postgres: PostgresServer) -> None:
    place = postgres.new_log()
    schema = schema_of(place)
    postgres.query(f"CREATE ROLE gateway_{schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO gateway_{schema}")
    postgres.query(f"SET search_path = {schema}; " + blocks("sql")[0].replace("gateway", f"gateway_{schema}"))
    mine = PostgresAddress(place.url.replace("codespace@", f"gateway_{schema}@"))
    async with make_log(mine) as log:
        await log.append(started(), CALLER)
        await log.append(minted(1), CALLER)
        await log.append(finished(1), CALLER)
        assert await log.compare_open_index() == []
    for statement in ("ALTER TABLE events DISABLE TRIGGER ALL", "DROP TABLE events", "DELETE FROM events"):
        with pytest.raises(AssertionError, match=r"must be owner|permission denied"):
            postgres.query(f"SET search_path = {schema}; SET ROLE gateway_{schema}; {statement}")


def test_the_settings_on_the_page_are_settings() -> None:
    settings = check_settings(tomllib.loads(blocks("toml")[0]), origin="postgresql.md")
    assert settings.store.startswith("postgresql://")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd isn't installed")
def test_the_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    unit = tmp_path / "codespace-es.service"
    unit.write_text(blocks("ini")[0].replace("/usr/local/bin/codespace-es", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, "codespace-es.service:" in done.stderr) == (0, False), done.stderr


def test_the_backup_on_the_page_is_restored_and_proved(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = f"postgresql://codespace@127.0.0.1:{postgres.port}/"
    postgres.query("CREATE DATABASE codespace")
    project = Project.make(tmp_path)
    monkeypatch.setenv("CODESPACE_STORE", server + "codespace")
    assert project.call("store", "init").returncode == 0
    anyio.run(live_a_little, project)
    (script,) = [block for block in blocks("sh") if "pg_dump" in block]
    done = subprocess.run(
        ["sh", "-euc", script.replace("postgresql://codespace@db.example.org/", server)],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{postgres.programs}:{os.environ['PATH']}",
             "PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "codespace",
             "CODESPACE_DATA_DIR": str(project.data)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("whole and unchanged") == 2
    # A restored log is refused as that one, once it is another.
    postgres.query("DROP DATABASE codespace_restored")
    postgres.query("CREATE DATABASE codespace_restored")
    monkeypatch.setenv("CODESPACE_STORE", server + "codespace_restored")
    assert project.call("store", "init").returncode == 0
    anyio.run(live_a_little, project)
    assert project.call("verify", "--against", str(tmp_path / "before.json")).returncode == 1


async def live_a_little(project: Project) -> None:
    from adapters.bootstrap import open_codespace
    from adapters.cli.options import effective_settings
    from adapters.settings.load import Flags

    settings = effective_settings(Flags(data_dir=str(project.data)), os.environ)
    async with open_codespace(settings, transport="stdio"):
        pass
