"""The law of the stored contents: what an event names stands there unchanged, or one event says that it was removed."""

import json
from collections.abc import Iterator
from functools import cache
from typing import get_args

from pydantic_core import from_json

from codespace_es.aggregates.operation import Minted, OperationFinished, OperationMinted
from codespace_es.aggregates.store import StoreBodiesRemoved
from codespace_es.vocabulary.event import ABSENT, Body, Digest, Event
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import StreamId
from replay.finding import Findings, Law
from replay.memory import Seen, SeenAppend
from replay.source import LogSource


class BodyLaw:
    """Reads and hashes each content that an event names. Memory grows with what was removed, not with what is there."""

    def __init__(self, source: LogSource, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._missing: dict[tuple[str, Digest], int] = {}
        self._explained: set[tuple[str, Digest]] = set()
        self.count = 0
        """Contents read and hashed."""
        self.total_bytes = 0

    def check(self, append: SeenAppend) -> None:
        """Check every content that an event of `append` names."""
        for seen in append.events:
            for digest, size_bytes in named_bodies(seen.recorded.event):
                content = self._read(seen, digest, size_bytes)
                if content is None:
                    continue
                event = seen.recorded.event
                if isinstance(event, StoreBodiesRemoved):
                    self._explain(seen, event, content)
                elif isinstance(event, OperationFinished) and event.status == "applied":
                    self._compare_changes(seen, content)

    def finish(self) -> None:
        """Note what is missing without an explanation."""
        for (stream_id, digest), position in self._missing.items():
            text = f"{stream_id} names {digest}, which is missing, and no event says that it was removed."
            self._findings.add(Law.BODIES, position, stream_id, text)

    def _read(self, seen: Seen, digest: Digest, size_bytes: int | None) -> bytes | None:
        recorded = seen.recorded
        content = self._source.read_body(recorded.stream_id, digest)
        if content is None:
            key = (recorded.stream_id, digest)
            if key not in self._explained:
                self._missing.setdefault(key, recorded.position)
            return None
        self.count += 1
        self.total_bytes += len(content)
        if digest_of(content) != digest:
            self._breach(seen, f"the content stored as {digest} has another digest")
            return None
        if size_bytes is not None and len(content) != size_bytes:
            self._breach(seen, f"{digest} has {len(content)} bytes, not {size_bytes}")
        return content

    def _explain(self, seen: Seen, event: StoreBodiesRemoved, content: bytes) -> None:
        """Take off the list of what is missing whatever `event` says was removed."""
        removed = list(removed_bodies(content))
        if len(removed) != event.count:
            self._breach(seen, f"it says that {event.count} contents were removed and lists {len(removed)}")
        for key in removed:
            if key in self._explained and key not in self._missing:
                self._breach(seen, f"{key[1]} of {key[0]} was removed twice")
            self._missing.pop(key, None)
            self._explained.add(key)

    def _compare_changes(self, seen: Seen, content: bytes) -> None:
        """The answer to an applied patch tells of as many changes as were planned (law 2)."""
        if not isinstance(seen.before, Minted):
            return
        planned = len(seen.before.minted.plan)
        try:
            told = len(from_json(content)["changes"])
        except (ValueError, KeyError, TypeError):
            self._breach(seen, "the stored result isn't that of a patch")
            return
        if told != planned:
            text = f"{_name(seen)}: it is applied with {planned} planned files, and its result tells of {told}."
            self._findings.add(Law.OPERATION, seen.recorded.position, seen.stream_id, text)

    def _breach(self, seen: Seen, problem: str) -> None:
        self._findings.add(Law.BODIES, seen.recorded.position, seen.stream_id, f"{_name(seen)}: {problem}.")


def named_bodies(event: Event) -> Iterator[tuple[Digest, int | None]]:
    """Yield digest and size, where it is stated, of each content that has to be stored for `event`."""
    for name in _body_fields(type(event)):
        body = getattr(event, name)
        if body is not None:
            yield body.digest, body.size_bytes
    if isinstance(event, OperationMinted) and not event.check_only:
        images = {
            version: size_bytes
            for row in event.plan
            for version, size_bytes in ((row.before, row.before_bytes), (row.after, row.after_bytes))
            if version != ABSENT
        }
        yield from images.items()


def removed_bodies(content: bytes) -> Iterator[tuple[StreamId, Digest]]:
    """Yield what a removal lists: a JSON list of pairs, stream and digest, since contents are stored by both."""
    for stream_id, digest in json.loads(content):
        yield StreamId(stream_id), digest


@cache
def _body_fields(kind: type[Event]) -> tuple[str, ...]:
    return tuple(
        name for name, field in kind.model_fields.items()
        if field.annotation is Body or Body in get_args(field.annotation)
    )


def _name(seen: Seen) -> str:
    return f"{seen.recorded.stream_id}@{seen.recorded.version} ({seen.recorded.topic})"
