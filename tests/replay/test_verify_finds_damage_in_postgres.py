"""`verify` on PostgreSQL finds what a superuser has done to the tables while no trigger fired, and says where."""

from collections.abc import Iterator

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_log import write_a_life

from adapters.log.chain import GENESIS, link
from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.finding import Law
from replay.verify import Anchor, VerifyReport, verify
from support.effort import examples
from support.postgres import PostgresServer, schema_of

HEAD = 30
TABLES = ("events", "bodies", "open_items", "log_head")


class Tables:
    """A log of 30 events whose tables can be damaged, and are whole again afterwards."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.place = server.new_log()
        anyio.run(write_a_life, self.place)
        self.execute("CREATE SCHEMA {0}_kept", *(f"CREATE TABLE {{0}}_kept.{name} AS TABLE {name}" for name in TABLES))
        whole = self.verified()
        assert whole.is_ok
        self.head = Anchor(whole.head_position, whole.head_hash)

    def execute(self, *statements: str) -> None:
        """Run statements as a superuser for whom no trigger fires; `{0}` is the schema."""
        schema = schema_of(self.place)
        told = "; ".join(statement.format(schema) for statement in statements)
        self._server.query(f"SET session_replication_role = replica; SET search_path = {schema}; {told}")

    def verified(self, anchor: Anchor | None = None) -> VerifyReport:
        with LogReader(self.place, CATALOGUE) as reader:
            return verify(reader, anchor=anchor)

    def found(self, *statements: str, is_hidden: bool = False, anchor: Anchor | None = None) -> dict[Law, int]:
        """Return the laws that are broken after these statements, and where; make everything whole again."""
        try:
            self.execute(*statements)
            if is_hidden:
                self.execute(*self._written_anew())
            return {finding.law: finding.position for finding in self.verified(anchor).findings}
        finally:
            self.execute(*(f"DELETE FROM {name}" for name in TABLES), *(
                f"INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * FROM {{0}}_kept.{name}" for name in TABLES))

    def _written_anew(self) -> Iterator[str]:
        """Yield what gives every event a position and a hash that fit, and the head on record too."""
        previous, number = GENESIS, 0
        with LogReader(self.place, CATALOGUE) as reader:
            for number, (position, stream, version, topic, state, _) in enumerate(reader.raw_rows(), start=1):
                previous = link(previous, number, stream.encode(), version, topic.encode(), state)
                yield f"UPDATE events SET position = {number}, hash = '\\x{previous.hex()}' WHERE position = {position}"
        yield f"UPDATE log_head SET position = {number}, hash = '\\x{previous.hex()}'"


@pytest.fixture(scope="module")
def tables(postgres: PostgresServer) -> Tables:
    return Tables(postgres)


CHANGES = {
    "state": "set_byte(state, {byte} % length(state), get_byte(state, {byte} % length(state)) # {mask})",
    "hash": "set_byte(hash, {byte} % 32, get_byte(hash, {byte} % 32) # {mask})",
    "stream_id": "stream_id || '{mask}'",
    "topic": "topic || '{mask}'",
    "version": "version + {mask} * 100",
}


@settings(max_examples=examples(12))
@given(position=st.integers(1, HEAD), column=st.sampled_from(sorted(CHANGES)), byte=st.integers(0, 10**6),
       mask=st.integers(1, 255))
def test_whatever_is_changed_in_a_row_the_chain_names_its_position(tables: Tables, position, column, byte, mask):
    change = CHANGES[column].format(byte=byte, mask=mask)
    found = tables.found(f"UPDATE events SET {column} = {change} WHERE position = {position}")
    assert found[Law.CHAIN] == position


@settings(max_examples=examples(4))
@given(first=st.integers(1, HEAD - 2), length=st.integers(1, HEAD))
def test_whatever_is_dropped_before_the_end_is_missed_at_its_position(tables: Tables, first, length):
    last = min(first + length, HEAD) - 1
    found = tables.found(f"DELETE FROM events WHERE position BETWEEN {first} AND {last}")
    assert found[Law.POSITIONS] == first


@settings(max_examples=examples(4))
@given(places=st.lists(st.integers(1, HEAD), min_size=2, max_size=2, unique=True))
def test_swapped_events_break_the_chain_at_the_first(tables: Tables, places):
    first, second = sorted(places)
    found = tables.found(
        f"UPDATE events SET position = -1 WHERE position = {first}",
        f"UPDATE events SET position = {first} WHERE position = {second}",
        f"UPDATE events SET position = {second} WHERE position = -1")
    assert found[Law.CHAIN] == first


@settings(max_examples=examples(4))
@given(last=st.integers(0, HEAD - 1))
def test_a_cut_off_end_is_seen_by_the_head_on_record_and_by_an_earlier_one(tables: Tables, last):
    cut = f"DELETE FROM events WHERE position > {last}"
    assert tables.found(cut)[Law.FILE] == 0
    hidden = tables.found(cut, is_hidden=True, anchor=tables.head)
    assert Law.FILE not in hidden
    assert hidden[Law.POSITIONS] == last + 1


def test_a_log_written_anew_is_told_by_an_earlier_head(tables: Tables):
    read, found = "'\"tool\":\"read\"'", "'\"tool\":\"find\"'"
    change = ("UPDATE events SET state = convert_to(replace(convert_from(state, 'UTF8'), "
              f"{read}, {found}), 'UTF8') WHERE position = 15")
    assert tables.found(change) == {Law.CHAIN: 15}
    assert tables.found(change, is_hidden=True) == {}
    assert tables.found(change, is_hidden=True, anchor=tables.head) == {Law.CHAIN: HEAD}


def test_contents_and_the_list_of_what_is_open_are_looked_at_too(tables: Tables):
    assert Law.BODIES in tables.found("DELETE FROM bodies WHERE rowid = (SELECT min(rowid) FROM bodies)")
    assert Law.BODIES in tables.found(
        "UPDATE bodies SET content = content || '\\x00' WHERE rowid = (SELECT min(rowid) FROM bodies)")
    assert Law.OPEN_INDEX in tables.found("DELETE FROM open_items")
    assert Law.OPEN_INDEX in tables.found("UPDATE open_items SET instance_id = 'inst-x'")
    assert tables.found() == {}
    assert tables.verified(tables.head).is_ok
