"""Events: frozen facts under stable topics, strict about what they hold, and the same again after JSON."""

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Body, Channel, Envelope, Event, Fault, RecordedEvent
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import StreamId

TOPIC = re.compile(r"(store|instance|workspace|claim|operation|approval|process|pending|steering)\.[a-z_]+\.v[1-9]\d*")
ENVELOPE = (
    b'{"recorded_at":"2026-01-02T03:04:05.678Z","instance_id":"inst-1","append_id":"apd-1","request_id":"req-1",'
    b'"channel":"mcp"}'
)


@pytest.mark.parametrize("topic", CATALOGUE)
def test_a_topic_is_its_classs_own_and_has_the_form_of_one(topic):
    kind = CATALOGUE[topic]
    assert topic == kind.TOPIC
    assert TOPIC.fullmatch(topic)


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=lambda kind: kind.__name__)
def test_a_class_is_named_after_its_topic(kind):
    stream, what, version = kind.TOPIC.split(".")
    words = what if stream == "steering" else f"{stream}_{what}"  # steering names its own nouns: work and intent
    name = "".join(word.capitalize() for word in words.split("_"))
    assert kind.__name__ == (name if version == "v1" else name + version.upper())


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=lambda kind: kind.__name__)
def test_every_event_is_frozen_takes_nothing_unknown_and_describes_each_field(kind):
    kind.model_rebuild()
    assert kind.__doc__
    assert kind.model_config["frozen"]
    assert kind.model_config["extra"] == "forbid"
    for name, field in kind.model_fields.items():
        assert field.description, f"{kind.__name__}.{name} needs Field(description=...)"


def test_every_event_class_that_is_written_is_in_the_catalogue():
    def below(kind: type[Event]) -> set[type[Event]]:
        return {kind, *(each for child in kind.__subclasses__() for each in below(child))}

    ours = {kind for kind in below(Event) - {Event} if kind.__module__.startswith("codespace_es.")}
    assert ours == set(CATALOGUE.values()), "name its module in event_catalogue.py"


def test_an_event_refuses_an_unknown_field():
    with pytest.raises(ValidationError):
        CATALOGUE["instance.stopped.v1"].model_validate_json('{"reason":"eof","more":1}')


def test_an_event_cannot_be_changed():
    event = CATALOGUE["instance.stopped.v1"].model_validate_json('{"reason":"eof"}')
    with pytest.raises(ValidationError):
        event.reason = "done"


@given(st.binary(max_size=50))
def test_a_body_names_its_bytes_by_digest_and_size(content):
    body = Body(digest=digest_of(content), size_bytes=len(content))
    assert Body.model_validate_json(body.model_dump_json()) == body
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", body.digest)


def test_a_fault_without_detail_gives_an_error_without_detail():
    assert Fault(code=ErrorCode.TIMEOUT, message="Late.").to_error().detail == {}


def test_an_envelope_is_decoded_once_when_it_is_first_asked_for():
    event = CATALOGUE["instance.stopped.v1"].model_validate_json('{"reason":"eof"}')
    recorded = RecordedEvent(position=1, stream_id=StreamId("inst-1"), version=2, event=event, envelope_json=ENVELOPE)
    assert recorded.topic == "instance.stopped.v1"
    assert recorded.envelope == Envelope.model_validate_json(ENVELOPE)
    assert recorded.envelope is recorded.envelope
    assert repr(recorded) == "<1 inst-1@2 instance.stopped.v1>"


@pytest.mark.parametrize("channel", get_args(Channel))
def test_every_channel_is_spoken_on(channel):
    envelope = Envelope.model_validate_json(ENVELOPE.replace(b'"mcp"', f'"{channel}"'.encode()))
    assert envelope.channel == channel


def test_an_envelope_from_an_unknown_channel_is_none():
    with pytest.raises(ValidationError):
        Envelope.model_validate_json(ENVELOPE.replace(b'"mcp"', b'"fax"'))
