"""From a stream to a state and back: fold what is recorded, decide, and get events that know their place."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

from codespace_es.ports.kept_folds import KeptFold, KeptFolds
from codespace_es.ports.log import Append, EventLog, NewBody, NewEvent, VersionConflictError
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.event import Caller, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId

State = TypeVar("State")
Kept = TypeVar("Kept")
Command = TypeVar("Command")


@dataclass(frozen=True, slots=True)
class Folded(Generic[State, Command]):
    """A stream's state, and the version it was folded at: what a decision is based on."""

    decider: Decider[State, Command]
    stream_id: StreamId
    version: int
    state: State

    def decide(self, command: Command) -> tuple[NewEvent, ...]:
        """Return the events of a decision, placed behind what was folded. Raises what the decider raises."""
        events = self.decider.decide(self.state, command)
        return tuple(
            NewEvent(self.stream_id, self.version + number, event) for number, event in enumerate(events, start=1)
        )


async def fold(log: EventLog, decider: Decider[State, Command], stream_id: str) -> Folded[State, Command]:
    """Return what the log says of `stream_id` now. Raises what `EventLog.read_stream` raises."""
    recorded = await log.read_stream(StreamId(stream_id))
    return Folded(decider, StreamId(stream_id), len(recorded), decider.fold_recorded(recorded))


async def fold_on(
    log: EventLog, kept: KeptFolds, decider: Decider[State, Command], stream_id: StreamId
) -> Folded[State, Command]:
    """Return what the log says now of a stream that never ends: what was kept of it, and what has come since.

    Raises what `EventLog.read_stream` raises.
    """
    def evolve(state: State, recorded: RecordedEvent) -> State:
        return decider.evolve(state, recorded.event)

    version, state = await keep_on(log, kept, stream_id, decider.initial_state, evolve)
    return Folded(decider, stream_id, version, state)


async def keep_on(
    log: EventLog, kept: KeptFolds, stream_id: StreamId, initial: Kept, take_in: Callable[[Kept, RecordedEvent], Kept]
) -> tuple[int, Kept]:
    """Return a stream's version, and what `take_in` makes of its events: kept, and brought up to date at each call.

    Raises what `EventLog.read_stream` raises.
    """
    known = kept.get(stream_id)
    recorded = [] if known is None else await log.read_stream(stream_id, since=known.position)
    if known is None or not recorded:
        known, recorded = KeptFold(0, 0, initial), await log.read_stream(stream_id)
    else:
        recorded = recorded[1:]
    told: Kept = reduce(take_in, recorded, known.state)
    version = known.version + len(recorded)
    if recorded:
        kept.keep(stream_id, KeptFold(recorded[-1].position, version, told))
    return version, told


def fresh(decider: Decider[State, Command], stream_id: str) -> Folded[State, Command]:
    """Return the state of a stream that can't exist yet, since its id was just made."""
    return Folded(decider, StreamId(stream_id), 0, decider.initial_state)


async def append_decided(
    log: EventLog, decider: Decider[State, Command], stream_id: str, command: Command, caller: Caller,
    *, bodies: tuple[NewBody, ...] = (),
) -> bool:
    """Decide `command` against one stream and append what follows, again and again until nobody was quicker.

    Returns whether anything was appended. Raises what the decider and `EventLog.append` raise.
    """
    while True:
        events = (await fold(log, decider, stream_id)).decide(command)
        if not events:
            return False
        try:
            await log.append(Append(events, bodies), caller)
        except VersionConflictError:
            continue
        return True
