"""An instance's own story: it starts, leaves a trace of the calls it refused, and stops.

The OS lock is taken before `instance.started`, so that whoever finds that event and a free lock knows of a death.
Refusals are recorded without making anybody wait for the commit; a full queue drops none, it slows the refused.
Source: decisions 1, 8; event catalogue, *instance*.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
from anyio.abc import TaskGroup

from codespace_es.aggregates.instance import (
    INSTANCE,
    InstanceCallRefused,
    InstanceStarted,
    InstanceStopped,
    StartInstance,
    StopInstance,
)
from codespace_es.aggregates.store import STORE, CreateStore
from codespace_es.folding import fold, fresh
from codespace_es.ports.log import Append, NewEvent, StoreUnavailableError, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import STORE_STREAM, RequestId, StreamId

_REFUSALS_WAITING_MAX = 1_000


class InstanceLife:
    """This server process, as its own stream tells it."""

    def __init__(self, world: World, caller: Caller) -> None:
        self._world = world
        self._caller = caller
        self._version = 0
        self._stop_reason: InstanceStopped | None = None
        self._send, self._receive = anyio.create_memory_object_stream[tuple[InstanceCallRefused, Caller]](
            _REFUSALS_WAITING_MAX
        )

    async def record_refusal(self, refused: InstanceCallRefused, caller: Caller) -> None:
        """Have a refusal recorded soon; returns before it is durable. An instance that ends records none any more."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._send.send((refused, caller))

    def stop_because(self, stopped: InstanceStopped) -> None:
        """Say why the instance ends; the first reason given is the one recorded."""
        self._stop_reason = self._stop_reason or stopped

    async def start(self, started: InstanceStarted) -> None:
        """Append `instance.started`, and `store.created` before it in a new log.

        Raises:
            StoreUnavailableError: the log can't be written.
        """
        while True:
            store = await fold(self._world.log, STORE, STORE_STREAM)
            created = store.decide(CreateStore(str(self._world.ids.uuid()), started.software))
            events = fresh(INSTANCE, self._world.instance_id).decide(StartInstance(started))
            try:
                await self._world.log.append(Append(created + events), self._caller)
            except VersionConflictError:
                continue  # another server has created the store meanwhile
            self._version = len(events)
            return

    async def stop(self) -> None:
        """Append `instance.stopped`, after every refusal that still waits."""
        reason = self._stop_reason or InstanceStopped(reason="done")
        state = await fold(self._world.log, INSTANCE, self._world.instance_id)
        events = state.decide(StopInstance(reason))
        if events:
            await self._world.log.append(Append(events), self._caller)

    async def keep_record(self) -> None:
        """Append refusals as they come, until no more are taken."""
        async for refused, caller in self._receive:
            event = NewEvent(StreamId(self._world.instance_id), self._version + 1, refused)
            try:
                await self._world.log.append(Append((event,)), caller)
            except StoreUnavailableError:
                continue  # a trace is lost with the log that would have kept it; the refusal was answered
            self._version += 1

    def close_record(self) -> None:
        """Take no more refusals; what waits is still appended."""
        self._send.close()

    @contextmanager
    def open_record(self) -> Iterator[None]:
        """Have both ends of the way of refusals closed in the end, however early that comes."""
        with self._send, self._receive:
            yield


@asynccontextmanager
async def living(world: World, started: InstanceStarted, caller: Caller) -> AsyncIterator[InstanceLife]:
    """Record an instance's life from start to stop; its lock is in hand."""
    life = InstanceLife(world, caller)
    with life.open_record():
        await life.start(started)
        tasks: TaskGroup
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(life.keep_record)
            try:
                yield life
            finally:
                life.close_record()
    with anyio.CancelScope(shield=True):
        await life.stop()


def quiet_caller(world: World) -> Caller:
    """Return the caller of what the server does by itself."""
    return Caller("recovery", RequestId(f"req-{world.ids.uuid()}"))
