"""The event log of a running server, on a database that other servers may write too, or in memory.

An append is encoded here on the event loop, handed to the writer thread, and answered after the commit. Short reads
are the database's to run on the loop as it does best; the whole log goes in slices, and its fold in a thread.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from adapters.log import bodies, open_rows, statements
from adapters.log.chain import GENESIS
from adapters.log.database import Connection, Database
from adapters.log.follow import News, follow
from adapters.log.names import can_be_name
from adapters.log.open_rows import OpenIndexDifference
from adapters.log.places import LogPlace, open_database
from adapters.log.reader import LogReader
from adapters.log.rows import Decoder, encode_envelope, encode_event
from adapters.log.submission import BodyRow, NewRow, Submission
from adapters.log.writer import Writer
from codespace_es.ports.clock_and_ids import Clock, Ids
from codespace_es.ports.fault_points import FaultHook, no_faults
from codespace_es.ports.log import (
    Append,
    Catalogue,
    EventLog,
    OpenIndexRule,
    OpenItem,
    Receipt,
    StoreUnavailableError,
)
from codespace_es.vocabulary.event import Caller, Digest, RecordedEvent
from codespace_es.vocabulary.identifiers import AppendId, InstanceId, StreamId, WorkspaceKey
from codespace_es.vocabulary.limits import KIB, LARGE_BODY_BYTES

LOCK_TIMEOUT_SECONDS = 30.0
"""How long an append waits for other processes before it is refused."""

_SMALL_BODY_BYTES = 256 * KIB
_SLICE_ROWS = 256
_ALL = 2**62

_T = TypeVar("_T")


class StoredEventLog(EventLog):
    """The `EventLog` port. Opened by `async with`, or by `open` and `aclose`, on the loop that uses it."""

    def __init__(
        self,
        place: LogPlace | None,
        *,
        catalogue: Catalogue,
        open_rule: OpenIndexRule,
        instance_id: InstanceId,
        clock: Clock,
        ids: Ids,
        faults: FaultHook = no_faults,
        on_failure: Callable[[str], None] | None = None,
        lock_timeout_seconds: float = LOCK_TIMEOUT_SECONDS,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            place: A file, made if it isn't there, or a PostgreSQL that holds a log; None: in memory, gone with this
                object.
            catalogue: Topic -> class.
            open_rule: What each event does to the open index.
            instance_id: Who appends here. Its stream must be open, except for the append that opens it.
            clock: Tells `recorded_at`.
            ids: Gives append ids.
            faults: Called at the moments of a transaction, in the writer thread.
            on_failure: Called on the event loop, at most once, with the reason why nothing can be written any more
                (an I/O error); the server must end then.
            lock_timeout_seconds: How long an append waits for other processes.
        """
        self._place = place
        self._catalogue = catalogue
        self._decoder = Decoder(catalogue)
        self._open_rule = open_rule
        self._instance_id = instance_id
        self._clock = clock
        self._ids = ids
        self._faults = faults
        self._on_failure = on_failure
        self._lock_timeout_seconds = lock_timeout_seconds
        self._topics: dict[str, bytes] = {}
        self._news = News()
        self._database: Database | None = None
        self._writer: Writer | None = None
        self._post: Callable[..., object] | None = None

    async def open(self) -> None:
        """Open the log; a file is made if it isn't there.

        Raises:
            StoreUnavailableError: it can't be opened; LogFormatError if it is no log, or one of a newer format.
        """
        self._post = _poster()
        # Opening may wait: for another process that makes the file now, for a server that is just starting.
        self._database = await anyio.to_thread.run_sync(
            lambda: open_database(self._place, lock_timeout_seconds=self._lock_timeout_seconds))
        self._writer = Writer(
            self._database, faults=self._faults, announce=self._announce, on_failure=self._announce_failure,
            lock_timeout_seconds=self._lock_timeout_seconds)

    async def aclose(self) -> None:
        """Finish what was begun and close the log. A second call does nothing."""
        writer, self._writer = self._writer, None
        database, self._database = self._database, None
        if writer is not None and database is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(writer.close)
                await database.aclose()
                # What the thread has announced is delivered before anybody finds the log closed.
                await anyio.lowlevel.checkpoint()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def failure(self) -> str | None:
        """Why nothing can be written any more; None while all is well."""
        return None if self._writer is None else self._writer.failure

    # Writing

    async def append(self, append: Append, caller: Caller) -> Receipt:
        """Store all of `append` durably, or nothing. See the port."""
        if not append.events:
            msg = "an append needs an event"
            raise ValueError(msg)
        if self._writer is None:
            raise _closed()
        append_id = AppendId(f"apd-{self._ids.uuid()}")
        done = anyio.Event()
        submission = self._prepare(append, caller, append_id, done)
        self._writer.submit(submission)
        with anyio.CancelScope(shield=True):
            await done.wait()
        if submission.positions is None:
            assert submission.error is not None
            raise submission.error
        return Receipt(append_id, *submission.positions)

    def _prepare(self, append: Append, caller: Caller, append_id: AppendId, done: anyio.Event) -> Submission:
        now = self._clock.now()
        envelope = encode_envelope(caller, recorded_at=now, instance_id=self._instance_id, append_id=append_id)
        rows: list[NewRow] = []
        for new in append.events:
            stream_id, event = new.stream_id, new.event
            topic = event.TOPIC
            topic_bytes = self._topics.get(topic) or self._topics.setdefault(topic, topic.encode())
            rows.append(NewRow(stream_id, stream_id.encode(), new.version, topic, topic_bytes,
                               envelope + encode_event(event), self._open_rule(stream_id, event)))
        small: list[BodyRow] = []
        large: list[BodyRow] = []
        if append.bodies:
            stored_at_ms = int(now.timestamp() * 1000)
            for body in append.bodies:
                (large if len(body.content) > LARGE_BODY_BYTES else small).append(bodies.row_of(body, stored_at_ms))
        return Submission(
            rows, done.set, bodies=small, large_bodies=large,
            scrubbed=[(stream_id, bodies.key_of(digest)) for digest, stream_id in append.scrubbed],
            instance_id=self._instance_id)

    def _announce(self, batch: Sequence[Submission]) -> None:
        assert self._post is not None
        try:
            self._post(self._wake, batch)
        except RuntimeError:
            return  # the loop has ended without closing the log, so nobody waits any more

    def _wake(self, batch: Sequence[Submission]) -> None:
        for submission in batch:
            submission.wake()
        self._news.tell()

    def _announce_failure(self, reason: str) -> None:
        assert self._post is not None
        if self._on_failure is not None:
            self._post(self._on_failure, reason)

    # Reading

    async def read_stream(
        self, stream_id: StreamId, *, since: int = 0, limit: int | None = None
    ) -> Sequence[RecordedEvent]:
        """Return the events of a stream in order. See the port."""
        if not can_be_name(stream_id):
            return []
        if since:
            wanted = (stream_id, since, stream_id, _ALL if limit is None else limit)
            return list(self._decoder.decode(await self._rows(statements.STREAM_SINCE, wanted)))
        return list(self._decoder.decode(await self._rows(statements.STREAM, (stream_id,))))

    async def read_since_opened(self, stream_id: StreamId) -> tuple[int, Sequence[RecordedEvent]]:
        """Return a stream's version and its events since it was opened. See the port."""
        if not can_be_name(stream_id):
            return 0, []
        version = (await self._rows(statements.VERSION, (stream_id,)))[0][0] or 0
        recorded = list(self._decoder.decode(await self._rows(statements.STREAM_SINCE_OPENED, (stream_id, stream_id))))
        return (recorded[-1].version if recorded else version), recorded

    async def read_log(self, *, after: int = 0, limit: int | None = None) -> AsyncIterator[RecordedEvent]:
        """Yield the events of the whole log with position > `after`, in order. See the port."""
        while limit is None or limit > 0:
            size = _SLICE_ROWS if limit is None else min(limit, _SLICE_ROWS)
            rows = await self._rows(statements.SLICE, (after, size))
            if not rows:
                return
            for recorded in self._decoder.decode(rows):
                yield recorded
            after = rows[-1][0]
            limit = None if limit is None else limit - len(rows)
            await anyio.lowlevel.checkpoint()

    async def read_body(self, stream_id: StreamId, digest: Digest) -> bytes | None:
        """Return the bytes stored for this stream under `digest`, None if there are none. See the port."""
        key = (stream_id, bodies.key_of(digest))
        if not can_be_name(stream_id):
            return None
        sizes = await self._rows(bodies.SIZE, key)
        if not sizes:
            return None
        found = await self._rows(bodies.CONTENT, key, is_large=sizes[0][0] > _SMALL_BODY_BYTES)
        return bytes(found[0][0]) if found else None

    async def open_items(
        self, *, kind: str | Sequence[str] | None = None,
        workspace_key: WorkspaceKey | Sequence[WorkspaceKey] | None = None,
        instance_id: InstanceId | None = None, limit: int | None = None,
    ) -> Sequence[OpenItem]:
        """Return the open index's rows, oldest first. See the port."""
        wanted = open_rows.selection(limit, kind=kind, workspace_key=workspace_key, instance_id=instance_id)
        return [OpenItem(*row) for row in await self._rows(*wanted)]

    async def head(self) -> tuple[int, bytes]:
        """Return position and hash of the newest event. See the port."""
        rows = await self._rows(statements.HEAD)
        return (rows[0][0], rows[0][1]) if rows else (0, GENESIS)

    def follow(self, *, after: int = 0) -> AsyncIterator[RecordedEvent]:
        """Yield events with position > `after` for ever. See the port."""
        async def read(position: int, limit: int) -> Iterable[RecordedEvent]:
            return self._decoder.decode(await self._rows(statements.SLICE, (position, limit)))

        async def changes() -> int:
            return await self._opened().changes()

        return follow(read, changes, self._news, after=after, is_shared=self._place is not None)

    def open_reader(self) -> LogReader:
        """Return the log for another thread to look at, which can't write it; a context manager.

        In memory it is a share of the only connection, and ends with the log. Raises StoreUnavailableError.
        """
        place = self._place or self._opened().shared_reads()
        assert place is not None, "a log is in a place or in memory"
        return LogReader(place, self._catalogue)

    # The open index, checked and made anew

    async def compare_open_index(self) -> Sequence[OpenIndexDifference]:
        """Return each row in which the open index differs from the fold of the log; none when it is right."""
        return await self._read_in_thread(
            lambda connection: open_rows.compare(connection, self._decoder, self._open_rule))

    async def reindex(self) -> Sequence[OpenIndexDifference]:
        """Make the open index equal to the fold of the log, in one transaction; return what was wrong.

        Raises:
            StoreUnavailableError: nothing was changed.
        """
        if self._writer is None:
            raise _closed()
        rebuild = partial(open_rows.rebuild, decoder=self._decoder, rule=self._open_rule)
        return await anyio.to_thread.run_sync(self._writer.run_alone, rebuild)

    def _opened(self) -> Database:
        if self._database is None:
            raise _closed()
        return self._database

    async def _rows(self, statement: str, parameters: tuple[Any, ...] = (), *, is_large: bool = False) -> list[Any]:
        return await self._opened().rows(statement, parameters, is_large=is_large)

    async def _read_in_thread(self, read: Callable[[Connection], _T]) -> _T:
        database = self._opened()

        def run() -> _T:
            with database.reader() as connection:
                return read(connection)

        return await anyio.to_thread.run_sync(run)


def _poster() -> Callable[..., object]:
    """Return what calls a function on the running event loop from another thread, soon, without waiting for it."""
    loop: Any = anyio.lowlevel.current_token().native_token
    post: Callable[..., object] = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
    return post


def _closed() -> StoreUnavailableError:
    return StoreUnavailableError("the event log is closed; nothing was stored", is_final=True)
