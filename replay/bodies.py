"""The law of the stored contents: what an event names stands there unchanged, or one event says that it was removed.

A hold's arguments are removed by its end, which has to be believed both ways: they are there until then, never after.
"""

from collections.abc import Iterator
from functools import cache
from typing import get_args

from pydantic import BaseModel, TypeAdapter
from pydantic_core import from_json

from codespace_es.aggregates.approval import ApprovalCreated
from codespace_es.aggregates.operation import Minted, OperationFinished, OperationMinted
from codespace_es.aggregates.store import StoreBodiesRemoved
from codespace_es.vocabulary.event import ABSENT, Body, Digest, Event
from codespace_es.vocabulary.identifiers import StreamId
from replay.approval_laws import ENDS_OF_A_HOLD
from replay.finding import Findings, Law
from replay.memory import Seen, SeenAppend
from replay.source import LogSource
from replay.stored_contents import Content, StoredContents


class BodyLaw:
    """Reads and hashes each content that an event names. Memory grows with what was removed, not with what is there."""

    def __init__(self, source: LogSource, findings: Findings) -> None:
        self._contents = StoredContents(source)
        self._findings = findings
        self._missing: dict[tuple[str, Digest], int] = {}
        self._explained: set[tuple[str, Digest]] = set()
        self._held: set[tuple[str, Digest]] = set()
        self.count = 0
        """Contents read and hashed."""
        self.total_bytes = 0

    def check(self, append: SeenAppend) -> None:
        """Check every content that an event of `append` names."""
        for seen in append.events:
            event = seen.recorded.event
            for digest, size_bytes in named_bodies(event):
                content = self._check(seen, digest, size_bytes)
                if content is None:
                    continue
                if isinstance(event, StoreBodiesRemoved):
                    self._explain(seen, event, self._bytes_of(seen, digest, content))
                elif isinstance(event, OperationFinished) and event.status == "applied":
                    self._compare_changes(seen, self._bytes_of(seen, digest, content))
            self._follow_arguments(seen)

    def finish(self) -> None:
        """Note what is missing without an explanation."""
        for (stream_id, digest), position in self._missing.items():
            text = f"{stream_id} names {digest}, which is missing, and no event says that it was removed."
            self._findings.add(Law.BODIES, position, stream_id, text)

    def _check(self, seen: Seen, digest: Digest, size_bytes: int | None) -> Content | None:
        """Return what is stored under `digest` if it is what it should be."""
        recorded = seen.recorded
        content = self._contents.take(recorded.stream_id, digest)
        if content is None:
            key = (recorded.stream_id, digest)
            if key not in self._explained:
                self._missing.setdefault(key, recorded.position)
            return None
        self.count += 1
        self.total_bytes += content.size_bytes
        if not content.is_right:
            self._breach(seen, f"the content stored as {digest} has another digest")
            return None
        if size_bytes is not None and content.size_bytes != size_bytes:
            self._breach(seen, f"{digest} has {content.size_bytes} bytes, not {size_bytes}")
        return content

    def _bytes_of(self, seen: Seen, digest: Digest, content: Content) -> bytes:
        if content.content is not None:
            return content.content
        return self._contents.read(seen.recorded.stream_id, digest) or b""

    def _explain(self, seen: Seen, event: StoreBodiesRemoved, content: bytes) -> None:
        """Take off the list of what is missing whatever `event` says was removed."""
        try:
            removed = removed_bodies(content)
        except ValueError:
            self._breach(seen, "what it lists as removed is no list of streams and digests")
            return
        if len(removed) != event.count:
            self._breach(seen, f"it says that {event.count} contents were removed and lists {len(removed)}")
        for key in removed:
            if key in self._explained and key not in self._missing:
                self._breach(seen, f"{key[1]} of {key[0]} was removed twice")
            self._missing.pop(key, None)
            self._explained.add(key)

    def _follow_arguments(self, seen: Seen) -> None:
        """The arguments of a hold are there exactly while it is open: its end explains that they are gone."""
        event = seen.recorded.event
        if isinstance(event, ApprovalCreated):
            key = (seen.stream_id, event.arguments.digest)
            if key not in self._missing:
                self._held.add(key)
        elif isinstance(event, ENDS_OF_A_HOLD):
            created: ApprovalCreated | None = getattr(seen.before, "created", None)
            if created is None:
                return
            key = (seen.stream_id, created.arguments.digest)
            self._missing.pop(key, None)
            if key in self._held:
                self._held.remove(key)
                self._breach(seen, "it is over, and its arguments are still stored")

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
    for name, inner in _body_fields(type(event)):
        holder = event if inner is None else getattr(event, name)
        body = getattr(holder, inner or name)
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


def removed_bodies(content: bytes) -> list[tuple[StreamId, Digest]]:
    """Return what a removal lists: a JSON list of pairs, stream and digest, since contents are stored by both.

    Raises:
        ValueError: it is something else.
    """
    return _REMOVED.validate_json(content, strict=True)


_REMOVED: TypeAdapter[list[tuple[StreamId, Digest]]] = TypeAdapter(list[tuple[StreamId, Digest]])


@cache
def _body_fields(kind: type[BaseModel]) -> tuple[tuple[str, str | None], ...]:
    """Return the fields that name a content: of an event itself, or with the field of a model that it holds."""
    found: list[tuple[str, str | None]] = []
    for name, field in kind.model_fields.items():
        held = field.annotation
        if held is Body or Body in get_args(held):
            found.append((name, None))
        elif isinstance(held, type) and issubclass(held, BaseModel):
            found += [(name, inner) for inner, deeper in _body_fields(held) if deeper is None]
    return tuple(found)


def _name(seen: Seen) -> str:
    return f"{seen.recorded.stream_id}@{seen.recorded.version} ({seen.recorded.topic})"
