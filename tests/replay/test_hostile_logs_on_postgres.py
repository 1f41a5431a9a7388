"""A hostile log in PostgreSQL: each command of the audit has the answer that it has about the same log in a file."""

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tampering import Tamperer
from test_hostile_logs import COMMANDS, REPLACEMENTS, with_another_value

from adapters.cli.main import run
from adapters.log.copying import copy_log
from adapters.log.places import LogPlace, open_database
from adapters.log.postgres.making import make_log
from adapters.log.reader import LogReader
from adapters.log.submission import NewRow
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.event_catalogue import CATALOGUE
from replay.verify import verify
from support.effort import examples
from support.postgres import PostgresServer


def last_words(path: Path) -> list[NewRow]:
    """Return the event that ends a copy: one more server starts."""
    with LogReader(path, CATALOGUE) as reader:
        state = next(row[4] for row in reader.raw_rows() if row[3] == (topic := "instance.started.v1"))
    return [NewRow("inst-last", b"inst-last", 1, topic, topic.encode(), state)]


def told(place: LogPlace, directory: Path) -> dict[tuple[str, ...], object]:
    """Return exit code, output and errors of each command, and what `verify` finds."""
    answers: dict[tuple[str, ...], object] = {}
    with pytest.MonkeyPatch.context() as environment:
        if isinstance(place, Path):
            environment.delenv("CODESPACE_STORE", raising=False)
        else:
            environment.setenv("CODESPACE_STORE", place.url)
        for command in COMMANDS[1:]:
            output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
            errors = io.StringIO()
            with redirect_stdout(output), redirect_stderr(errors):
                code = run([*command, "--data-dir", str(directory)])
            output.flush()
            answers[tuple(command)] = code, output.buffer.getvalue(), errors.getvalue()  # type: ignore[attr-defined]  # BytesIO
    with LogReader(place, CATALOGUE) as reader:
        answers["verify",] = verify(reader).findings
    return answers


def compare_both(source: Path, tables: PostgresAddress) -> None:
    """Copy what stands in `source` to both stores, and have both asked everything."""
    file, last = source.with_name("codespace.db"), last_words(source)
    make_log(tables)
    with LogReader(source, CATALOGUE) as reader:
        for place in (file, tables):
            database = open_database(place, lock_timeout_seconds=5)
            copy_log(reader, database, last)
            database.close()
    answers = told(file, source.parent)
    for command, answer in told(tables, source.parent).items():
        assert answer == answers[command], command


@settings(max_examples=examples(4))
@given(change=st.tuples(st.integers(1, 30), st.floats(0, 1, exclude_max=True), REPLACEMENTS))
def test_any_value_of_any_event_however_well_it_is_hidden(
    written_life, tmp_path_factory, postgres: PostgresServer, change
):
    position, where, replacement = change
    source = tmp_path_factory.mktemp("values") / "source.db"
    source.write_bytes(written_life.path.read_bytes())
    with Tamperer(source) as tamperer:
        tamperer.change_state(position, lambda state: with_another_value(state, where, replacement))
        tamperer.hide()
    compare_both(source, postgres.new_schema())


@pytest.mark.parametrize(("field", "name"), [
    ("holder_id", r"op-\\u0000"), ("holder_id", ""), ("reverts", r"op-\\u0000"), ("workspace_key", r"\\u0000"),
])
def test_a_name_that_leads_nowhere(life, postgres: PostgresServer, field: str, name: str):
    pattern = re.compile(rf'"{field}":"[^"]*"'.encode())
    replacement = f'"{field}":"{name}"'.encode()
    with Tamperer(life.path) as tamperer:
        for position in range(1, 31):
            tamperer.change_state(position, lambda state: pattern.sub(replacement, state))
        tamperer.hide()
    compare_both(life.path, postgres.new_schema())
