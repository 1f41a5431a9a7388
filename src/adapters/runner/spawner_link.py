"""One life of a spawner, seen from the server: has commands started, by an idle reaper or with a new one."""

import os
from collections.abc import Callable
from functools import partial
from socket import socket
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


class SpawnerLink:
    """The link, up until it has fallen, then down for ever."""

    def __init__(self, link: Link, tasks: TaskGroup) -> None:
        self._line = Line(link, tasks)
        self._tasks = tasks
        self._conversations: dict[str, Conversation] = {}
        self._reapers: dict[int, ReaperLink] = {}
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
        while self._sandbox is None:
            if not self.is_up:
                raise RunnerLostError("The runner was lost.", is_dispatched=True)
            await self._changes.wait()
        return self._sandbox

    def begin(self, conversation: Conversation, request: Message, lease: int | None) -> None:
        """Ask for a command to be started; without a lease its tree holds nothing.

        Raises RunnerLostError, WireError: nothing was asked then.
        """
        start = {**request, "kind": "start", "process_id": conversation.process_id}
        held = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if lease is None else lease
        try:
            if not self._is_taken(conversation, start, held):
                self._line.send(start, [held])
        finally:
            if lease is None:
                os.close(held)
        self._conversations[conversation.process_id] = conversation
        conversation.when_over(partial(self._conversations.__delitem__, conversation.process_id))

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

    def wake(self, conversation: Conversation) -> None:
        """Have the command's reaper go on if somebody has stopped it while it was idle."""
        for reaper in self._reapers.values():
            if reaper.has(conversation):
                self._line.send({"kind": "continue", "reaper": reaper.pid})

    def is_there(self) -> bool:
        """Return whether the spawner is there, even if its end is so new that nobody has received it."""
        return self._line.is_there()

    def close(self) -> None:
        """Take the link down on purpose: every tree ends. A second call does nothing."""
        self._is_closing = True
        self._line.fall()
        self._lose_all()

    def _deliver(self, message: Message, descriptors: list[int]) -> None:
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
                self._welcome(message["reaper"], socket(fileno=descriptors[0]), message["process_id"])
            case "not_started" if message["process_id"] in self._conversations:
                self._conversations[message["process_id"]].deliver(message, ())
            case "reaper_ended":
                reaper = self._reapers.pop(message["reaper"], None)
                if reaper is not None:
                    reaper.finish(message["swept"])

    def _welcome(self, pid: int, connection: socket, process_id: str) -> None:
        conversation = self._conversations.get(process_id)
        if conversation is None:  # all was given up meanwhile
            connection.close()
            return
        reaper = ReaperLink(pid, Link(connection), conversation, self._tasks, on_free=self._keep_or_close)
        self._reapers[pid] = reaper
        self._tasks.start_soon(reaper.run)

    def _keep_or_close(self, freed: ReaperLink) -> None:
        if sum(reaper.is_idle for reaper in self._reapers.values()) > _IDLE_MAX:
            freed.close()

    def _lose_all(self) -> None:
        self._changes.notify()
        for reaper in self._reapers.values():
            reaper.close()
        for conversation in tuple(self._conversations.values()):
            conversation.lose()
