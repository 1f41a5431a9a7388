"""The load for the log's benchmark: events of the size of real ones, and a process that saturates a log.

Run as a script it is one of several saturated writers: `python log_load.py PATH NUMBER SECONDS` prints how many appends
it made and the slowest of them in milliseconds.
"""

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar
from uuid import UUID

import anyio

from adapters.log.event_log import StoredEventLog
from adapters.log.places import LogPlace
from codespace_es.ports.log import Append, NewBody, NewEvent, OpenChange
from codespace_es.vocabulary.event import Body, Caller, Event
from codespace_es.vocabulary.file_change import PlannedFile
from codespace_es.vocabulary.identifiers import InstanceId, RequestId, StreamId, WorkspaceKey, claim_stream

WORKSPACE = WorkspaceKey("wsp-5d1c2b34-0000-5000-8000-000000000001")
CALLER = Caller("mcp", RequestId("req-5d1c2b34-0000-4000-8000-000000000001"), "benchmark/1.0")


class InstanceStarted(Event):
    TOPIC: ClassVar[str] = "instance.started.v1"

    pid: int


class ClaimTaken(Event):
    TOPIC: ClassVar[str] = "claim.taken.v1"

    kind: str
    holder_id: str
    fingerprint: str


class OperationMinted(Event):
    TOPIC: ClassVar[str] = "operation.minted.v1"

    workspace_key: WorkspaceKey
    workspace_id: str
    source: str
    check_only: bool
    fingerprint: str
    operation_key: str | None = None
    request: Body
    expected_versions: dict[str, str]
    plan: list[PlannedFile]
    made_directories: list[str]


class OperationFinished(Event):
    TOPIC: ClassVar[str] = "operation.finished.v1"

    status: str
    is_swap_atomic: bool


CATALOGUE: dict[str, type[Event]] = {
    kind.TOPIC: kind for kind in (InstanceStarted, ClaimTaken, OperationMinted, OperationFinished)}


def open_rule(_stream_id: StreamId, event: Event) -> OpenChange | None:
    """What these events do to the open index."""
    match event:
        case OperationMinted():
            return OpenChange(opens=(("operation", event.workspace_key),))
        case OperationFinished():
            return OpenChange(closes=True)
        case InstanceStarted():
            return OpenChange(opens=(("instance", None),))
        case _:
            return None


class WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class BufferedIds:
    """Random ids from blocks of random bytes: one system call for 256 of them."""

    def __init__(self) -> None:
        self._block = b""

    def uuid(self) -> UUID:
        if not self._block:
            self._block = os.urandom(4096)
        taken, self._block = self._block[:16], self._block[16:]
        return UUID(bytes=taken, version=4)


IDS = BufferedIds()


def make_log(place: LogPlace | None, number: int = 1) -> StoredEventLog:
    return StoredEventLog(place, catalogue=CATALOGUE, open_rule=open_rule, instance_id=instance(number),
                          clock=WallClock(), ids=IDS)


def instance(number: int) -> InstanceId:
    return InstanceId(f"inst-5d1c2b34-0000-4000-8000-{number:012d}")


def start(number: int = 1) -> Append:
    return Append((NewEvent(StreamId(instance(number)), 1, InstanceStarted(pid=number)),))


def mint(image_bytes: int = 4_000) -> Append:
    """A patch of one file as it begins: its key's claim, the plan, the patch text, the file before and after."""
    operation = StreamId(f"op-{IDS.uuid()}")
    key = str(IDS.uuid())
    request = NewBody(operation, "request", os.urandom(400))
    before, after = (NewBody(operation, "image", os.urandom(image_bytes)) for _ in range(2))
    plan = PlannedFile(path="src/package/module.py", kind="update", before=before.body.digest,
                       after=after.body.digest, before_bytes=image_bytes, after_bytes=image_bytes, mode=0o644,
                       before_mode=0o644)
    fingerprint = request.body.digest
    return Append((
        NewEvent(claim_stream("operation_key", key), 1,
                 ClaimTaken(kind="operation_key", holder_id=operation, fingerprint=fingerprint)),
        NewEvent(operation, 1, OperationMinted(
            workspace_key=WORKSPACE, workspace_id="demo", source="apply_patch", check_only=False,
            fingerprint=fingerprint, operation_key=key, request=request.body,
            expected_versions={plan.path: plan.before}, plan=[plan], made_directories=[])),
    ), (request, before, after))


def finish(operation: StreamId) -> Append:
    return Append((NewEvent(operation, 2, OperationFinished(status="applied", is_swap_atomic=True)),))


def claim() -> Append:
    """One small event on a stream of its own."""
    name = str(IDS.uuid())
    return Append((NewEvent(claim_stream("hold", name), 1,
                            ClaimTaken(kind="hold", holder_id=f"appr-{name}", fingerprint="sha256:" + "0" * 64)),))


async def saturate(path: str, number: int, seconds: float) -> None:
    """Append without a pause for so many seconds; print how many and the slowest."""
    slowest, count = 0.0, 0
    async with make_log(Path(path), number) as log:
        await log.append(start(number), CALLER)
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end:
            await log.append(claim(), CALLER)
            slowest = max(slowest, time.perf_counter() - begun)
            count += 1
    print(count, round(slowest * 1000, 1))


if __name__ == "__main__":
    anyio.run(saturate, sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
