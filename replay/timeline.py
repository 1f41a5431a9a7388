"""`log`: the timeline, filtered and in pages, oldest first or from the end.

What an entry says is `projections.timeline`'s; here is which events are wanted, and reading them page by page.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.projections.timeline import TimelineEntry, fields_of, project
from codespace_es.vocabulary.event import Event, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.source import LogSource, first_of
from replay.work_story import intents_of, names_of

_STREAMS_REMEMBERED_MAX = 10_000
_OF_ONE_THING = ("op-", "proc-", "appr-")
"""Streams that belong to what their first event names; others serve many works."""
_WINDOW_EVENTS = 1_000
"""How many events are read at a time when going backwards."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events a reader asks for: all that is given has to hold, what is None lets everything pass."""

    workspace: str | None = None
    """A workspace's key, or its name in the server's configuration."""
    operation: str | None = None
    """Any id: see `things`."""
    things: tuple[str, ...] = ()
    """Ids, also a work's: events that are about each of them. Those are its own, those that name it or an instruction
    of it, and those of operations, commands and holds that named it when they began."""
    instance: str | None = None
    """The server process, one session of a stdio client."""
    client: str | None = None
    """Beginning of the client's name/version."""
    topic: str | None = None
    """A topic, or what it begins with: `operation`, `operation.minted`."""
    since: datetime | None = None
    """Recorded at this time or later."""
    until: datetime | None = None
    """Recorded before this time."""
    text: str | None = None
    """Found in the sentence or anywhere in the event, whatever the case."""


class Page(BaseModel):
    """Some entries, and where to go on."""

    model_config = ConfigDict(frozen=True)

    entries: tuple[TimelineEntry, ...] = Field(description="By position.")
    next_after: int | None = Field(default=None, description="Pass it as `after` for the next page; absent: the end.")
    earlier_before: int | None = Field(
        default=None, description="Pass it as `before` for the page of older ones; absent: the beginning, or not asked."
    )


