"""What an audit remembers while it walks through a log: the streams that are open, and little else.

A stream that is over is forgotten; when one more event of it comes, its past is read again. So memory grows with what
is open at a time, never with the log. A stack is over each time that it is empty, and a claim each time that nobody
looks at it, and then they come again with a longer past. That isn't to be read each time: as many as were met last
rest, and of the others the last event tells the state. Streams that are damaged are set aside: what can't be folded
isn't judged.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from codespace_es.aggregates.approval import APPROVAL
from codespace_es.aggregates.claim import CLAIM, ClaimTaken
from codespace_es.aggregates.instance import INSTANCE
from codespace_es.aggregates.instance import Running as RunningInstance
from codespace_es.aggregates.operation import OPERATION
from codespace_es.aggregates.pending import PENDING, PLACE
from codespace_es.aggregates.process import PROCESS
from codespace_es.aggregates.steering import STEERING
from codespace_es.aggregates.store import STORE
from codespace_es.aggregates.workspace import WORKSPACE, Bound
from codespace_es.open_index import open_change
from codespace_es.ports.log import OpenItem, StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.event import Envelope, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.finding import Breach, Findings, Law
from replay.source import LogSource

DECIDERS: Mapping[str, Decider[Any, Any]] = MappingProxyType({
    "store": STORE,
    "inst": INSTANCE,
    "wsp": WORKSPACE,
    "claim": CLAIM,
    "op": OPERATION,
    "steer": STEERING,
    "appr": APPROVAL,
    "proc": PROCESS,
    "pend": PENDING,
    "act": PLACE,
})
"""How the streams of each kind are folded, by what stands before the first `-` of their name."""

_NEVER_OVER = ("store", "wsp-", "steer-")
_COME_AGAIN = ("pend-", "claim-")
_RESTING_MAX = 1_000


class Seen(NamedTuple):
    """One event, and the states of its stream on either side of it."""

    recorded: RecordedEvent
    before: object
    after: object

    @property
    def stream_id(self) -> str:
        """The stream's name, to be compared with the ids that events hold."""
        return self.recorded.stream_id


    def breach(self, law: Law, problem: str) -> Breach:
        """Return that `law` doesn't hold here, since `problem`."""
        text = f"{self.recorded.stream_id}@{self.recorded.version} ({self.recorded.topic}): {problem}."
        return Breach(law, self.recorded.position, self.recorded.stream_id, text)


class SeenAppend(NamedTuple):
    """The events of one transaction, in order, as far as they could be read and folded."""

    envelope: Envelope
    events: tuple[Seen, ...]
    is_whole: bool
    """False: damage in it or right beside it; laws that need all of its events can't be applied."""


