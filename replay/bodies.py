"""The law of the stored contents: what an event names stands there unchanged, or one event says that it was removed.

A hold's arguments are removed by its end, which has to be believed both ways: they are there until then, never after.
What is stored and not named by any event was put there by somebody else; but for a large content, which is stored
before its event and may have been left alone by a crash.
"""

from pydantic import TypeAdapter
from pydantic_core import from_json

from codespace_es.aggregates.approval import ApprovalCreated
from codespace_es.aggregates.operation import Minted, OperationFinished
from codespace_es.aggregates.store import StoreBodiesRemoved
from codespace_es.vocabulary.event import Digest, Envelope
from codespace_es.vocabulary.identifiers import StreamId
from replay.approval_laws import ENDS_OF_A_HOLD
from replay.doubts import Doubts, fits
from replay.finding import Findings, Law
from replay.memory import Seen, SeenAppend
from replay.naming import Named, named_bodies
from replay.source import LogSource
from replay.stored_contents import Content, StoredContents


class BodyLaw:
    """Reads and hashes each content that an event names. Memory grows with what was removed, not with what is there."""

    def __init__(self, source: LogSource, findings: Findings) -> None:
        self._source = source
        self._contents = StoredContents(source, on_unmet=self._check_unmet)
        self._doubts = Doubts(source, self._tell_doubt)
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
            for named in named_bodies(event):
                content = self._check(seen, named, append.envelope)
                if content is None:
                    continue
                if isinstance(event, StoreBodiesRemoved):
                    self._explain(seen, event, self._bytes_of(seen, named.digest, content))
                elif isinstance(event, OperationFinished) and event.status == "applied":
                    self._compare_changes(seen, self._bytes_of(seen, named.digest, content))
            self._follow_arguments(seen)

    def finish(self) -> None:
        """Note what is missing without an explanation, and what is stored without a reason."""
        self._contents.finish()
        self._doubts.settle()
        for (stream_id, digest), position in self._missing.items():
            text = f"{stream_id} names {digest}, which is missing, and no event says that it was removed."
            self._findings.add(Law.BODIES, position, stream_id, text)

    def _check(self, seen: Seen, named: Named, envelope: Envelope) -> Content | None:
        """Return what is stored under a digest if it is what it should be."""
        recorded, digest = seen.recorded, named.digest
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
        if named.size_bytes is not None and content.size_bytes != named.size_bytes:
            self._breach(seen, f"{digest} has {content.size_bytes} bytes, not {named.size_bytes}")
        label = content.label
        if label is not None and not fits(label, content, named, envelope):
            self._doubts.add(recorded.stream_id, digest, content, position=recorded.position)
        return content

    def _check_unmet(self, stream_id: str, key: bytes, content: Content) -> None:
        """Doubt a stored content that the walk didn't meet: an event may name it after all."""
        digest = f"sha256:{key.hex()}" if isinstance(key, bytes) else str(key)
        self._doubts.add(StreamId(stream_id), digest, content)

    def _tell_doubt(self, stream_id: StreamId, position: int | None, problem: str) -> None:
        place = self._source.head()[0] if position is None else position
        self._findings.add(Law.BODIES, place, str(stream_id), f"{stream_id}: {problem}.")

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
            elif key not in self._missing and self._source.read_body(*key) is not None:
                self._breach(seen, f"{key[1]} of {key[0]} is said to be removed, and is still stored")
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


def removed_bodies(content: bytes) -> list[tuple[StreamId, Digest]]:
    """Return what a removal lists: a JSON list of pairs, stream and digest, since contents are stored by both.

    Raises:
        ValueError: it is something else.
    """
    return _REMOVED.validate_json(content, strict=True)


_REMOVED: TypeAdapter[list[tuple[StreamId, Digest]]] = TypeAdapter(list[tuple[StreamId, Digest]])


def _name(seen: Seen) -> str:
    return f"{seen.recorded.stream_id}@{seen.recorded.version} ({seen.recorded.topic})"
