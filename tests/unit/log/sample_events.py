"""Events, an open rule and the parts that tests of the log share. They stand for the product's own, not beside them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID, uuid4

from adapters.log.event_log import StoredEventLog
from adapters.log.places import LogPlace
from adapters.settings.postgres_address import PostgresAddress, is_postgres
from codespace_es.ports.log import Append, NewBody, NewEvent, OpenChange
from codespace_es.vocabulary.event import Body, Caller, Event
from codespace_es.vocabulary.identifiers import InstanceId, RequestId, StreamId, WorkspaceKey

ME = InstanceId("inst-00000000-0000-4000-8000-000000000001")
OTHER = InstanceId("inst-00000000-0000-4000-8000-000000000002")
WORKSPACE = WorkspaceKey("wsp-00000000-0000-5000-8000-000000000001")
CALLER = Caller("mcp", RequestId("req-00000000-0000-4000-8000-000000000001"), "tester/1.0")


class InstanceStarted(Event):
    TOPIC: ClassVar[str] = "instance.started.v1"

    pid: int = 1


class InstanceRecovered(Event):
    TOPIC: ClassVar[str] = "instance.recovered.v1"


class OperationMinted(Event):
    TOPIC: ClassVar[str] = "operation.minted.v1"

    workspace_key: WorkspaceKey = WORKSPACE
    text: str = ""
    note: str | None = None
    request: Body | None = None


class OperationFinished(Event):
    TOPIC: ClassVar[str] = "operation.finished.v1"

    status: str = "applied"


class CounterIncreased(Event):
    """Opens and closes nothing."""

    TOPIC: ClassVar[str] = "counter.increased.v1"

    writer: int = 0
    number: int = 0


class FromTheFuture(Event):
    """Known to nobody's catalogue."""

    TOPIC: ClassVar[str] = "future.arrived.v9"


CATALOGUE: dict[str, type[Event]] = {
    kind.TOPIC: kind
    for kind in (InstanceStarted, InstanceRecovered, OperationMinted, OperationFinished, CounterIncreased)
}


def open_rule(_stream_id: StreamId, event: Event) -> OpenChange | None:
    """What the sample events do to the open index."""
    match event:
        case InstanceStarted():
            return OpenChange(opens=(("instance", None),))
        case OperationMinted():
            return OpenChange(opens=(("operation", event.workspace_key),))
        case InstanceRecovered() | OperationFinished():
            return OpenChange(closes=True)
        case _:
            return None


@dataclass
class SteppingClock:
    """A clock that goes on by a millisecond each time it is read."""

    at: datetime = field(default_factory=lambda: datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC))

    def now(self) -> datetime:
        self.at += timedelta(milliseconds=1)
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


class RandomIds:
    def uuid(self) -> UUID:
        return uuid4()


def make_log(place: LogPlace | None, *, instance_id: InstanceId = ME, **options: Any) -> StoredEventLog:
    """Return a log of sample events, not opened yet."""
    return StoredEventLog(place, **{"catalogue": CATALOGUE, "open_rule": open_rule, "instance_id": instance_id,
                                   "clock": SteppingClock(), "ids": RandomIds(), **options})


def written(place: LogPlace) -> str:
    """Return a place as an argument of a process."""
    return place.url if isinstance(place, PostgresAddress) else str(place)


def place_of(text: str) -> LogPlace:
    """Return the place that such an argument names."""
    return PostgresAddress(text) if is_postgres(text) else Path(text)


def started(instance_id: InstanceId = ME) -> Append:
    """The append that opens an instance."""
    return Append((NewEvent(StreamId(instance_id), 1, InstanceStarted()),))


def minted(number: int, *, text: str = "", bodies: tuple[NewBody, ...] = ()) -> Append:
    """The first event of operation `number`."""
    return Append((NewEvent(operation(number), 1, OperationMinted(text=text)),), bodies)


def finished(number: int, version: int = 2) -> Append:
    return Append((NewEvent(operation(number), version, OperationFinished()),))


async def fill(place: LogPlace, count: int = 3, *, text: str = "", **options: Any) -> None:
    """Leave a log of an instance and `count` operations with bodies, the first of them finished."""
    async with make_log(place, **options) as log:
        await log.append(started(), CALLER)
        for number in range(1, count + 1):
            body = NewBody(operation(number), "request", b"body %d" % number)
            await log.append(minted(number, text=text, bodies=(body,)), CALLER)
        await log.append(finished(1), CALLER)


def increased(name: str, version: int, **fields: int) -> Append:
    return Append((NewEvent(StreamId(name), version, CounterIncreased(**fields)),))


def operation(number: int) -> StreamId:
    return StreamId(f"op-00000000-0000-4000-8000-{number:012d}")
