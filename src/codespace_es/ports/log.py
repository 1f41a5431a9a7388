"""The event log: one append-only sequence of events, the bodies they name, and an index of what is open.

An adapter keeps three things in one transaction: the events of an `Append`, the bodies it carries, and the changes
of the open index that follow from its events.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from codespace_es.vocabulary.event import Body, Caller, Digest, Event, RecordedEvent
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import AppendId, InstanceId, StreamId, WorkspaceKey

BodyKind = Literal["image", "request", "result", "output", "arguments", "text"]


class VersionConflictError(Exception):
    """Somebody else appended to one of the streams first. Nothing was stored: fold again and decide again."""


class InstanceClosedError(Exception):
    """This instance was declared dead and recovered by another: it may never append again and must end."""


class StoreUnavailableError(Exception):
    """The log can't be read or written now (full disk, locked too long, damaged). Nothing was stored."""

    def __init__(self, *words: str, is_final: bool = False) -> None:
        super().__init__(*words)
        self.is_final = is_final
        """Nothing will be stored any more by whoever has it open: it failed, or is closed."""


class LogMissingError(StoreUnavailableError):
    """There is no log where one was to be read."""


class LogFormatError(StoreUnavailableError):
    """What is there is no event log, or one of a newer format."""


class UnknownTopicError(Exception):
    """A stream holds an event of a newer version; it can be neither folded nor settled here."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event and the place it is meant for: `version` is the stream's last version + 1 as the decider saw it."""

    stream_id: StreamId
    version: int
    event: Event


@dataclass(frozen=True, slots=True)
class NewBody:
    """Bytes to be stored for a stream, no later than the event that names them."""

    stream_id: StreamId
    kind: BodyKind
    content: bytes
    body: Body = field(init=False, compare=False, repr=False)
    """The name by which an event refers to it."""

    def __post_init__(self) -> None:
        # Hashed once: the event that names it and the append that stores it both need it.
        object.__setattr__(self, "body", Body(digest=digest_of(self.content), size_bytes=len(self.content)))


@dataclass(frozen=True, slots=True)
class Append:
    """One transaction: all of it is stored, or nothing. Events keep their order."""

    events: tuple[NewEvent, ...]
    bodies: tuple[NewBody, ...] = ()
    scrubbed: tuple[tuple[Digest, StreamId], ...] = ()
    """Bodies to remove in the same transaction."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that an append is durable."""

    append_id: AppendId
    first_position: int
    last_position: int


@dataclass(frozen=True, slots=True)
class OpenItem:
    """One row of the open index: a stream in which something is still to come."""

    stream_id: StreamId
    kind: Literal["instance", "operation", "approval", "process", "pending", "steering"]
    workspace_key: WorkspaceKey | None
    instance_id: InstanceId
    position: int
    """Of the event that opened it."""


@dataclass(frozen=True, slots=True)
class OpenChange:
    """What one event does to the open index: a pure function of the event.

    `closes` is done first. A row that is already there stays as it is, with the event that opened it; closing and
    opening in one change makes it the event's own.
    """

    opens: tuple[tuple[Literal["instance", "operation", "approval", "process", "pending", "steering"],
                       WorkspaceKey | None], ...] = ()
    """Rows that appear: kind and workspace. The stream and the instance are the event's own."""
    closes: bool = False
    """The stream's rows disappear."""


OpenIndexRule = Callable[[StreamId, Event], OpenChange | None]
"""The rule that an adapter applies to each event as it stores it; None: the event opens and closes nothing."""

Catalogue = Mapping[str, type[Event]]
"""Topic -> class. The only way from a stored topic to code: a log file can't name a module to import."""


class EventLog(Protocol):
    """The one source of truth, as a running server sees it.

    Guarantees: appends are atomic, durable on return (not with an ephemeral store), and totally ordered by gapless
    positions from 1, over all processes that share the store; a stream's versions are gapless from 1. A read that
    starts after an append has returned sees it, in any process.
    """

    async def append(self, append: Append, caller: Caller) -> Receipt:
        """Store all of `append` durably, or nothing.

        The wait for the commit is shielded: a cancelled caller leaves either nothing or all of it, and an append that
        was begun is finished. Large bodies may be stored beforehand; they are harmless without their event.

        Raises:
            VersionConflictError: a stream has moved on.
            InstanceClosedError: this instance has been recovered by another.
            StoreUnavailableError: nothing was stored, and whether it was is certain.
        """
        ...

    async def read_stream(
        self, stream_id: StreamId, *, since: int = 0, limit: int | None = None
    ) -> Sequence[RecordedEvent]:
        """Return all events of a stream in order; empty if there is none.

        With `since`, the position of an event of this stream, only that one and those behind it, at most `limit`: the
        cost doesn't grow with what is before.

        Raises:
            UnknownTopicError: an event of a topic that isn't in the catalogue.
            StoreUnavailableError: it can't be read now.
        """
        ...

    async def read_since_opened(self, stream_id: StreamId) -> tuple[int, Sequence[RecordedEvent]]:
        """Return a stream's version, and its events since the one that opened its row in the open index.

        None if it isn't open; the version is then no newer than that. For streams that open and close again and again:
        the cost doesn't grow with what is over. Raises as `read_stream`.
        """
        ...

    def read_log(self, *, after: int = 0, limit: int | None = None) -> AsyncIterator[RecordedEvent]:
        """Yield the events of the whole log with position > `after`, in order. Unknown topics raise as above."""
        ...

    async def read_body(self, stream_id: StreamId, digest: Digest) -> bytes | None:
        """Return the bytes stored for this stream under `digest`; None if they were pruned, scrubbed or never there."""
        ...

    async def open_items(
        self, *, kind: str | Sequence[str] | None = None,
        workspace_key: WorkspaceKey | Sequence[WorkspaceKey] | None = None,
        instance_id: InstanceId | None = None, limit: int | None = None,
    ) -> Sequence[OpenItem]:
        """Return the open index's rows, oldest first, of this kind, workspace and instance (None: any).

        Of several kinds or workspaces: of any of them. At most `limit` rows.
        """
        ...

    async def head(self) -> tuple[int, bytes]:
        """Return position and hash of the newest event; (0, 32 zero bytes) in an empty log."""
        ...

    def follow(self, *, after: int = 0) -> AsyncIterator[RecordedEvent]:
        """Yield events with position > `after` for ever: those there, then new ones soon after their commit.

        Commits of other processes are seen too. Nothing is missed, doubled or out of order.
        """
        ...
