"""A socket to a process of the runner's: receives until it falls, and sends behind what is queued."""

from collections.abc import Callable, Sequence
from typing import Final

import anyio
from anyio.abc import TaskGroup

from adapters.wire import Link, LinkClosedError, Message, WireError
from codespace_es.ports.runner import RunnerLostError

Deliver = Callable[[Message, list[int]], None]

_LOST: Final = "The runner was lost."


class Line:
    """The socket, up until it has fallen, then down for ever."""

    def __init__(self, link: Link, tasks: TaskGroup) -> None:
        self._link = link
        self._tasks = tasks
        self._is_receiving = True
        self._is_flushing = False
        self.is_up = True
        self.fault: str | None = None
        """What came that couldn't be understood, if that has made it fall."""

    async def run(self, deliver: Deliver) -> None:
        """Receive until it falls."""
        try:
            while True:
                await anyio.wait_readable(self._link.fileno())
                for message, descriptors in self._link.receive():
                    deliver(message, descriptors)
        except LinkClosedError:
            pass
        except WireError as error:
            self.fault = str(error)
        finally:
            self.fall()
            self._is_receiving = False
            self._close_if_unused()

    def drain(self, deliver: Deliver) -> None:
        """Deliver what the other side has sent before it ended, and take the line down."""
        try:
            while self.is_up and (received := self._link.receive()):
                for message, descriptors in received:
                    deliver(message, descriptors)
        except LinkClosedError:
            pass  # that was all
        except WireError as error:
            self.fault = str(error)
        self.fall()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send, or queue behind what is queued.

        Raises:
            OSError: there is no room for a duplicate of a descriptor; nothing was sent.
            RunnerLostError: it is down.
            WireError: it is too long; nothing was sent.
        """
        if not self.is_up:
            raise RunnerLostError(_LOST, is_dispatched=False)
        try:
            self._link.send(message, descriptors)
        except LinkClosedError as error:
            raise RunnerLostError(_LOST, is_dispatched=False) from error
        if self._link.has_unsent and not self._is_flushing:
            self._is_flushing = True
            self._tasks.start_soon(self._flush)

    def is_there(self) -> bool:
        """Return whether the other side is there, even if its end is so new that nobody has received it."""
        return self.is_up and not self._link.is_at_end()

    def fall(self) -> None:
        """Take it down. A second call does nothing."""
        if self.is_up:
            self.is_up = False
            self._link.shut_down()

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
