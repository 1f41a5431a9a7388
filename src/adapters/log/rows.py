"""Between an event and the bytes it is stored as.

State: the envelope's JSON, one newline, the event's JSON (JSON has no raw newline). So a fold validates the event
alone, and the envelope is decoded only when somebody asks. Topics go through the catalogue: a log file can't name
code to run.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from operator import attrgetter

from pydantic_core import ValidationError, to_json

from codespace_es.ports.log import Catalogue, StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.event import Caller, Event, RecordedEvent, Superseded
from codespace_es.vocabulary.identifiers import AppendId, InstanceId, StreamId

StoredRow = tuple[int, StreamId, int, str, bytes]
"""Position, stream, version, topic, state."""

_serializer_of = attrgetter("__pydantic_serializer__")
_validator_of = attrgetter("__pydantic_validator__")


def encode_event(event: Event) -> bytes:
    """Return the JSON of `event`; absent fields are left out, never null.

    Raises:
        pydantic_core.PydanticSerializationError: a text that isn't Unicode, such as a lone surrogate.
    """
    kind = type(event)
    if not kind.__pydantic_complete__:
        kind.model_rebuild()
    encoded: bytes = _serializer_of(kind).to_json(event, exclude_none=True)
    return encoded


def encode_envelope(caller: Caller, *, recorded_at: datetime, instance_id: InstanceId, append_id: AppendId) -> bytes:
    """Return the JSON line that stands before each event of one append, with its newline."""
    fields = {
        "recorded_at": recorded_at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z",
        "instance_id": instance_id,
        "append_id": append_id,
        "request_id": caller.request_id,
        "channel": caller.channel,
    }
    if caller.client is not None:
        # A client's name is somebody else's text: a lone surrogate in it must not refuse the append.
        fields["client"] = caller.client.encode("utf-8", "backslashreplace").decode()
    return to_json(fields) + b"\n"


class Decoder:
    """Rebuilds events from rows, validated against the catalogue's classes.

    A class' validator is built when its topic is first met: start-up pays for no class that isn't read. An event of a
    superseded class comes out as what it is today; readers and deciders know the newest alone.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._validators: dict[str, Callable[[bytes], Event]] = {}

    def decode(self, rows: Iterable[StoredRow]) -> Iterator[RecordedEvent]:
        """Yield the event of each row, in order.

        Raises:
            UnknownTopicError: a topic that isn't in the catalogue.
            StoreUnavailableError: a row whose state can't be read, named by its position.
        """
        validators = self._validators
        for position, stream_id, version, topic, state in rows:
            try:
                validate = validators.get(topic) or self._validator_of(topic)
                envelope, _, event = state.partition(b"\n")
                decoded = validate(event)
            except KeyError:
                msg = f"{stream_id}@{version} (position {position}) has topic {topic!r}, unknown to this version"
                raise UnknownTopicError(msg) from None
            except (ValidationError, AttributeError, TypeError) as error:
                msg = f"the event log is damaged at position {position}: {stream_id}@{version} isn't a {topic}"
                raise StoreUnavailableError(msg) from error
            yield RecordedEvent(position, stream_id, version, decoded, envelope)

    def _validator_of(self, topic: str) -> Callable[[bytes], Event]:
        kind = self._catalogue[topic]
        if not kind.__pydantic_complete__:
            kind.model_rebuild()
        validate: Callable[[bytes], Event] = _validator_of(kind).validate_json
        self._validators[topic] = _upcasting(validate) if issubclass(kind, Superseded) else validate
        return self._validators[topic]


def _upcasting(validate: Callable[[bytes], Event]) -> Callable[[bytes], Event]:
    """Return what decodes an event of an old topic as the newest that it means; its row stays what it is."""

    def decode(state: bytes) -> Event:
        event = validate(state)
        try:
            while isinstance(event, Superseded):
                event = event.upcast()
        except (LookupError, ValueError) as error:
            raise TypeError(f"it can't be read as what it is today: {error}") from error
        return event

    return decode
