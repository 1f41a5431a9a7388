"""What PostgreSQL refuses, as it is told to callers: one line, without the password."""

import pytest

from adapters.log.postgres.connecting import translate
from adapters.settings.postgres_address import PostgresAddress

ADDRESS = PostgresAddress("postgresql://me:two%20%20words@db.example.org/log")


@pytest.mark.parametrize(("said", "told"), [
    ("could not extend file: No space left on device\nHINT:  Check free disk space.",
     "could not extend file: No space left on device HINT: Check free disk space."),
    ("no entry for me, two  words\nDETAIL:  two%20%20words", "no entry for me, *** DETAIL: ***"),
    ("", "RuntimeError"),
])
def test_what_is_told_is_one_line_without_the_password(said: str, told: str) -> None:
    assert str(translate(RuntimeError(said), ADDRESS)) == told
