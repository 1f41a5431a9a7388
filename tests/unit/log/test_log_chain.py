"""The hash chain: its exact bytes, and that any change of any value shows."""

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.log.chain import GENESIS, RawRow, find_breaks, link


def test_the_hash_covers_the_documented_bytes() -> None:
    written_out = (bytes(32) + (1).to_bytes(8, "big") + (5).to_bytes(4, "big") + b"store"
                   + (8).to_bytes(4, "big") + (1).to_bytes(8, "big")
                   + (16).to_bytes(4, "big") + b"store.created.v1" + (2).to_bytes(4, "big") + b"{}")
    assert link(GENESIS, 1, b"store", 1, b"store.created.v1", b"{}") == hashlib.sha256(written_out).digest()


def chained(events: list[tuple[str, int, str, bytes]]) -> list[RawRow]:
    rows: list[RawRow] = []
    previous = GENESIS
    for position, (stream, version, topic, state) in enumerate(events, 1):
        previous = link(previous, position, stream.encode(), version, topic.encode(), state)
        rows.append((position, stream, version, topic, state, previous))
    return rows


EVENTS = st.lists(st.tuples(st.text(max_size=4), st.integers(0, 9), st.text(max_size=4), st.binary(max_size=4)),
                  min_size=1, max_size=6)


@given(events=EVENTS, choice=st.data())
def test_any_changed_value_breaks_the_chain_at_its_row(
    events: list[tuple[str, int, str, bytes]], choice: st.DataObject
) -> None:
    rows = chained(events)
    assert list(find_breaks(rows)) == []
    index = choice.draw(st.integers(0, len(rows) - 1))
    column = choice.draw(st.integers(1, 5))
    changed: list[Any] = list(rows[index])
    kinds: dict[type, st.SearchStrategy[Any]] = {
        str: st.text(max_size=4), int: st.integers(0, 9), bytes: st.binary(max_size=4)}
    changed[column] = choice.draw(kinds[type(changed[column])].filter(lambda value: value != changed[column]))
    rows[index] = tuple(changed)
    assert next(find_breaks(rows)).position == index + 1


@given(events=EVENTS.filter(lambda events: len(events) > 1), choice=st.data())
def test_a_dropped_row_is_named(events: list[tuple[str, int, str, bytes]], choice: st.DataObject) -> None:
    rows = chained(events)
    index = choice.draw(st.integers(0, len(rows) - 2))
    del rows[index]
    assert next(find_breaks(rows)).position == index + 1


def test_a_value_of_another_kind_is_a_break_and_no_error() -> None:
    rows: list[Any] = [(1, None, 1, "topic", b"", b""), (2, "s", -1, "topic", b"", None)]
    assert [broken.position for broken in find_breaks(rows)] == [1, 2]
