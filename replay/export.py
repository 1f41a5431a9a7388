r"""`export`: a log as lines of JSON, one event a line, in the order of the log: our own form, or CloudEvents 1.0.

The stored bytes of envelope and event are copied into our lines as they are, so that whoever has the lines can follow
the chain of hashes. A content stands before the event that names it: a line of an event means that all before it is
complete, and its position is where to go on. Lines are JSON in any case; what isn't is told in base64.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import StreamId
from replay.checkpoint import store_id_of
from replay.naming import Named, named_bodies
from replay.source import LogSource, RawRow

_SOURCE = "urn:codespace-es:log:"
_TYPE = "codespace-es."


def json_lines(source: LogSource, *, after: int = 0, has_bodies: bool = False) -> Iterator[bytes]:
    """Yield the events with position > `after`, each as one line of JSON with its line end.

    An event: `position, stream_id, version, topic, hash, envelope, event`. A content, where they are asked for:
    `position` of the event that names it, `stream_id, digest, kind`, and `content` in base64, null where it isn't
    stored.

    Raises:
        StoreUnavailableError: the log can't be read.
    """
    for row in source.raw_rows(after=after):
        if has_bodies:
            for named, content in _named(source, row):
                yield _line({
                    "position": row[0], "stream_id": row[1], "digest": named.digest, "kind": named.kind,
                    "content": None if content is None else base64.b64encode(content).decode(),
                })
        yield _event_line(row)


def cloud_events(source: LogSource, *, after: int = 0, has_bodies: bool = False) -> Iterator[bytes]:
    """Yield the events with position > `after` as CloudEvents 1.0 in their JSON form, one a line.

    `source` is the log, `id` the position in it, `subject` the stream, `sequence` the position again, in a form that
    sorts. A content is an event of its own, `codespace-es.content`, with `data_base64`. Raises as `json_lines`.

    Source: CloudEvents 1.0.2, JSON format; its sequence extension.
    """
    store_id = store_id_of(source)
    for row in source.raw_rows(after=after):
        told = _cloud_event(store_id, row)
        if has_bodies:
            for named, content in _named(source, row):
                if content is not None:
                    yield _line({
                        **told, "id": f"{row[0]}/{named.digest}", "type": f"{_TYPE}content",
                        "datacontenttype": "application/octet-stream",
                        "data_base64": base64.b64encode(content).decode(),
                    }, left_out=("data",))
        yield _line(told)


def _event_line(row: RawRow) -> bytes:
    position, stream_id, version, topic, state, chained = row
    head = {
        "position": position, "stream_id": stream_id, "version": version, "topic": topic, "hash": _hex(chained),
    }
    parts = state.split(b"\n") if isinstance(state, bytes) else []
    if len(parts) == 2 and all(_is_object(part) for part in parts):
        return _line(head)[:-2] + b',"envelope":' + parts[0] + b',"event":' + parts[1] + b"}\n"
    return _line({**head, "state": _encoded(state)})


def _cloud_event(store_id: str, row: RawRow) -> dict[str, Any]:
    position, stream_id, version, topic, state, chained = row
    told: dict[str, Any] = {
        "specversion": "1.0",
        "id": str(position),
        "source": _SOURCE + (store_id or "unknown"),
        "type": f"{_TYPE}{topic}",
        "subject": stream_id,
        "sequence": f"{position:020d}",
        "streamversion": str(version),
        "chainhash": _hex(chained),
    }
    parts = state.split(b"\n") if isinstance(state, bytes) else []
    if len(parts) != 2 or not all(_is_object(part) for part in parts):
        return {**told, "datacontenttype": "application/octet-stream", "data_base64": _encoded(state)}
    envelope = json.loads(parts[0])
    return {
        **told,
        "time": str(envelope.get("recorded_at")),
        **{name.replace("_", ""): str(value) for name, value in envelope.items() if name in _EXTENSIONS},
        "datacontenttype": "application/json",
        "data": json.loads(parts[1]),
    }


_EXTENSIONS = ("instance_id", "append_id", "request_id", "channel", "client")
"""What of the envelope becomes an extension attribute, without its `_`."""


def _named(source: LogSource, row: RawRow) -> Iterator[tuple[Named, bytes | None]]:
    """Yield each content that an event names; nothing for an event that can't be read."""
    event = _decoded(row)
    for named in named_bodies(event) if event is not None else ():
        is_digest = named.digest.startswith("sha256:")
        yield named, source.read_body(StreamId(row[1]), named.digest) if is_digest else None


def _decoded(row: RawRow) -> Event | None:
    kind = CATALOGUE.get(row[3])
    if kind is None or not isinstance(row[4], bytes):
        return None
    try:
        return kind.model_validate_json(row[4].partition(b"\n")[2])
    except ValidationError:
        return None


def _is_object(part: bytes) -> bool:
    try:
        return isinstance(from_json(part), dict)
    except ValueError:
        return False


def _line(told: dict[str, Any], *, left_out: tuple[str, ...] = ()) -> bytes:
    kept = {name: value for name, value in told.items() if name not in left_out}
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


def _hex(value: object) -> str | None:
    return value.hex() if isinstance(value, bytes) else None


def _encoded(value: object) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else str(value).encode()).decode()
