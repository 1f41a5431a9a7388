"""A log in PostgreSQL of which a part is missing: whatever needs the part names it, and nothing makes it anew."""

import re
from pathlib import Path

import anyio
import pytest

from adapters.log.postgres.making import make_log as make_tables
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.log import StoreUnavailableError
from support.cli_project import Project
from support.postgres import PostgresServer, schema_of
from unit.log.sample_events import CALLER, make_log, minted, started

PAGE = Path(__file__).parents[2] / "docs" / "postgresql.md"

NO_HEAD = "DELETE FROM log_head"
PARTS = {
    "DROP TABLE log_format": "table log_format",
    "DROP TABLE log_head": "table log_head",
    "DROP TABLE events CASCADE": "table events",
    "DROP TABLE bodies": "table bodies",
    "DROP TABLE open_items": "table open_items",
    "DROP TABLE writer_sessions": "table writer_sessions",
    "DROP FUNCTION append_batch": "function append_batch",
    "DROP FUNCTION refusal_of": "function refusal_of",
    "DROP FUNCTION open_session": "function open_session",
    "DROP FUNCTION refuse_change CASCADE": "function refuse_change",
    NO_HEAD: "the row of log_head",
}


@pytest.fixture
def place(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresAddress:
    address = postgres.new_log()
    monkeypatch.setenv("CODESPACE_STORE", address.url)
    return address


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def lose(postgres: PostgresServer, place: PostgresAddress, statement: str) -> None:
    postgres.query(f"SET search_path = {schema_of(place)}; {statement}")


@pytest.mark.parametrize("statement", PARTS)
def test_what_is_missing_is_named_and_nothing_is_made_anew(
    postgres: PostgresServer, place: PostgresAddress, project: Project, statement: str
) -> None:
    lose(postgres, place, statement)
    for command in (("store", "init"), ("serve", "--root", str(project.root))):
        called = project.call(*command)
        assert (called.returncode, called.stdout) == (2, ""), called
        assert f"a part of the event log is missing: {PARTS[statement]}. See `When a part is missing`" in called.stderr
        assert called.stderr.count("\n") == 1
    told = project.call("doctor")
    assert told.returncode == 1
    assert f"a part of the event log is missing: {PARTS[statement]}" in " ".join(told.stdout.split())


@pytest.mark.anyio
async def test_a_server_whose_head_is_taken_away_says_so_until_it_is_back(
    postgres: PostgresServer, place: PostgresAddress
) -> None:
    async with make_log(place) as log:
        await log.append(started(), CALLER)
        lose(postgres, place, NO_HEAD)
        with pytest.raises(StoreUnavailableError, match=r"missing: the row of log_head.*nothing was stored") as caught:
            await log.append(minted(1), CALLER)
        assert not caught.value.is_final
        await anyio.to_thread.run_sync(lose, postgres, place, page_statement())
        assert (await log.append(minted(1), CALLER)).first_position == 2


def test_the_head_is_brought_back_as_the_page_says(
    postgres: PostgresServer, place: PostgresAddress, project: Project
) -> None:
    async def live() -> None:
        async with make_log(place) as log:
            await log.append(started(), CALLER)

    anyio.run(live)
    lose(postgres, place, NO_HEAD)
    told = project.call("verify")
    assert (told.returncode, told.stdout.count("the row of log_head")) == (1, 1), told
    lose(postgres, place, page_statement())
    assert make_tables(place) is False
    assert postgres.query(f"SELECT position FROM {schema_of(place)}.log_head") == ["1"]


def page_statement() -> str:
    """Return the SQL by which the page brings the head back."""
    (statement,) = re.findall(r"```sql\n(INSERT INTO log_head.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(statement)
