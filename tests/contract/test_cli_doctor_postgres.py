"""`doctor` on a log in PostgreSQL: is the server one to trust, and the user one who can only append?"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.cli import checks_postgres
from adapters.log.postgres.examining import Server
from adapters.log.postgres.making import make_log
from adapters.settings.postgres_address import PostgresAddress
from support.cli_project import Project
from support.postgres import PostgresServer, schema_of

GRANTS = ("SELECT ON {0}.log_format", "SELECT, UPDATE ON {0}.log_head", "SELECT, INSERT ON {0}.events",
          "SELECT, INSERT, DELETE ON {0}.bodies, {0}.open_items, {0}.writer_sessions")
"""As docs/postgresql.md has them."""


@pytest.fixture
def place(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresAddress:
    address = postgres.new_log()
    monkeypatch.setenv("CODESPACE_STORE", address.url)
    return address


def doctor(directory: Path) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the exit code, and verdict and words by what was looked at."""
    project = Project(directory, directory / "data")
    done = project.call("doctor", "--json")
    assert done.stderr == ""
    return done.returncode, {check["name"]: (check["verdict"], check["told"]) for check in json.loads(done.stdout)}


@pytest.fixture
def gateway(postgres: PostgresServer, place: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A user who may do what a gateway does, as which `doctor` comes."""
    schema = schema_of(place)
    name = f"gateway_{schema[-8:]}"
    postgres.query(f"CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {name}; " + "; ".join(
        f"GRANT {grant.format(schema)} TO {name}" for grant in GRANTS))
    monkeypatch.setenv("CODESPACE_STORE", place.url.replace("codespace@", f"{name}@"))
    yield name
    postgres.query(f"DROP OWNED BY {name}; DROP ROLE {name}")


@contextmanager
def setting(postgres: PostgresServer, name: str, value: str) -> Iterator[None]:
    """Let the whole server have it otherwise for a while."""
    former = postgres.query(f"SHOW {name}")
    postgres.configure(name, value)
    try:
        yield
    finally:
        postgres.configure(name, None)
        assert postgres.query(f"SHOW {name}") == former


def test_a_server_and_a_user_as_they_should_be(postgres: PostgresServer, gateway: str, tmp_path: Path) -> None:
    code, told = doctor(tmp_path)
    assert code == 0
    version, = postgres.query("SHOW server_version")
    assert told["postgresql"] == ("ok", f"{version}")
    assert told["durability"] == ("ok", "fsync and full_page_writes are on, synchronous_commit is on.")
    assert told["tables"][0] == "ok"
    assert told["rights"] == ("ok", f"User {gateway} can append events, and neither change nor remove them.")
    assert "has 0 events" in told["event log"][1]


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_acknowledged_is_bad(
    postgres: PostgresServer, place: PostgresAddress, tmp_path: Path, name: str
) -> None:
    assert place
    with setting(postgres, name, "off"):
        code, told = doctor(tmp_path)
    assert code == 1
    assert told["durability"][0] == "bad"
    assert told["durability"][1].startswith(f"{name} is off: ")
    assert "Set to on" in told["durability"][1]


@pytest.mark.parametrize(("value", "verdict"), [("off", "warning"), ("local", "warning"), ("remote_apply", "ok")])
def test_a_user_whose_commits_wait_for_nothing_is_warned(
    postgres: PostgresServer, gateway: str, tmp_path: Path, value: str, verdict: str
) -> None:
    postgres.query(f"ALTER ROLE {gateway} SET synchronous_commit = {value}")
    code, told = doctor(tmp_path)
    assert code == 0
    assert told["durability"][0] == verdict
    assert f"synchronous_commit is {value}" in told["durability"][1]


def test_an_owner_is_warned_that_the_past_is_in_his_hands(place: PostgresAddress, tmp_path: Path) -> None:
    assert place
    code, told = doctor(tmp_path)
    assert code == 0
    assert told["rights"][0] == "warning"
    assert "ownership of events" in told["rights"][1]


@pytest.mark.parametrize("right", ["UPDATE", "DELETE", "TRUNCATE"])
def test_a_right_to_change_events_is_named(
    postgres: PostgresServer, place: PostgresAddress, gateway: str, tmp_path: Path, right: str
) -> None:
    postgres.query(f"GRANT {right} ON {schema_of(place)}.events TO {gateway}")
    verdict, told = doctor(tmp_path)[1]["rights"]
    assert verdict == "warning"
    assert told.startswith(f"User {gateway} has {right} on events, by which the past could be changed.")


@pytest.mark.parametrize("lacked", ["INSERT on events", "UPDATE on log_head", "DELETE on bodies", "SELECT on events"])
def test_a_right_that_is_missing_is_named(
    postgres: PostgresServer, place: PostgresAddress, gateway: str, tmp_path: Path, lacked: str
) -> None:
    right, _, table = lacked.partition(" on ")
    postgres.query(f"REVOKE {right} ON {schema_of(place)}.{table} FROM {gateway}")
    code, told = doctor(tmp_path)
    assert code == 1
    assert told["rights"][0] == "bad"
    assert f"lacks {lacked}:" in told["rights"][1]


def test_events_that_can_be_changed_are_bad(postgres: PostgresServer, place: PostgresAddress, tmp_path: Path) -> None:
    postgres.query(f"ALTER TABLE {schema_of(place)}.events DISABLE TRIGGER events_refuse_change")
    code, told = doctor(tmp_path)
    assert code == 1
    assert told["tables"][0] == "bad"
    assert "the trigger that refuses to change or remove events is off or gone" in told["tables"][1]


def test_a_place_without_a_log_says_how_to_make_one(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.new_schema()
    monkeypatch.setenv("CODESPACE_STORE", address.url)
    code, told = doctor(tmp_path)
    assert code == 1
    assert told["tables"][0] == told["event log"][0] == "bad"
    assert "codespace-es store init" in told["tables"][1]
    make_log(address)
    assert doctor(tmp_path)[0] == 0
    postgres.query(f"UPDATE {schema_of(address)}.log_format SET format = 99")
    assert "format 99" in doctor(tmp_path)[1]["postgresql"][1]
    monkeypatch.setenv("CODESPACE_STORE", postgres.address("nowhere").url)
    assert "CREATE SCHEMA" in doctor(tmp_path)[1]["tables"][1]


def test_a_server_that_is_away_is_bad_and_the_rest_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODESPACE_STORE", "postgresql://me:s3cret@127.0.0.1:1/log")
    code, told = doctor(tmp_path)
    assert code == 1
    assert told["postgresql"][0] == "bad"
    assert "can't be opened" in told["postgresql"][1]
    assert told["python"][0] == "ok"
    assert "s3cret" not in str(told)


@pytest.mark.parametrize(("facts", "told"), [
    ({"is_supported": False}, "12.1 is too old: 13 or newer is needed."),
    ({"is_standby": True}, "12.1, a standby, which can't be written"),
])
def test_an_old_server_and_a_standby_are_bad(facts: dict[str, bool], told: str) -> None:
    usual = Server("12.1", is_supported=True, is_fsync_on=True, is_full_page_writes_on=True, synchronous_commit="on",
                   is_standby=False, user="me", schema="public", tables=None)
    check = checks_postgres._version(replace(usual, **facts))  # type: ignore[arg-type]  # flags only
    assert check.verdict == "bad"
    assert check.told.startswith(told)
