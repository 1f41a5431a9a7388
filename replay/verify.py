"""`verify`: walk once through a log and say whether it is what this product wrote, and where not.

1. Each row follows from the one before it: position and hash.
2. Each row is an event of a known topic and follows in its stream: version and fold.
3. Each append keeps the laws of `laws`, and every content that it names stands there (`bodies`).
4. The open index equals what the fold has open.

Before that the file itself is looked at: whether its tables are ours, and whole.

Reads the log as of one moment, so that servers may write to it meanwhile.
"""

import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.log.chain import GENESIS, link
from adapters.log.rows import Decoder, StoredRow
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import Catalogue, OpenItem, StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.event import Envelope, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.bodies import BodyLaw
from replay.finding import Finding, Findings, Law
from replay.laws import find_breaches
from replay.memory import Memory, Seen, SeenAppend
from replay.source import LogSource, RawRow


class VerifyReport(BaseModel):
    """What a log was found to be."""

    model_config = ConfigDict(frozen=True)

    is_ok: bool = Field(description="Every law holds.")
    events: int = Field(description="Events read.")
    head_position: int = Field(description="Position of the newest event.")
    head_hash: str = Field(description="Its hash, hex: written down elsewhere, it proves later that nothing before it "
                                       "has changed.")
    open_items: int = Field(description="Things that are open.")
    bodies: int = Field(description="Stored contents read and hashed.")
    body_bytes: int = Field(description="Their bytes.")
    findings: tuple[Finding, ...] = Field(description="One a broken law, by position.")
    duration_ms: int = Field(description="How long it took.")
    events_per_second: int = Field(description="Events read a second.")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A head that was written down before: the log must still have it. The only proof against a cut-off end."""

    position: int
    hash: str


@dataclass(slots=True)
class _Group:
    """The events of one append, as they come."""

    envelope: Envelope
    events: list[Seen] = field(default_factory=list)
    is_whole: bool = True


def verify(source: LogSource, *, catalogue: Catalogue = CATALOGUE, anchor: Anchor | None = None) -> VerifyReport:
    """Return what is right and wrong with the log behind `source`.

    Raises:
        StoreUnavailableError: the file itself can't be read.
    """
    return _Verification(source, catalogue, anchor).run()


class _Verification:
    """One walk. Its parts share what has been seen so far."""

    def __init__(self, source: LogSource, catalogue: Catalogue, anchor: Anchor | None) -> None:
        self._source = source
        self._anchor = anchor
        self._decoder = Decoder(catalogue)
        self._findings = Findings()
        self._memory = Memory(source, self._findings)
        self._bodies = BodyLaw(source, self._findings)
        self._row: RawRow | None = None
        self._position, self._hash = 0, GENESIS
        self._events = 0
        self._is_damage_near = False
        self._envelope_line = b"\n"
        self._envelope: Envelope | None = None

    def run(self) -> VerifyReport:
        """Walk through the whole log and report, as of one moment: what is removed meanwhile is still there for us."""
        started = time.perf_counter()
        with self._source.moment():
            self._walk()
        return self._report(time.perf_counter() - started)

    def _walk(self) -> None:
        for problem in self._source.damage():
            self._findings.add(Law.FILE, 0, None, f"{problem}.")
        last, stored_open = self._source.open_items_at_head()
        rows = self._source.raw_rows(last=last)
        first = next(rows, None)
        for append in self._appends(first, rows):
            self._findings.extend(find_breaches(append, self._memory))
            self._bodies.check(append)
            self._memory.forget(append)
        self._bodies.finish()
        self._compare_open(stored_open)
        if self._anchor is not None and self._anchor.position > self._position:
            text = f"The log ends at {self._position}; it once reached {self._anchor.position}."
            self._findings.add(Law.POSITIONS, self._position + 1, None, text)

    def _report(self, seconds: float) -> VerifyReport:
        findings = self._findings.told()
        return VerifyReport(
            is_ok=not findings,
            events=self._events,
            head_position=self._position,
            head_hash=self._hash.hex(),
            open_items=len(self._memory.open),
            bodies=self._bodies.count,
            body_bytes=self._bodies.total_bytes,
            findings=findings,
            duration_ms=round(seconds * 1000),
            events_per_second=round(self._events / seconds) if seconds else 0,
        )

    def _appends(self, first: RawRow | None, rows: Iterator[RawRow]) -> Iterator[SeenAppend]:
        """Yield the log append by append, each folded before it is yielded."""
        group: _Group | None = None
        for recorded in self._recorded(first, rows):
            envelope = self._read_envelope(recorded)
            if envelope is None:
                continue
            if group is None or group.envelope.append_id != envelope.append_id:
                if group is not None:
                    yield self._closed(group)
                group = _Group(envelope, is_whole=not self._is_damage_near)
                self._is_damage_near = False
            seen = self._memory.fold(recorded, envelope)
            if seen is None or self._is_damage_near:
                group.is_whole = False
            if seen is not None:
                group.events.append(seen)
        if group is not None:
            yield self._closed(group)

    def _closed(self, group: _Group) -> SeenAppend:
        return SeenAppend(group.envelope, tuple(group.events), group.is_whole and not self._is_damage_near)

    def _recorded(self, first: RawRow | None, rows: Iterator[RawRow]) -> Iterator[RecordedEvent]:
        """Yield each event that can be read; note, and step over, each row that can't."""
        stored = self._linked(first, rows)
        while True:
            try:
                yield from self._decoder.decode(stored)
            except UnknownTopicError as error:
                self._damaged(Law.TOPICS, str(error))
            except StoreUnavailableError as error:
                if not isinstance(error.__cause__, ValidationError | AttributeError | TypeError):
                    raise
                self._damaged(Law.EVENTS, str(error))
            else:
                return

    def _linked(self, first: RawRow | None, rows: Iterator[RawRow]) -> Iterator[StoredRow]:
        """Yield each row without its hash, which has been compared with what the row before it demands."""
        row = first
        while row is not None:
            self._row = row
            self._events += 1
            position, stream_id, version, topic, state, stored = row
            if position != self._position + 1:
                text = f"The events {self._position + 1} to {position - 1} are missing."
                self._findings.add(Law.POSITIONS, self._position + 1, None, text)
                self._is_damage_near = True
            elif _expected_hash(self._hash, row) != stored:
                text = f"{stream_id}@{version} ({topic}) is not what was appended here."
                self._findings.add(Law.CHAIN, position, stream_id, text)
            if self._anchor is not None and position == self._anchor.position:
                self._compare_anchor(self._anchor, stream_id, stored)
            # What isn't even a hash can't begin the next link.
            self._position, self._hash = position, stored if isinstance(stored, bytes) else GENESIS
            yield position, StreamId(stream_id), version, topic, state
            row = next(rows, None)

    def _compare_anchor(self, anchor: Anchor, stream_id: str, stored: object) -> None:
        if not isinstance(stored, bytes) or stored.hex() != anchor.hash:
            text = f"Position {anchor.position} once had the hash {anchor.hash}: the log was written anew."
            self._findings.add(Law.CHAIN, anchor.position, stream_id, text)

    def _read_envelope(self, recorded: RecordedEvent) -> Envelope | None:
        """Return the envelope; that of the event before, if it has the same bytes, as all of one append have."""
        assert self._row is not None
        state = self._row[4]
        if self._envelope is not None and state.startswith(self._envelope_line):
            return self._envelope
        try:
            self._envelope = recorded.envelope
        except ValidationError:
            self._damaged(Law.EVENTS, f"{recorded.stream_id}@{recorded.version} has an envelope that can't be read.")
            return None
        self._envelope_line = state[: state.index(b"\n") + 1]
        return self._envelope

    def _damaged(self, law: Law, problem: str) -> None:
        """Note that the present row is no event; its stream can't be folded any more."""
        assert self._row is not None
        self._findings.add(law, self._row[0], self._row[1], problem)
        self._memory.set_aside(self._row[1])
        self._is_damage_near = True

    def _compare_open(self, items: Sequence[OpenItem]) -> None:
        stored: dict[tuple[str, str], OpenItem] = {(item.stream_id, item.kind): item for item in items}
        folded = self._memory.open
        for key in sorted({*stored, *folded}):
            row, item = stored.get(key), folded.get(key)
            known = item or row
            if known is None or row == item or key[0] in self._memory.damaged:
                continue
            if row is None:
                problem = f"{key[0]} is open, but not in the open index."
            elif item is None:
                problem = f"{key[0]} is in the open index, but not open."
            else:
                problem = f"{key[0]} stands in the open index with other particulars than in the log."
            self._findings.add(Law.OPEN_INDEX, known.position, key[0], problem)


def _expected_hash(previous: bytes, row: RawRow) -> bytes | None:
    """Return the hash that `row` should have; None for a row that can't have been written by this product."""
    position, stream_id, version, topic, state, _ = row
    try:
        return link(previous, position, stream_id.encode(), version, topic.encode(), state)
    except (TypeError, AttributeError, struct.error):
        return None