class Memory:
    """Folds a log event by event, and knows at each moment what is open."""

    def __init__(self, source: LogSource, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._states: dict[StreamId, tuple[int, object]] = {}
        self._resting: dict[StreamId, tuple[int, object]] = {}
        self.open: dict[tuple[str, str], OpenItem] = {}
        """The open index as the fold has it, by stream and kind."""
        self.damaged: set[str] = set()
        """Streams that can't be folded any further."""

    @property
    def stream_count(self) -> int:
        """How many streams are remembered now."""
        return len(self._states)

    def state(self, stream_id: str) -> object | None:
        """Return the state of a stream that is open, or of the store or a workspace; None of any other."""
        known = self._states.get(StreamId(stream_id))
        return None if known is None else known[1]

    def is_running(self, instance_id: str) -> bool:
        """Return whether the server's own stream says that it runs."""
        return isinstance(self.state(instance_id), RunningInstance)

    def is_bound(self, workspace_key: str) -> bool:
        """Return whether the directory of a workspace is on record."""
        return isinstance(self.state(workspace_key), Bound)

    def set_aside(self, stream_id: str) -> None:
        """Judge a stream no more."""
        self.damaged.add(stream_id)
        self._states.pop(StreamId(stream_id), None)

    def fold(self, recorded: RecordedEvent, envelope: Envelope) -> Seen | None:
        """Fold one event into its stream; None, with the breach noted, if it can't follow."""
        stream_id = recorded.stream_id
        if stream_id in self.damaged:
            return None
        decider = DECIDERS.get(stream_id.partition("-")[0])
        if decider is None:
            self._breach(Law.FOLDS, recorded, "no kind of stream is named like this")
            return None
        known = self._recall(recorded, decider)
        if known is None:
            return None
        version, before = known
        if recorded.version != version + 1:
            self._breach(Law.VERSIONS, recorded, f"version {recorded.version} follows version {version}")
            return None
        try:
            after = decider.evolve(before, recorded.event)
        except AssertionError as refusal:
            self._breach(Law.FOLDS, recorded, str(refusal))
            return None
        self._states[stream_id] = (recorded.version, after)
        self._index(recorded, envelope)
        return Seen(recorded, before, after)

    def forget(self, append: SeenAppend) -> None:
        """Let go of those streams of `append` that are over."""
        for seen in append.events:
            stream_id = seen.recorded.stream_id
            kind = _INDEX_KINDS.get(stream_id.partition("-")[0])
            if not stream_id.startswith(_NEVER_OVER) and (stream_id, kind) not in self.open:
                state = self._states.pop(stream_id, None)
                if state is not None and stream_id.startswith(_COME_AGAIN):
                    self._rest(stream_id, state)

    def _rest(self, stream_id: StreamId, state: tuple[int, object]) -> None:
        """Keep what may come again aside, in the place of the one that has rested longest."""
        self._resting[stream_id] = state
        if len(self._resting) > _RESTING_MAX:
            del self._resting[next(iter(self._resting))]

    def _recall(self, recorded: RecordedEvent, decider: Decider[Any, Any]) -> tuple[int, object] | None:
        """Return version and state of the stream before `recorded`, read again if it was forgotten."""
        known = self._states.get(recorded.stream_id) or self._resting.pop(recorded.stream_id, None)
        if known is not None:
            return known
        if recorded.version == 1:
            return 0, decider.initial_state
        try:
            short = self._recall_last(recorded) if recorded.stream_id.startswith(_COME_AGAIN) else None
            return short or self._recall_all(recorded, decider)
        except (UnknownTopicError, StoreUnavailableError, AssertionError):
            # Something before or after is damaged; the walk itself names it where it stands.
            self.set_aside(recorded.stream_id)
            return None

    def _recall_last(self, recorded: RecordedEvent) -> tuple[int, object] | None:
        """Return version and state by the event before `recorded`, of a stream that could be folded up to there."""
        last = next(self._source.walk_stream(recorded.stream_id, after=recorded.version - 2), None)
        if last is None or last.version != recorded.version - 1 or last.position >= recorded.position:
            return None  # versions are missing: all of it says which is the last
        taken = isinstance(last.event, ClaimTaken)
        if recorded.stream_id.startswith("claim-"):
            return last.version, CLAIM.fold([last.event] if taken else [])
        return last.version, PENDING.initial_state  # what isn't open is empty

    def _recall_all(self, recorded: RecordedEvent, decider: Decider[Any, Any]) -> tuple[int, object]:
        version, state = 0, decider.initial_state
        for each in self._source.walk_stream(recorded.stream_id):
            if each.position < recorded.position:
                version, state = each.version, decider.evolve(state, each.event)
        return version, state

    def _index(self, recorded: RecordedEvent, envelope: Envelope) -> None:
        stream_id = recorded.stream_id
        change = open_change(stream_id, recorded.event)
        if change is None:
            return
        if change.closes:
            for kind in _INDEX_KINDS.values():
                self.open.pop((stream_id, kind), None)
        for opened, workspace_key in change.opens:
            item = OpenItem(stream_id, opened, workspace_key, envelope.instance_id, recorded.position)
            self.open.setdefault((stream_id, opened), item)

    def _breach(self, law: Law, recorded: RecordedEvent, problem: str) -> None:
        text = f"{recorded.stream_id}@{recorded.version} ({recorded.topic}): {problem}."
        self._findings.add(law, recorded.position, recorded.stream_id, text)
        self.set_aside(recorded.stream_id)


_INDEX_KINDS: Mapping[str, str] = MappingProxyType({
    "inst": "instance",
    "op": "operation",
    "appr": "approval",
    "proc": "process",
    "pend": "pending",
    "steer": "steering",
})
"""Kind of row in the open index, by what stands before the first `-` of a stream's name."""
