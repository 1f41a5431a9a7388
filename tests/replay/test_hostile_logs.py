"""Whatever a log file holds, each command of the audit ends with an answer, and changes nothing anywhere."""

import contextlib
import io
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tampering import Tamperer

from adapters.cli.main import run
from adapters.log.sqlite.connecting import driver

COMMANDS = [
    ["verify"], ["log"], ["show", "key-2"], ["replay"], ["replay", "--all"], ["replay", "--step", "--at", "9"],
    ["replay", "store"], ["diff", "0.."], ["files"], ["compare"], ["export", "--bodies"],
    ["export", "--format", "cloudevents", "--bodies"], ["prune", "--older-than", "0m"],
]
REPLACEMENTS = st.sampled_from([
    b"null", b"1", b"-1", b'""', b"[]", b"{}", b'"sha256:x"', b'"' + b"9" * 70 + b'"', b'"../../x"', b'"\\u0000"',
    b"1e999", b'"\\ud800"', b"99999999999999999999",
])


def call(directory: Path, arguments: list[str]) -> int:
    """Run one command on the log in `directory`; what it raises is a failure of the test."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        return run([*arguments, "--data-dir", str(directory)])


def digests(directory: Path) -> dict[str, str]:
    # A reader may make the side files of SQLite; what they say is nothing that was written.
    return {
        name: sha256((directory / name).read_bytes()).hexdigest() for name in sorted(os.listdir(directory))
        if not name.endswith(("-shm", "-wal"))
    }


def audit(directory: Path) -> None:
    before = digests(directory)
    for number, command in enumerate([*COMMANDS, ["files", "--restore", str(directory / "out")],
                                      ["report", "--output", str(directory / "report.html")]]):
        assert call(directory, command) in (0, 1, 2), (number, command)
    written = {name: digest for name, digest in digests(directory).items() if name in before}
    assert written == before
    assert set(os.listdir(directory.parent)) == {directory.name}


def with_another_value(state: bytes, place: float, replacement: bytes) -> bytes:
    """Return an event with one value replaced, `place` (0 to 1) of the way through it."""
    starts = [index for index in range(len(state)) if state[index : index + 1] == b":"]
    start = starts[int(place * len(starts))] + 1
    end = min(index for index in (state.find(b",", start), state.find(b"}", start), len(state)) if index > 0)
    return state[:start] + replacement + state[end:]


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=30))
def test_any_bytes_of_the_file(written_life, tmp_path_factory, changes):
    directory = tmp_path_factory.mktemp("bytes") / "log"
    directory.mkdir()
    content = bytearray(written_life.path.read_bytes())
    for place, value in changes:
        content[int(place * len(content))] = value
    (directory / "codespace.db").write_bytes(content)
    audit(directory)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 30), st.floats(0, 1, exclude_max=True), REPLACEMENTS)
def test_any_value_of_any_event_however_well_it_is_hidden(written_life, tmp_path_factory, position, place, replacement):
    directory = tmp_path_factory.mktemp("values") / "log"
    directory.mkdir()
    path = directory / "codespace.db"
    path.write_bytes(written_life.path.read_bytes())

    with Tamperer(path) as tamperer:
        tamperer.change_state(position, lambda state: with_another_value(state, place, replacement))
        tamperer.hide()
    audit(directory)


@pytest.mark.parametrize("statement", [
    "UPDATE events SET stream_id = 'op-../../x' WHERE position = 8",
    "UPDATE events SET stream_id = x'ff00' WHERE position = 8",
    "UPDATE events SET topic = x'ff' WHERE position = 8",
    "UPDATE events SET version = 'many' WHERE position = 8",
    "UPDATE events SET version = 9223372036854775807 WHERE position = 8",
    "UPDATE events SET position = -5 WHERE position = 8",
    "UPDATE events SET position = 9223372036854775807 WHERE position = 30",
    "UPDATE events SET state = zeroblob(100000) WHERE position = 8",
    "UPDATE bodies SET content = 'text', size_bytes = 'x', stored_at_ms = 'y', kind = x'00'",
    "UPDATE bodies SET digest = x'00' WHERE rowid = 1",
    "UPDATE bodies SET digest = 'text' WHERE rowid = 1",
    "UPDATE bodies SET stream_id = x'ff' WHERE rowid = 1",
    "DELETE FROM bodies",
    "DELETE FROM events",
    "DROP TABLE bodies",
    "DROP TABLE open_items",
    "DROP TABLE events",
    "UPDATE open_items SET position = 'x', instance_id = x'ff'",
    "PRAGMA user_version = 99",
])
def test_any_other_shape_of_the_tables(written_life, tmp_path, statement):
    directory = tmp_path / "log"
    directory.mkdir()
    path = directory / "codespace.db"
    path.write_bytes(written_life.path.read_bytes())
    with Tamperer(path) as tamperer:
        tamperer.execute(statement)
    audit(directory)


def test_a_view_in_the_place_of_a_table_runs_nothing(written_life, tmp_path):
    directory = tmp_path / "log"
    directory.mkdir()
    path = directory / "codespace.db"
    path.write_bytes(written_life.path.read_bytes())
    connection = driver.connect(path, isolation_level=None)
    connection.execute("DROP VIEW stored_events")
    connection.execute("ALTER TABLE events RENAME TO real_events")
    connection.execute("CREATE VIEW events AS SELECT position, stream_id, version, topic, "
                       "writefile('never', state) AS state, hash FROM real_events")
    connection.close()
    audit(directory)
