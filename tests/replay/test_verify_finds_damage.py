"""`verify` finds each kind of damage that was planted, and names the position where it stands."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tampering import Tamperer

from adapters.log.reader import LogReader
from adapters.log.sqlite.connecting import driver
from codespace_es.aggregates.operation import OperationFinished
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import NewBody
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import StreamId
from codespace_es.vocabulary.limits import LARGE_BODY_BYTES
from replay.finding import MEANINGS, Law
from replay.verify import Anchor, VerifyReport, verify


def read(path: Path, **options) -> VerifyReport:
    with LogReader(path, CATALOGUE) as reader:
        return verify(reader, **options)


def places(report: VerifyReport) -> dict[Law, int]:
    assert report.is_ok == (not report.findings)
    return {finding.law: finding.position for finding in report.findings}


def test_a_changed_event_breaks_the_chain_where_it_stands(life):
    with Tamperer(life.path) as tamperer:
        tamperer.change_state(15, lambda state: state.replace(b'"tool":"read"', b'"tool":"find"'))
    report = read(life.path)
    assert places(report) == {Law.CHAIN: 15}
    finding = report.findings[0]
    assert (finding.count, finding.meaning) == (1, MEANINGS[Law.CHAIN])
    assert "instance.call_refused.v1" in finding.problem


@settings(max_examples=60)
@given(position=st.integers(1, 30), place=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_whichever_byte_is_changed_the_chain_names_its_position(written_life, tmp_path_factory, position, place, mask):
    path = tmp_path_factory.mktemp("changed") / "log.db"
    path.write_bytes(written_life.path.read_bytes())

    def change(state: bytes) -> bytes:
        index = int(place * len(state))
        return state[:index] + bytes([state[index] ^ mask]) + state[index + 1:]

    with Tamperer(path) as tamperer:
        tamperer.change_state(position, change)
    assert places(read(path))[Law.CHAIN] == position


@settings(max_examples=30)
@given(first=st.integers(1, 28), length=st.integers(1, 29))
def test_whatever_is_dropped_before_the_end_is_missed_at_its_position(written_life, tmp_path_factory, first, length):
    path = tmp_path_factory.mktemp("dropped") / "log.db"
    path.write_bytes(written_life.path.read_bytes())
    with Tamperer(path) as tamperer:
        for position in range(first, min(first + length, 30)):
            tamperer.drop(position)
    assert places(read(path))[Law.POSITIONS] == first


def test_a_dropped_event_leaves_its_stream_with_a_gap(life):
    with Tamperer(life.path) as tamperer:
        tamperer.drop(15)
    assert places(read(life.path)) == {Law.POSITIONS: 15, Law.VERSIONS: 23}


def test_an_event_taken_out_and_hidden_leaves_its_stream_with_a_gap(life):
    with Tamperer(life.path) as tamperer:
        tamperer.drop(15)
        tamperer.hide()
    # Every later position has moved too, which the open index still remembers as it was.
    assert places(read(life.path)) == {Law.VERSIONS: 22, Law.OPEN_INDEX: 27}


def test_swapped_events_break_the_chain_at_the_first(life):
    with Tamperer(life.path) as tamperer:
        tamperer.swap(12, 15)
    assert places(read(life.path))[Law.CHAIN] == 12


def test_a_cut_off_end_is_seen_by_the_open_index_and_by_an_earlier_head(life):
    head = read(life.path)
    with Tamperer(life.path) as tamperer:
        tamperer.drop(30)
    assert places(read(life.path)) == {Law.CLAIM: 29, Law.BODIES: 29, Law.OPEN_INDEX: 30}
    cut = read(life.path, anchor=Anchor(head.head_position, head.head_hash))
    assert places(cut) == {Law.CLAIM: 29, Law.BODIES: 29, Law.POSITIONS: 30, Law.OPEN_INDEX: 30}


def test_a_log_written_anew_is_told_by_an_earlier_head(life):
    head = read(life.path)
    with Tamperer(life.path) as tamperer:
        tamperer.change_state(15, lambda state: state.replace(b'"tool":"read"', b'"tool":"find"'))
        tamperer.hide()
    assert read(life.path).is_ok
    assert places(read(life.path, anchor=Anchor(head.head_position, head.head_hash))) == {Law.CHAIN: 30}


def test_an_event_that_is_no_event_is_named_and_stepped_over(life):
    with Tamperer(life.path) as tamperer:
        tamperer.change_state(9, lambda state: state[:-1])
        tamperer.hide()
    assert places(read(life.path)) == {Law.EVENTS: 9}


def test_an_envelope_that_is_none_is_named_and_stepped_over(life):
    with Tamperer(life.path) as tamperer:
        tamperer.change_state(15, lambda state: state.replace(b'"channel":"mcp"', b'"channel":"fax"'))
        tamperer.hide()
    assert places(read(life.path)) == {Law.EVENTS: 15}


@pytest.mark.parametrize("state", ["text", None, b"", 7])
def test_a_row_that_holds_something_else_than_bytes_is_named(life, state):
    with Tamperer(life.path) as tamperer:
        tamperer.execute("PRAGMA writable_schema = ON")
        tamperer.execute("UPDATE sqlite_schema SET sql = replace(sql, 'state BLOB NOT NULL', 'state BLOB') "
                         "WHERE name = 'events'")
    with Tamperer(life.path) as tamperer:
        tamperer.execute("UPDATE events SET state = ? WHERE position = 15", state)
    found = places(read(life.path))
    assert (found[Law.CHAIN], found[Law.EVENTS]) == (15, 15)


@pytest.mark.parametrize("stored", ["text", None, b"", 7])
def test_a_hash_that_is_none_is_named(life, stored):
    with Tamperer(life.path) as tamperer:
        tamperer.execute("PRAGMA writable_schema = ON")
        tamperer.execute("UPDATE sqlite_schema SET sql = replace(sql, 'hash BLOB NOT NULL', 'hash BLOB') "
                         "WHERE name = 'events'")
    with Tamperer(life.path) as tamperer:
        tamperer.execute("UPDATE events SET hash = ? WHERE position >= 29", stored)
    report = read(life.path, anchor=Anchor(29, "00" * 32))
    assert places(report) == {Law.FILE: 0, Law.CHAIN: 29}
    assert report.findings[1].count >= 2


def test_contents_stored_in_any_order_are_found(life):
    whole = read(life.path)
    with Tamperer(life.path) as tamperer:
        rows = tamperer.execute("SELECT stream_id, digest, kind, size_bytes, stored_at_ms, content FROM bodies")
        tamperer.execute("BEGIN")
        tamperer.execute("DELETE FROM bodies")
        for number in range(3_000):
            tamperer.execute("INSERT INTO bodies VALUES ('op-never', ?, 'image', 1, 1, X'00')", b"%032d" % number)
        for row in reversed(rows):
            tamperer.execute("INSERT INTO bodies VALUES (?, ?, ?, ?, ?, ?)", *row)
        tamperer.execute("COMMIT")
    report = read(life.path)
    assert (report.bodies, report.body_bytes) == (whole.bodies, whole.body_bytes)
    assert [(finding.law, finding.position, finding.count) for finding in report.findings] == [(Law.BODIES, 30, 3_000)]
    assert "no event names it" in report.findings[0].problem


def test_a_large_content_that_a_crash_left_alone_is_no_damage(life):
    with Tamperer(life.path) as tamperer:
        tamperer.add_body(NewBody(StreamId("op-never"), "image", b"x" * (LARGE_BODY_BYTES + 1)))
    assert read(life.path).is_ok


@pytest.mark.parametrize("order", ["rowid", "-rowid"])
@pytest.mark.parametrize(("column", "value"), [("kind", "arguments"), ("size_bytes", 7), ("stored_at_ms", 7)])
def test_a_content_with_another_label_is_found(written_life, tmp_path, order, column, value):
    with LogReader(written_life.path, CATALOGUE) as reader:
        rows = list(reader.stored_contents())
    for number, (stream_id, digest, *_) in enumerate(rows):
        path = tmp_path / f"{number}.db"
        path.write_bytes(written_life.path.read_bytes())
        with Tamperer(path) as tamperer:
            tamperer.execute("CREATE TEMP TABLE kept AS SELECT * FROM bodies")
            tamperer.execute("DELETE FROM bodies")
            tamperer.execute(f"INSERT INTO bodies SELECT * FROM kept ORDER BY {order}")
            tamperer.execute(
                f"UPDATE bodies SET {column} = ? WHERE stream_id = ? AND digest = ?", value, stream_id, digest)
        report = read(path)
        assert set(places(report)) == {Law.BODIES}, (stream_id, digest)
        assert report.findings[0].count == 1


def test_an_unknown_topic_is_named_and_its_stream_left_alone(life):
    with Tamperer(life.path) as tamperer:
        tamperer.execute("UPDATE events SET topic = 'operation.begun.v9' WHERE position = 30")
        tamperer.hide()
    assert places(read(life.path)) == {Law.TOPICS: 30}


def test_a_second_end_of_an_operation_cannot_follow(life):
    operation = life.operations["deleted"]
    with Tamperer(life.path) as tamperer:
        body = NewBody(StreamId(operation), "result", b'{"changes":[]}')
        tamperer.add_body(body)
        position = tamperer.append(operation, 3, OperationFinished(status="applied", result=body.body), like=30)
    assert places(read(life.path)) == {Law.FOLDS: position}


def test_an_event_in_a_stream_of_another_kind_cannot_follow(life):
    with Tamperer(life.path) as tamperer:
        position = tamperer.append("store", 3, OperationFinished(status="applied"), like=30)
    assert places(read(life.path)) == {Law.FOLDS: position}


def test_a_stream_that_is_named_like_no_kind_cannot_be_folded(life):
    with Tamperer(life.path) as tamperer:
        position = tamperer.append("bucket-1", 1, OperationFinished(status="applied"), like=30)
    assert places(read(life.path)) == {Law.FOLDS: position}


def test_a_removed_content_is_missed_where_it_was_named(life):
    operation = life.operations["updated"]
    with Tamperer(life.path) as tamperer:
        tamperer.drop_body(operation, digest_of(b"two\n"))
    assert places(read(life.path)) == {Law.BODIES: 8}


def test_a_changed_content_is_found_where_it_was_named(life):
    operation = life.operations["updated"]
    with Tamperer(life.path) as tamperer:
        tamperer.change_body(operation, digest_of(b"two\n"), b"six\n")
    assert places(read(life.path)) == {Law.BODIES: 8}


def test_an_open_item_missing_from_the_index_is_found_at_its_opening(life):
    with Tamperer(life.path) as tamperer:
        tamperer.execute("DELETE FROM open_items WHERE kind = 'operation'")
    assert places(read(life.path)) == {Law.OPEN_INDEX: 30}


def test_an_item_too_many_in_the_open_index_is_found(life):
    operation = life.operations["updated"]
    with Tamperer(life.path) as tamperer:
        tamperer.execute("INSERT INTO open_items VALUES (?, 'operation', NULL, 'inst-x', 8)", operation)
    report = read(life.path)
    assert places(report) == {Law.OPEN_INDEX: 8}
    assert operation in report.findings[0].problem


@pytest.mark.parametrize("column", ["workspace_key", "instance_id"])
def test_an_open_item_with_other_particulars_is_found(life, column):
    with Tamperer(life.path) as tamperer:
        tamperer.execute(f"UPDATE open_items SET {column} = 'other' WHERE kind = 'operation'")
    assert places(read(life.path)) == {Law.OPEN_INDEX: 30}


def test_every_law_has_its_meaning():
    assert set(MEANINGS) == set(Law)


PLANTED = {
    "CREATE TRIGGER more AFTER INSERT ON events BEGIN DELETE FROM bodies; END": "more stands in the file",
    "CREATE TABLE more (x)": "more stands in the file",
    "CREATE VIEW more AS SELECT * FROM bodies": "more stands in the file",
    "DROP VIEW stored_events": "stored_events is missing",
}


@pytest.mark.parametrize("statement", PLANTED)
def test_what_was_planted_in_the_file_or_taken_from_it_is_named(life, statement):
    with Tamperer(life.path) as tamperer:
        tamperer.execute(statement)
    report = read(life.path)
    assert places(report) == {Law.FILE: 0}
    assert PLANTED[statement] in report.findings[0].problem


def test_a_log_that_is_no_longer_append_only_is_named(life):
    connection = driver.connect(life.path, isolation_level=None)
    connection.execute("DROP TRIGGER events_refuse_delete")
    connection.close()
    assert "events_refuse_delete is missing" in read(life.path).findings[0].problem


def test_an_index_that_leads_elsewhere_is_found(life):
    """Streams are read by that index: what it hides would be hidden from every fold."""
    with Tamperer(life.path) as tamperer:
        tamperer.execute("PRAGMA writable_schema = ON")
        kept = tamperer.execute("SELECT sql FROM sqlite_schema WHERE name = 'events'")[0][0]
        tamperer.execute("UPDATE sqlite_schema SET sql = replace(sql, 'UNIQUE (stream_id, version)', "
                         "'UNIQUE (version, stream_id)') WHERE name = 'events'")
    with Tamperer(life.path) as tamperer:
        tamperer.execute("PRAGMA writable_schema = ON")
        tamperer.execute("REINDEX")
        tamperer.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'events'", kept)
    assert places(read(life.path))[Law.FILE] == 0
