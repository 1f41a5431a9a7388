"""Messages between a server and a process of its own: u32 big-endian length and a JSON object, over a Unix socket.

Descriptors travel beside the first byte of the message that names their number (`descriptors`). A message has a `kind`;
which kinds there are, is said where a process of that sort is described (`adapters.spawner`, `adapters.tool_host`).
Source: decision 17.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Message = dict[str, Any]
else:
    Message = dict  # `typing` would be a twelfth of this process' memory

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
_LENGTH_BYTES = 4
_RECEIVE_BYTES = 256 * 1024
_DESCRIPTORS_MAX = 16


class LinkClosedError(Exception):
    """The other side is gone."""


class WireError(Exception):
    """What came isn't a message, or a message is longer than the limit. The link is of no more use."""


class Link:
    """One side of the socket. Never blocks; owns the socket and the descriptors that wait to be sent or taken."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._received = bytearray()
        self._received_descriptors: deque[int] = deque()
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()

    def fileno(self) -> int:
        """Return the socket's descriptor; -1 after `close`."""
        return self._connection.fileno()

    @property
    def has_unsent(self) -> bool:
        """Something waits until the socket can take more: call `flush` then."""
        return bool(self._unsent)

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send, or queue behind what is queued. The caller keeps `descriptors` and may close them at once.

        Raises:
            LinkClosedError: nobody can receive it.
            OSError: there is no room for duplicates of `descriptors`; nothing was sent.
            WireError: it is longer than the limit; nothing was sent.
        """
        content = json.dumps({**message, "descriptors": len(descriptors)}, separators=(",", ":")).encode("ascii")
        if len(content) > MESSAGE_BYTES_MAX:
            raise WireError(f"a message of {len(content)} bytes is longer than {MESSAGE_BYTES_MAX}")
        frame = memoryview(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
        self._unsent.append((frame, _duplicates(descriptors)))
        self.flush()

    def flush(self) -> None:
        """Send as much as the socket takes now. Raises LinkClosedError."""
        while self._unsent:
            frame, descriptors = self._unsent[0]
            beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
            try:
                sent = self._connection.sendmsg([frame], beside, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError as error:
                raise LinkClosedError(str(error)) from error
            for descriptor in descriptors:
                os.close(descriptor)
            if sent == len(frame):
                self._unsent.popleft()
            else:
                self._unsent[0] = (frame[sent:], [])

    def receive(self) -> list[tuple[Message, list[int]]]:
        """Return the messages that are complete after one read, with their descriptors, which are the caller's then.

        Raises:
            LinkClosedError: the other side has closed, and nothing is left of what it sent.
            WireError: what came isn't a message.
        """
        try:
            content, beside, flags, _ = self._connection.recvmsg(
                _RECEIVE_BYTES, socket.CMSG_SPACE(4 * _DESCRIPTORS_MAX), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return []
        except OSError as error:
            raise LinkClosedError(str(error)) from error
        for level, kind, payload in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                self._received_descriptors.extend(numbers)
        if flags & socket.MSG_CTRUNC:
            raise WireError("descriptors were lost: too many at once, or this process has too many open")
        if not content:
            raise LinkClosedError("the other side has closed")
        self._received += content
        return self._complete_messages()

    def _complete_messages(self) -> list[tuple[Message, list[int]]]:
        messages = []
        while len(self._received) >= _LENGTH_BYTES:
            length = int.from_bytes(self._received[:_LENGTH_BYTES], "big")
            if not 1 <= length <= MESSAGE_BYTES_MAX:
                raise WireError(f"a message can't have {length} bytes")
            if len(self._received) < _LENGTH_BYTES + length:
                break
            content = bytes(self._received[_LENGTH_BYTES : _LENGTH_BYTES + length])
            del self._received[: _LENGTH_BYTES + length]
            messages.append(self._parse(content))
        return messages

    def _parse(self, content: bytes) -> tuple[Message, list[int]]:
        try:
            message = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise WireError(f"not JSON: {error}") from error
        if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
            raise WireError("a message is an object with a kind")
        expected = message.pop("descriptors", 0)
        if not isinstance(expected, int) or not 0 <= expected <= len(self._received_descriptors):
            raise WireError(f"{expected!r} descriptors are announced, {len(self._received_descriptors)} came")
        return message, [self._received_descriptors.popleft() for _ in range(expected)]

    def is_at_end(self) -> bool:
        """Return whether the other side is gone and all it sent was received, without receiving anything."""
        try:
            return not self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def shut_down(self) -> None:
        """End the link for both sides, at once. The socket stays open, and whoever waits for it finds it at its end."""
        with contextlib.suppress(OSError):  # the other side was quicker
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket and whatever descriptors nobody took. A second call does nothing."""
        for _, descriptors in self._unsent:
            self._received_descriptors.extend(descriptors)
        self._unsent.clear()
        while self._received_descriptors:
            with contextlib.suppress(OSError):  # closing is all that was wanted
                os.close(self._received_descriptors.popleft())
        self._connection.close()


def _duplicates(descriptors: Sequence[int]) -> list[int]:
    """Return a duplicate of each. Raises OSError; none is left then."""
    made: list[int] = []
    try:
        for descriptor in descriptors:
            made.append(os.dup(descriptor))  # noqa: PERF401 - those that were made have to be known
    except OSError:
        for descriptor in made:
            os.close(descriptor)
        raise
    return made