class Timeline:
    """The timeline of one log."""

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._workspaces: OrderedDict[StreamId, frozenset[str]] = OrderedDict()
        self._named_first: OrderedDict[StreamId, frozenset[str]] = OrderedDict()
        self._intents: dict[str, frozenset[str]] = {}

    def read(
        self, wanted: Wanted | None = None, *, after: int = 0, limit: int = 100, scanned_max: int | None = None
    ) -> Page:
        """Return the first `limit` wanted entries behind position `after`.

        Args:
            wanted: Which; None: all.
            after: Position to begin behind.
            limit: Entries on a page.
            scanned_max: Events that are looked at for them; a page that ends for this has fewer, and its `next_after`.

        Raises:
            UnknownTopicError: a newer version has written one of the events read.
            StoreUnavailableError: the log can't be read.
        """
        wanted = wanted or Wanted()
        head, _ = self._source.head()
        looked_at = islice(self._source.read_log(after=after), scanned_max)
        found = list(islice(self._entries(wanted, looked_at), limit + 1))
        if len(found) > limit:
            shown = found[:limit]
            return Page(entries=tuple(shown), next_after=shown[-1].position if shown else after)
        is_cut = scanned_max is not None and after + scanned_max < head
        return Page(entries=tuple(found), next_after=after + scanned_max if is_cut and scanned_max else None)

    def read_newest(
        self,
        wanted: Wanted | None = None,
        *,
        limit: int = 100,
        before: int | None = None,
        scanned_max: int | None = None,
    ) -> Page:
        """Return the last `limit` wanted entries, oldest first; `next_after` follows what is written later.

        Args:
            wanted: Which; None: all.
            limit: Entries on a page.
            before: Position that they lie before; None: the end of the log.
            scanned_max: Events that are looked at for them.

        Raises as `read`.
        """
        wanted = wanted or Wanted()
        head, _ = self._source.head()
        end = start = head if before is None else max(0, min(head, before - 1))
        floor = 0 if scanned_max is None else max(0, start - scanned_max)
        found: list[TimelineEntry] = []
        while end > floor and len(found) < limit:
            begin = max(floor, end - _WINDOW_EVENTS)
            window = islice(self._source.read_log(after=begin), end - begin)
            found = list(self._entries(wanted, window)) + found
            end = begin
        is_more = len(found) > limit or end > 0
        shown = tuple(found[-limit:] if limit else ())
        first = shown[0].position if len(found) > limit and shown else end + 1
        return Page(entries=shown, next_after=start, earlier_before=first if is_more and first > 1 else None)

    def _entries(self, wanted: Wanted, recorded: Iterator[RecordedEvent]) -> Iterator[TimelineEntry]:
        for each in recorded:
            if wanted.topic is not None and not _begins(each.topic, wanted.topic):
                continue
            if wanted.workspace is not None and wanted.workspace not in self._workspaces_of(each):
                continue
            if not all(self._is_about(each, thing) for thing in _things(wanted)):
                continue
            entry = project(each)
            if _is_wanted(entry, each, wanted):
                yield entry

    def _workspaces_of(self, recorded: RecordedEvent) -> frozenset[str]:
        """Return key and name of the workspace that an event is about, as it or its stream's first event says."""
        own = workspaces_named(recorded.event) | {recorded.stream_id}
        first = self._workspaces.get(recorded.stream_id)
        if first is None:
            first = workspaces_named(self._opening(recorded).event)
            if not first and recorded.topic.startswith("claim."):
                first = self._workspaces_of_holder(recorded.event)
            _remember(self._workspaces, recorded.stream_id, first)
        return own | first

    def _is_about(self, recorded: RecordedEvent, thing: str) -> bool:
        names = self._names_of(recorded)
        if thing in names:
            return True
        if not thing.startswith("work-") or not recorded.topic.startswith("steering."):
            return False
        if thing not in self._intents:
            self._intents[thing] = intents_of(self._source, thing)
        return not names.isdisjoint(self._intents[thing])

    def _names_of(self, recorded: RecordedEvent) -> frozenset[str]:
        """Return the ids that an event is about."""
        stream_id = recorded.stream_id
        own = names_of(recorded.event) | {stream_id}
        if not stream_id.startswith(_OF_ONE_THING):
            return own
        first = self._named_first.get(stream_id)
        if first is None:
            first = names_of(self._opening(recorded).event)
            _remember(self._named_first, stream_id, first)
        return own | first

    def _workspaces_of_holder(self, event: Event) -> frozenset[str]:
        holder = getattr(event, "holder_id", None)
        first = None if holder is None else first_of(self._source, holder)
        return frozenset() if first is None else workspaces_named(first.event)

    def _opening(self, recorded: RecordedEvent) -> RecordedEvent:
        """Return the first event of the stream of `recorded`."""
        return recorded if recorded.version == 1 else first_of(self._source, recorded.stream_id) or recorded


def workspaces_named(event: Event) -> frozenset[str]:
    """Return the workspace key and name that `event` itself holds."""
    return frozenset(
        value for name, value in fields_of(event)
        if name in ("workspace_key", "workspace_id") and isinstance(value, str)
    )


def _things(wanted: Wanted) -> tuple[str, ...]:
    return wanted.things if wanted.operation is None else (wanted.operation, *wanted.things)


def _remember(known: OrderedDict[StreamId, frozenset[str]], stream_id: StreamId, names: frozenset[str]) -> None:
    known[stream_id] = names
    if len(known) > _STREAMS_REMEMBERED_MAX:
        known.popitem(last=False)


def _begins(topic: str, wanted: str) -> bool:
    return topic == wanted or topic.startswith(wanted.rstrip(".") + ".")


def _is_wanted(entry: TimelineEntry, recorded: RecordedEvent, wanted: Wanted) -> bool:
    if wanted.instance is not None and wanted.instance not in (entry.instance_id, entry.stream_id):
        return False
    if wanted.client is not None and not (entry.client or "").startswith(wanted.client):
        return False
    if wanted.since is not None and entry.recorded_at < wanted.since:
        return False
    if wanted.until is not None and entry.recorded_at >= wanted.until:
        return False
    if wanted.text is None:
        return True
    needle = wanted.text.casefold()
    if needle in entry.summary.casefold() or needle in entry.stream_id:
        return True
    return needle in recorded.event.model_dump_json().casefold()
