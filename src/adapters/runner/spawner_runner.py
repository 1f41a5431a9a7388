"""The runner that speaks to a spawner over a socket, whoever started it. It is linked at the first command.

A fallen link is replaced at the next command: what the old spawner ran is dead, and its locks say when.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from errno import E2BIG, ENOSPC
from socket import socket
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from adapters.runner.conversation import Conversation, report_of
from adapters.runner.live_process import GatedProcess
from adapters.runner.orphans import end_orphan
from adapters.runner.output_window import OutputWindow, make_ring
from adapters.runner.spawner_link import SpawnerLink
from adapters.spawner.report import NotReadyError
from adapters.wire import Link, Message, WireError
from codespace_es.ports.locks import Held
from codespace_es.ports.runner import (
    LimitReachedError,
    NotStartedError,
    Orphan,
    RunnerCommand,
    SandboxReport,
)


class SpawnerSource(Protocol):
    """Where the socket of a spawner comes from."""

    async def connect(self) -> socket:
        """Return a socket whose other end is a spawner of its own, new. Raises RunnerLostError."""
        ...

    async def probe(self) -> Message | None:
        """Return what commands are confined by there, if that can be told without a link. Raises RunnerLostError."""
        ...

    async def settle(self) -> None:
        """Return when the spawner that was connected is gone, its link being down; soon. Never raises."""
        ...

    def wake(self) -> None:
        """Have the spawner go on if somebody has stopped it and that is within reach."""
        ...


class SpawnerRunner:
    """Starts commands through a spawner. Implements `Runner`."""

    def __init__(self, source: SpawnerSource, tasks: TaskGroup, *, instance_lock: Held, processes_max: int) -> None:
        self._source = source
        self._tasks = tasks
        self._instance_lock = instance_lock
        self._processes_max = processes_max
        self._live: set[str] = set()
        self._link: SpawnerLink | None = None
        self._linking = anyio.Lock(fast_acquire=True)
        self._listeners: list[Callable[[], Awaitable[None]]] = []
        self._sandbox: SandboxReport | None = None

    async def start(
        self, command: RunnerCommand, *, lease: Held | None, meanwhile: Callable[[], Awaitable[None]] | None = None
    ) -> GatedProcess:
        """Fork a child and hold it at its gate; `meanwhile` is awaited while it is on its way.

        Raises:
            LimitReachedError: as many live as may; nothing was started.
            NotStartedError: nothing was started.
            RunnerLostError: the link has fallen.
        """
        process_id = command.process_id
        if len(self._live) >= self._processes_max:
            raise LimitReachedError(
                f"{len(self._live)} processes are live, and {self._processes_max} are allowed: "
                f"{', '.join(sorted(self._live))}."
            )
        self._live.add(process_id)
        conversation = Conversation(process_id, on_over=lambda: self._live.discard(process_id))
        try:
            link = await self._linked()
            link.begin(conversation, _request(command), None if lease is None else lease.fileno())
        except WireError as error:
            self._live.discard(process_id)
            raise NotStartedError(f"The command is too long: {error}.", E2BIG) from error
        except OSError as error:
            self._live.discard(process_id)
            raise NotStartedError(f"This server can't have a process made: {error.strerror}.", error.errno) from error
        except BaseException:
            self._live.discard(process_id)
            raise
        try:
            window = _window(command)
            if meanwhile is not None:
                await meanwhile()
            await _until_at_gate(link, conversation)
        except BaseException:
            self._tasks.start_soon(_forget, link, conversation)
            raise
        return GatedProcess(command, conversation, window, link=link, tasks=self._tasks)

    async def end_orphan(self, orphan: Orphan) -> int:
        """End what is left of a command that no runner watches any more. See the port."""
        return await end_orphan(orphan)

    async def sandbox(self) -> SandboxReport:
        """Return what commands are confined by here. Raises RunnerLostError."""
        if self._sandbox is None:
            report = await self._source.probe() or await (await self._linked()).probe()
            self._sandbox = report_of(report)
        return self._sandbox

    async def on_loss(self, listener: Callable[[], Awaitable[None]]) -> None:
        """Have `listener` called once a link falls: its trees are dead or dying."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """End every tree and the spawner, and return when they are gone."""
        if self._link is not None:
            self._link.close()
            await self._source.settle()

    async def _linked(self) -> SpawnerLink:
        async with self._linking:
            if self._link is not None and self._link.is_up:
                return self._link
            if self._link is not None:
                await self._source.settle()
            connection = Link(await self._source.connect())
            link = SpawnerLink(connection, self._tasks, wake_spawner=self._source.wake)
            self._link = link
            self._tasks.start_soon(link.run, self._tell_loss)
            try:
                await link.say_hello([self._instance_lock.fileno()])
            except BaseException:
                link.close()
                raise
            return link

    def _tell_loss(self) -> None:
        for listener in self._listeners:
            self._tasks.start_soon(_call, listener)


@asynccontextmanager
async def open_runner(
    source: SpawnerSource, *, instance_lock: Held, processes_max: int
) -> AsyncIterator[SpawnerRunner]:
    """Have a runner. Leaving it ends every tree.

    Whoever wants commands to end gently, and their ends recorded, ends them and waits for them before.
    """
    async with anyio.create_task_group() as tasks:
        runner = SpawnerRunner(source, tasks, instance_lock=instance_lock, processes_max=processes_max)
        try:
            yield runner
        finally:
            with anyio.CancelScope(shield=True):
                await runner.close()
            tasks.cancel_scope.cancel()


async def _call(listener: Callable[[], Awaitable[None]]) -> None:
    await listener()


def _window(command: RunnerCommand) -> OutputWindow:
    try:
        return OutputWindow(make_ring(command.output_retention_bytes), head_bytes=command.head_bytes)
    except OSError as error:
        raise NotStartedError(f"There is no place to keep its output: {error}.", error.errno or ENOSPC) from error


def _request(command: RunnerCommand) -> Message:
    return {
        "argv": command.argv,
        "root": command.root,
        "environment": dict(command.environment),
        "tty": command.tty,
        "stdin": command.stdin,
        "rows": command.rows,
        "columns": command.columns,
        "network": command.is_network_enabled,
        "sandbox": command.sandbox,
        "hidden_paths": command.hidden_paths,
        "read_only_paths": command.read_only_paths,
    }


async def _until_at_gate(link: SpawnerLink, conversation: Conversation) -> None:
    """Return when the child is at its gate. Raises NotStartedError, RunnerLostError."""
    if not await link.patiently(conversation, conversation.until_answered):
        raise NotStartedError("The process that should watch it doesn't answer: it may have been stopped.")
    if conversation.refusal is not None:
        raise conversation.refusal
    assert conversation.at_gate is not None, "it is answered, and not refused"
    try:
        is_ready = await link.patiently(conversation, conversation.at_gate.until_ready)
    except NotReadyError as error:
        await link.patiently(conversation, conversation.until_over)
        raise NotStartedError(str(error), error.errno) from error
    if not is_ready:
        raise NotStartedError("The child doesn't get ready: it may have been stopped.")


async def _forget(link: SpawnerLink, conversation: Conversation) -> None:
    """Abandon a child whose caller has left before it was at the gate."""
    await link.dismiss(conversation)
    if conversation.at_gate is not None:
        conversation.at_gate.close()
