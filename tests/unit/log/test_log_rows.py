"""The form in which events are stored."""

from datetime import UTC, datetime
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.log.rows import Decoder, StoredRow, encode_envelope, encode_event
from codespace_es.ports.log import Catalogue, StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.event import Caller, Event
from codespace_es.vocabulary.identifiers import AppendId, RequestId, StreamId
from unit.log.sample_events import CATALOGUE, ME, OperationMinted

AT = datetime(2026, 1, 2, 3, 4, 5, 6_789, UTC)
APPEND_ID = AppendId("apd-1")
ENVELOPE = encode_envelope(Caller("mcp", RequestId("req-1")), recorded_at=AT, instance_id=ME, append_id=APPEND_ID)


def row(event: bytes, topic: str = "operation.minted.v1") -> StoredRow:
    return (9, "op-1", 3, topic, ENVELOPE + event)


def test_a_state_is_two_lines_of_json_without_nulls() -> None:
    assert (b'{"recorded_at":"2026-01-02T03:04:05.006Z","instance_id":"' + ME.encode()
                        + b'","append_id":"apd-1","request_id":"req-1","channel":"mcp"}\n') == ENVELOPE
    assert encode_event(OperationMinted(text="a\nb")) == (
        b'{"workspace_key":"wsp-00000000-0000-5000-8000-000000000001","text":"a\\nb"}')


@given(text=st.text(), note=st.none() | st.text(), client=st.none() | st.text())
def test_any_text_comes_back(text: str, note: str | None, client: str | None) -> None:
    event = OperationMinted(text=text, note=note)
    envelope = encode_envelope(Caller("web", RequestId("req-1"), client), recorded_at=AT, instance_id=ME,
                               append_id=APPEND_ID)
    (recorded,) = Decoder(CATALOGUE).decode([(1, "op-1", 1, event.TOPIC, envelope + encode_event(event))])
    assert recorded.event == event
    assert recorded.envelope.client == client
    assert recorded.envelope.recorded_at == AT.replace(microsecond=6_000)
    assert recorded.stream_id == StreamId("op-1")


def test_a_topic_outside_the_catalogue_is_never_looked_up_elsewhere() -> None:
    with pytest.raises(UnknownTopicError, match="position 9"):
        list(Decoder(CATALOGUE).decode([row(b"{}", "os:system")]))


@pytest.mark.parametrize("event", [b"", b"{", b"null", b'{"text":1}', b'{"surplus":1}'])
def test_a_state_that_is_no_such_event_is_damage(event: bytes) -> None:
    with pytest.raises(StoreUnavailableError, match="position 9"):
        list(Decoder(CATALOGUE).decode([row(event)]))


class Renamed(Event):
    TOPIC: ClassVar[str] = "thing.renamed.v3"

    new_name: str


class NameChanged(Event):
    TOPIC: ClassVar[str] = "thing.renamed.v2"

    name: str

    def upcast(self) -> Event:
        return Renamed(new_name=self.name)


class NamesChanged(Event):
    TOPIC: ClassVar[str] = "thing.renamed.v1"

    names: tuple[str, ...]

    def upcast(self) -> Event:
        return NameChanged(name=self.names[-1])


OLD_AND_NEW: Catalogue = {kind.TOPIC: kind for kind in (Renamed, NameChanged, NamesChanged)}


def test_an_event_of_an_old_topic_is_read_as_the_newest_that_it_means() -> None:
    rows = [
        row(b'{"names":["a","b"]}', "thing.renamed.v1"), row(b'{"name":"c"}', "thing.renamed.v2"),
        row(b'{"new_name":"d"}', "thing.renamed.v3"), row(b'{"names":["e"]}', "thing.renamed.v1"),
    ]
    assert [each.event for each in Decoder(OLD_AND_NEW).decode(rows)] == [
        Renamed(new_name=name) for name in ("b", "c", "d", "e")
    ]


def test_an_old_event_that_can_not_be_read_as_a_new_one_is_damage() -> None:
    with pytest.raises(StoreUnavailableError, match="position 9"):
        list(Decoder(OLD_AND_NEW).decode([row(b'{"names":[]}', "thing.renamed.v1")]))
