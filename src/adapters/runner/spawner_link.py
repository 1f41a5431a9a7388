"""One life of a spawner, seen from the server: has commands started, by an idle reaper or with a new one."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from socket import socket, socketpair
from typing import Final

import anyio
from anyio.abc import TaskGroup

from adapters.runner.changes import Changes
from adapters.runner.conversation import Conversation
from adapters.runner.line import Line
from adapters.runner.reaper_link import ReaperLink
from adapters.spawner import PROTOCOL
from adapters.wire import Link, Message
from codespace_es.ports.runner import RunnerLostError

_HELLO_SECONDS_MAX: Final = 30.0
"""A runner introduces itself once it knows what can be enforced there, which takes seconds at worst."""
_IDLE_MAX: Final = 1
"""So many reapers are kept without a command. Commands mostly come one after another."""
_PATIENCE_SECONDS: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Whoever doesn't answer for so long may be stopped, and is continued; then waited for again."""


class SpawnerLink:
    """The link, up until it has fallen, then down for ever."""

    def __init__(self, link: Link, tasks: TaskGroup, *, wake_spawner: Callable[[], None]) -> None:
        self._wake_spawner = wake_spawner
        self._line = Line(link, tasks)
        self._tasks = tasks
        self._conversations: dict[str, Conversation] = {}
        self._reapers: dict[int, ReaperLink] = {}
        self._unforked: dict[str, socket] = {}
        """This side of the sockets that new reapers will have, until these are there."""
        self._changes = Changes()
        self._is_closing = False
        self._sandbox: Message | None = None
        self._protocol: object = None
        self.boot_id = ""
        self.pid_namespace = -1

    @property
    def is_up(self) -> bool:
        """It hasn't fallen."""
        return self._line.is_up

    async def run(self, on_fall: Callable[[], None]) -> None:
        """Receive until the link falls; `on_fall` is called then, unless it was closed on purpose."""
        try:
            await self._line.run(self._deliver)
        finally:
            self._lose_all()
            if not self._is_closing:
                on_fall()

    async def say_hello(self, descriptors: list[int]) -> None:
        """Give the spawner what it shall hold, and return when it has introduced itself. Raises RunnerLostError."""
        self._line.send({"kind": "hold"}, descriptors)
        with anyio.move_on_after(_HELLO_SECONDS_MAX):
            while self._protocol is None:
                if not self.is_up:
                    raise RunnerLostError("The runner ended before it was ready.", is_dispatched=False)
                await self._changes.wait()
        if self._protocol is None:
            raise RunnerLostError("What answers isn't a runner: it doesn't introduce itself.", is_dispatched=False)
        if self._protocol != PROTOCOL:
            raise RunnerLostError(
                f"The runner is of another release: it speaks protocol {self._protocol}, this server {PROTOCOL}. "
                "Start the runner of this release.", is_dispatched=False,
            )

    async def probe(self) -> Message:
        """Return what the spawner says that commands are confined by. Raises RunnerLostError."""
        self._line.send({"kind": "probe"})
        with anyio.move_on_after(_HELLO_SECONDS_MAX):
            while self._sandbox is None:
                if not self.is_up:
                    raise RunnerLostError("The runner was lost.", is_dispatched=True)
                await self._changes.wait()
        if self._sandbox is None:
            raise RunnerLostError("The runner doesn't answer.", is_dispatched=True)
        return self._sandbox

    def begin(self, conversation: Conversation, request: Message, lease: int | None) -> None:
        """Ask for a command to be started; without a lease its tree holds nothing.

        Raises OSError, RunnerLostError, WireError: nothing was asked then.
        """
        start = {**request, "kind": "start", "process_id": conversation.process_id}
        held = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if lease is None else lease
        try:
            if not self._is_taken(conversation, start, held):
                self._ask_for_reaper(start, held)
        finally:
            if lease is None:
                os.close(held)
        self._conversations[conversation.process_id] = conversation
        conversation.when_over(partial(self._forget, conversation.process_id))

    def _ask_for_reaper(self, start: Message, lease: int) -> None:
        own, reapers = socketpair()
        with reapers:
            try:
                self._line.send(start, [lease, reapers.fileno()])
            except BaseException:
                own.close()
                raise
        self._unforked[start["process_id"]] = own

    def _forget(self, process_id: str) -> None:
        del self._conversations[process_id]
        unused = self._unforked.pop(process_id, None)
        if unused is not None:
            unused.close()

    def _is_taken(self, conversation: Conversation, start: Message, lease: int) -> bool:
        """Return whether an idle reaper has it now."""
        for reaper in self._reapers.values():
            if self.is_up and reaper.is_idle:
                try:
                    reaper.take(conversation, start, lease)
                except RunnerLostError:  # it was killed
                    continue
                return True
        return False

    async def patiently(self, conversation: Conversation, wait: Callable[[], Awaitable[None]]) -> bool:
        """Return whether `wait` was over in time. Spawner, reaper and waiting child are continued if they are stopped.

        Raises what `wait` does.
        """
        for seconds in _PATIENCE_SECONDS:
            with anyio.move_on_after(seconds):
                await wait()
                return True
            self.wake(conversation)
        return False

    def wake(self, conversation: Conversation) -> None:
        """Have go on whoever is stopped of spawner, reaper and waiting child."""
        self._wake_spawner()
        self._tell_spawner_of_reaper("continue", conversation)
        if conversation.is_reached and not conversation.is_begun:  # later that is the command's own affair
            conversation.tell("continue")

    def sweep(self, conversation: Conversation) -> None:
        """Have the spawner end the command's tree, since its reaper doesn't come to it."""
        self._tell_spawner_of_reaper("sweep", conversation)

    async def dismiss(self, conversation: Conversation) -> None:
        """Have a child end that is at its gate or on its way there, and its reaper, if that doesn't answer.

        Returns when they are gone. Nothing is ever run: the caller alone can let the child go, and doesn't.
        """
        with suppress(RunnerLostError):  # it ends with the spawner
            await conversation.until(lambda: conversation.is_reached or conversation.is_over)
            if not conversation.is_over:
                conversation.tell("abandon")
            if not await self.patiently(conversation, conversation.until_over):
                self._tell_spawner_of_reaper("kill", conversation)
            await conversation.until_over()

    def _tell_spawner_of_reaper(self, kind: str, conversation: Conversation) -> None:
        for reaper in self._reapers.values():
            if reaper.has(conversation):
                reaper.is_condemned |= kind != "continue"
                with suppress(RunnerLostError):  # whoever waits hears of that
                    self._line.send({"kind": kind, "reaper": reaper.pid})

    def is_there(self) -> bool:
        """Return whether the spawner is there, even if its end is so new that nobody has received it."""
        return self._line.is_there()

    def close(self) -> None:
        """Take the link down on purpose: every tree ends. A second call does nothing."""
        self._is_closing = True
        self._line.fall()
        self._lose_all()

    def _deliver(self, message: Message, _none: list[int]) -> None:
        match message["kind"]:
            case "hello":
                self._protocol = message.get("protocol", 1)
                if self._protocol == PROTOCOL:  # of another, only that is known
                    self.boot_id, self.pid_namespace = message["boot_id"], message["pid_namespace"]
                self._changes.notify()
            case "sandbox":
                self._sandbox = message["sandbox"]
                self._changes.notify()
            case "reaper":
                self._welcome(message["reaper"], message["process_id"])
            case "not_started" if message["process_id"] in self._conversations:
                self._conversations[message["process_id"]].deliver(message, ())
            case "reaper_ended":
                reaper = self._reapers.pop(message["reaper"], None)
                if reaper is not None:
                    reaper.finish(message["swept"])

    def _welcome(self, pid: int, process_id: str) -> None:
        conversation = self._conversations.get(process_id)
        if conversation is None:  # all was given up meanwhile
            return
        link = Link(self._unforked.pop(process_id))
        reaper = ReaperLink(pid, link, conversation, self._tasks, on_free=self._keep_or_close)
        self._reapers[pid] = reaper
        self._tasks.start_soon(self._attend, reaper)

    async def _attend(self, reaper: ReaperLink) -> None:
        """Hear a reaper until it is gone, then see that the spawner, if that is stopped, tells what became of all."""
        await reaper.run()
        conversation = reaper.conversation
        if conversation is not None:
            with suppress(RunnerLostError):  # that is told too
                await self.patiently(conversation, conversation.until_over)

    def _keep_or_close(self, freed: ReaperLink) -> None:
        if freed.is_condemned or sum(reaper.is_idle for reaper in self._reapers.values()) > _IDLE_MAX:
            freed.close()

    def _lose_all(self) -> None:
        self._changes.notify()
        for reaper in self._reapers.values():
            reaper.close()
        for conversation in tuple(self._conversations.values()):
            conversation.lose()
