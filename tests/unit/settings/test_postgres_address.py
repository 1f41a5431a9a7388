"""A PostgreSQL's address: shown without its password, refused where half of one may stand in the wrong place."""

import pytest

from adapters.settings.postgres_address import PostgresAddress, is_postgres, postgres_address
from adapters.settings.problem import StartupError


@pytest.mark.parametrize(("url", "shown"), [
    ("postgresql://me:s3cret@db:5432/log", "postgresql://me@db:5432/log"),
    ("postgres://me:s3cret@a:1,b:2/log?target_session_attrs=primary",
     "postgresql://me@a:1,b:2/log?target_session_attrs=primary"),
    ("postgresql://me:s3%40cret@db/log", "postgresql://me@db/log"),
    ("postgresql://me:s3cret@@db/log", "postgresql://me@db/log"),
    ("postgresql://db/log?user=me&password=s3cret&sslmode=require", "postgresql://db/log?user=me&sslmode=require"),
    ("postgresql:///log?host=/run/postgresql", "postgresql:///log?host=/run/postgresql"),
])
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    address = postgres_address(url, origin="store")
    assert str(address) == shown
    assert "cret" not in repr(address)
    assert "cret" not in address.without_secrets(f"no such thing: {url}")


@pytest.mark.parametrize("url", [
    "postgresql://me:s3/cret@db/log", "postgresql://me:s3?cret@db/log", "postgresql://me:s3#cret@db/log",
    "postgresql://me:s3cret@db:port/log", "postgresql://[me:s3cret@db/log",
])
def test_what_may_hold_half_a_password_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(StartupError, match="CODESPACE_STORE must be like") as caught:
        postgres_address(url, origin="CODESPACE_STORE")
    assert "cret" not in str(caught.value)
    assert "s3" not in str(caught.value)


def test_other_stores_are_none_of_it() -> None:
    assert not is_postgres("sqlite")
    assert not is_postgres("postgresql:log")
    assert is_postgres("postgres://db")
    assert PostgresAddress("postgres://db").url == "postgres://db"
