"""What was removed from the stored contents, when and why: read only where something is missing."""

from functools import cached_property

from codespace_es.aggregates.store import StoreBodiesRemoved
from codespace_es.vocabulary.event import Digest, RecordedEvent
from codespace_es.vocabulary.identifiers import STORE_STREAM
from replay.bodies import removed_bodies
from replay.source import LogSource


class Removals:
    """The removals that a log tells of."""

    def __init__(self, source: LogSource) -> None:
        self._source = source

    def of(self, stream_id: str, digest: Digest) -> str | None:
        """Return how a content went, such as `pruned on 2026-01-31 (position 7)`; None if no event tells."""
        recorded = self._by_content.get((stream_id, digest))
        if recorded is None or not isinstance(recorded.event, StoreBodiesRemoved):
            return None
        return f"{recorded.event.reason} on {recorded.envelope.recorded_at:%Y-%m-%d} (position {recorded.position})"

    @cached_property
    def _by_content(self) -> dict[tuple[str, Digest], RecordedEvent]:
        found: dict[tuple[str, Digest], RecordedEvent] = {}
        for recorded in self._source.walk_stream(STORE_STREAM):
            if not isinstance(recorded.event, StoreBodiesRemoved):
                continue
            content = self._source.read_body(recorded.stream_id, recorded.event.digests.digest)
            try:
                listed = removed_bodies(content or b"[]")
            except ValueError:
                listed = []  # `verify` says that it is damaged
            for stream_id, digest in listed:
                found.setdefault((stream_id, digest), recorded)
        return found
