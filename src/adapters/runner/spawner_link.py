"""One life of a spawner, seen from the server: sends requests, and delivers what is said to whom it concerns."""

import os
from collections.abc import Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from adapters.runner.changes import Changes
from adapters.runner.conversation import Conversation
from adapters.spawner import PROTOCOL
from adapters.wire import Link, LinkClosedError, Message, WireError
from codespace_es.ports.runner import RunnerLostError

_HELLO_SECONDS_MAX: Final = 30.0
"""A runner introduces itself once it knows what can be enforced there, which takes seconds at worst."""


class SpawnerLink:
    """The link, up until it has fallen, then down for ever."""

    def __init__(self, link: Link, tasks: TaskGroup) -> None:
        self._link = link
        self._tasks = tasks
        self._conversations: dict[str, Conversation] = {}
        self._changes = Changes()
        self._is_receiving = True
        self._is_flushing = False
        self._is_closing = False
        self._sandbox: Message | None = None
        self._protocol: object = None
        self.is_up = True
        self.boot_id = ""
        self.pid_namespace = -1

    async def run(self, on_fall: Callable[[], None]) -> None:
        """Receive until the link falls; `on_fall` is called then, unless it was closed on purpose."""
        try:
            while True:
                await anyio.wait_readable(self._link.fileno())
                for message, descriptors in self._link.receive():
                    self._deliver(message, descriptors)
        except (LinkClosedError, WireError):
            pass  # however it fell: it is down
        finally:
            self._fall()
            self._is_receiving = False
            self._close_if_unused()
            if not self._is_closing:
                on_fall()

    async def say_hello(self, descriptors: list[int]) -> None:
        """Give the spawner what it shall hold, and return when it has introduced itself. Raises RunnerLostError."""
        self.send({"kind": "hold"}, descriptors)
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
        self.send({"kind": "probe"})
        while self._sandbox is None:
            if not self.is_up:
                raise RunnerLostError("The runner was lost.", is_dispatched=True)
            await self._changes.wait()
        return self._sandbox

    def begin(self, conversation: Conversation, request: Message, lease: int | None) -> None:
        """Ask for a command to be started; without a lease its tree holds nothing.

        Raises RunnerLostError, WireError: nothing was asked then.
        """
        held = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if lease is None else lease
        try:
            self.send({**request, "kind": "start", "process_id": conversation.process_id}, [held])
        finally:
            if lease is None:
                os.close(held)
        self._conversations[conversation.process_id] = conversation

    def send(self, message: Message, descriptors: list[int] | None = None) -> None:
        """Send, or queue behind what is queued. Raises RunnerLostError, WireError when it is too long."""
        if not self.is_up:
            raise RunnerLostError("The runner was lost.", is_dispatched=False)
        try:
            self._link.send(message, descriptors or ())
        except LinkClosedError as error:
            raise RunnerLostError("The runner was lost.", is_dispatched=False) from error
        if self._link.has_unsent and not self._is_flushing:
            self._is_flushing = True
            self._tasks.start_soon(self._flush)

    def is_there(self) -> bool:
        """Return whether the spawner is there, even if its end is so new that nobody has received it."""
        return self.is_up and not self._link.is_at_end()

    def close(self) -> None:
        """Take the link down on purpose: every tree ends. A second call does nothing."""
        self._is_closing = True
        self._fall()

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
            case _:
                conversation = self._conversations.get(message.get("process_id", ""))
                if conversation is None:
                    for descriptor in descriptors:
                        os.close(descriptor)
                    return
                conversation.deliver(message, descriptors)
                if conversation.is_over:
                    del self._conversations[conversation.process_id]

    async def _flush(self) -> None:
        try:
            while self._link.has_unsent:
                await anyio.wait_writable(self._link.fileno())
                self._link.flush()
        except LinkClosedError:
            return  # whoever receives finds out too, and tells
        finally:
            self._is_flushing = False
            self._close_if_unused()

    def _close_if_unused(self) -> None:
        """Close the socket once nobody waits for it: its number may be another's in the same moment."""
        if not self.is_up and not self._is_receiving and not self._is_flushing:
            self._link.close()

    def _fall(self) -> None:
        if self.is_up:
            self.is_up = False
            self._link.shut_down()
            self._changes.notify()
            for conversation in self._conversations.values():
                conversation.lose()
            self._conversations.clear()
