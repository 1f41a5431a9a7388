"""Which contents an event names, and as what they are stored."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple, get_args

from pydantic import BaseModel

from codespace_es.aggregates.operation import OperationMinted
from codespace_es.aggregates.pending.events import PendingActionPushed
from codespace_es.ports.log import BodyKind
from codespace_es.vocabulary.event import ABSENT, Body, Digest, Event

KIND_OF_FIELD: Mapping[str, BodyKind] = MappingProxyType({
    "request": "request", "argv": "request", "payload": "request", "extra": "request",
    "result": "result", "preview": "result", "details": "result", "digests": "result",
    "output_head": "output", "output_tail": "output",
    "arguments": "arguments",
    "body": "text",
})
"""Kind in the body store, by the field that names it. Source: event catalogue, section 1."""


class Named(NamedTuple):
    """A content as an event names it."""

    digest: Digest
    size_bytes: int | None
    """None where the event doesn't say."""
    kind: BodyKind


def named_bodies(event: Event) -> Iterator[Named]:
    """Yield each content that has to be stored for `event`."""
    for name, inner in body_fields(type(event)):
        holder = event if inner is None else getattr(event, name)
        body = getattr(holder, inner or name)
        if body is not None:
            yield Named(body.digest, body.size_bytes, KIND_OF_FIELD[inner or name])
    if isinstance(event, OperationMinted) and not event.check_only:
        images = {
            version: size_bytes
            for row in event.plan
            for version, size_bytes in ((row.before, row.before_bytes), (row.after, row.after_bytes))
            if version != ABSENT
        }
        for version, size_bytes in images.items():
            yield Named(version, size_bytes, "image")
    elif isinstance(event, PendingActionPushed):
        for version in dict.fromkeys(row.after for row in event.edits if row.after != ABSENT):
            yield Named(version, None, "image")


@cache
def body_fields(kind: type[BaseModel]) -> tuple[tuple[str, str | None], ...]:
    """Return the fields that name a content: of an event itself, or with the field of a model that it holds."""
    found: list[tuple[str, str | None]] = []
    for name, field in kind.model_fields.items():
        held = field.annotation
        if held is Body or Body in get_args(held):
            found.append((name, None))
        elif isinstance(held, type) and issubclass(held, BaseModel):
            found += [(name, inner) for inner, deeper in body_fields(held) if deeper is None]
    return tuple(found)
