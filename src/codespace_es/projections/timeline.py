"""The log as a person reads it: one plain sentence an event, with who spoke and what it links to.

The sentences stand in `sentences`.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.projections.sentences import summarise
from codespace_es.vocabulary.event import Event, RecordedEvent

_ID = re.compile(r"(?:op|proc|appr|work|fb|act|inst|wsp)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class TimelineEntry(BaseModel):
    """One event for a reader."""

    model_config = ConfigDict(frozen=True)

    position: int = Field(description="Place in the whole log.")
    recorded_at: datetime = Field(description="UTC; orders nothing.")
    stream_id: str = Field(description="What it happened to.")
    version: int = Field(description="Place in that stream.")
    topic: str = Field(description="What kind of event it is.")
    channel: str = Field(description="Who spoke.")
    client: str | None = Field(default=None, description="The client's name/version.")
    instance_id: str = Field(description="The server process that recorded it.")
    request_id: str = Field(description="The call it belongs to.")
    summary: str = Field(description="One sentence.")
    refs: tuple[str, ...] = Field(default=(), description="Ids that it links to, beside its own stream.")


def project(recorded: RecordedEvent) -> TimelineEntry:
    """Return what a reader is told of one recorded event."""
    envelope = recorded.envelope
    return TimelineEntry(
        position=recorded.position,
        recorded_at=envelope.recorded_at,
        stream_id=recorded.stream_id,
        version=recorded.version,
        topic=recorded.topic,
        channel=envelope.channel,
        client=envelope.client,
        instance_id=envelope.instance_id,
        request_id=envelope.request_id,
        summary=summarise(recorded.event),
        refs=tuple(each for each in links(recorded.event) if each != recorded.stream_id),
    )


def links(event: Event) -> Iterator[str]:
    """Yield each id that a field of `event` holds, alone or in a list, in the order of its fields, once."""
    seen: set[str] = set()
    for _, held in fields_of(event):
        for value in held if isinstance(held, tuple) else (held,):
            if isinstance(value, str) and value not in seen and _ID.fullmatch(value):
                seen.add(value)
                yield value


def fields_of(event: Event) -> Iterator[tuple[str, object]]:
    """Yield name and value of each field of `event`, and of each model in it, such as a command's request."""
    for name in type(event).model_fields:
        value = getattr(event, name)
        if isinstance(value, BaseModel):
            yield from ((inner, getattr(value, inner)) for inner in type(value).model_fields)
        else:
            yield name, value
