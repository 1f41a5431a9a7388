"""The form in which events are stored."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.log.rows import Decoder, StoredRow, encode_envelope, encode_event
from codespace_es.ports.log import StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.event import Caller
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
