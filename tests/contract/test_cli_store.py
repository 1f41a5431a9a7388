"""`store reindex`: a wrong list of what is open is told and made right, whatever is wrong in it; events stay."""

import json
from pathlib import Path

import anyio
import pytest

from adapters.log.sqlite.connecting import driver
from support.cli_project import Project, patch

FORGED = "INSERT INTO open_items VALUES ('op-forged', 'operation', NULL, 'inst-forged', 1)"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.make(tmp_path)

    async def live() -> None:
        async with made.opened() as opened:
            await patch(opened, key="first")

    anyio.run(live)
    return made


def damage(project: Project, *statements: str) -> None:
    connection = driver.connect(project.data / "codespace.db", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_right_list_is_left_as_it_is(project: Project) -> None:
    before = project.call("verify", "--json").stdout
    assert project.call("store", "reindex").stdout == "open index\tright\n"
    assert json.loads(project.call("store", "reindex", "--json").stdout) == {"is_changed": False, "differences": []}
    after = json.loads(project.call("verify", "--json").stdout)
    assert (after["head_hash"], after["is_ok"]) == (json.loads(before)["head_hash"], True)


def test_a_wrong_list_is_told_and_made_anew(project: Project) -> None:
    damage(project, FORGED)
    head = json.loads(project.call("verify", "--json").stdout)
    assert [finding["law"] for finding in head["findings"]] == ["open_index"]
    told = project.call("store", "reindex", "--check")
    assert told.returncode == 1
    assert told.stdout.splitlines()[0] == "was listed, and isn't open\toperation\top-forged\topened at 1"
    assert project.call("verify").returncode == 1, "--check changes nothing"
    done = project.call("store", "reindex", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["differences"][0]["listed"]["stream_id"] == "op-forged"
    after = json.loads(project.call("verify", "--json").stdout)
    assert (after["is_ok"], after["head_hash"]) == (True, head["head_hash"])
    assert project.call("store", "reindex", "--check").returncode == 0


async def _live_with_a_forgotten_row(project: Project) -> str:
    async with project.opened() as opened:
        await anyio.to_thread.run_sync(lambda: damage(project, "DELETE FROM open_items"))
        done = await anyio.to_thread.run_sync(lambda: project.call("store", "reindex"))
        await patch(opened, "*** Begin Patch\n*** Add File: more.txt\n+more\n*** End Patch\n")
    return done.stdout


def test_a_living_server_goes_on_after_its_forgotten_row_is_back(project: Project) -> None:
    assert "was not listed\tinstance\tinst-" in anyio.run(_live_with_a_forgotten_row, project)
    assert project.call("verify").returncode == 0


def test_where_there_is_no_log_none_is_made(tmp_path: Path) -> None:
    empty = Project(tmp_path, tmp_path / "nowhere")
    refused = empty.call("store", "reindex")
    assert refused.returncode == 2
    assert refused.stderr.startswith("codespace-es: There is no event log at ")
    assert not empty.data.exists()
