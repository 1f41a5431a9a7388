"""Stdio as a pair of MCP streams, without threads where stdin and stdout are pipes or sockets.

- fd 0 is pointed at the null device and fd 1 at stderr: stray prints and children that inherit them can't touch the
  wire, which lives on private, close-on-exec duplicates.
- Input is pulled: a message is read when the SDK asks for one. What can't be served is answered here and skipped.
- Output is one buffer that each sender empties: a sender that is cancelled in the middle of a line leaves the rest to
  the next, so a line is never torn.
- The end has one door, `Wire.end`: end of input, a signal and a closed stdout all lead to it. Messages are still taken
  in, so that whoever speaks is answered, until `Wire.finish`: then the input reports its end to the SDK, which cancels
  what still waits.

Source: library facts on mcp 2.3.0 over stdio; contract A6.
"""

import logging
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Literal, Self

import anyio
from anyio import to_thread
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from adapters.mcp_server.descriptors import (
    CHUNK_BYTES,
    diverted_stdio,
    has_bytes,
    is_abandoned,
    is_pipe,
    read_chunk,
    write_whole,
)
from adapters.mcp_server.lines import LineSplitter, OversizedLine
from adapters.mcp_server.messages import (
    Unusable,
    read_message,
    refuse_duplicate,
    refuse_oversized,
    write_message,
)
from codespace_es.vocabulary import limits

StopReason = Literal["eof", "signal", "output_closed"]
"""Why a server on stdio ends."""

logger = logging.getLogger(__name__)


class _InFlight:
    """The requests that haven't been answered yet, by id; `7` and `"7"` count as one, as they do for the SDK."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._none_left = anyio.Event()

    def begin(self, identifier: int | str) -> bool:
        """Return True, and remember the request; False if its id is in use."""
        if str(identifier) in self._ids:
            return False
        self._ids.add(str(identifier))
        return True

    def settle(self, identifier: int | str | None) -> None:
        """Forget a request that was answered, or never will be."""
        self._ids.discard(str(identifier))
        if not self._ids:
            self._none_left.set()

    async def settle_unanswered(self, identifier: int | str) -> None:
        """Forget a request that its client has cancelled."""
        self.settle(identifier)

    async def wait_until_none(self) -> None:
        """Return once every request has been answered."""
        while self._ids:
            self._none_left = anyio.Event()
            await self._none_left.wait()


class Wire:
    """Both directions of one connection, and how it ends."""

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._in_flight = _InFlight()
        self.output = WireOutput(output_fd, self._in_flight, on_closed=partial(self.end, "output_closed"))
        self.input = WireInput(input_fd, self._in_flight, self.output, on_end=partial(self.end, "eof"))
        self.ended = anyio.Event()
        self.reason: StopReason | None = None

    def end(self, reason: StopReason) -> None:
        """Let the end have come. The first reason given is the one that counts."""
        self.reason = self.reason or reason
        self.ended.set()

    async def wait_until_answered(self) -> None:
        """Return once every request that has come is answered, and the answers are written, or nobody reads them."""
        await self.input.take_all()
        await self._in_flight.wait_until_none()
        with suppress(anyio.BrokenResourceError):
            await self.output.send_line(b"")

    def finish(self) -> None:
        """Take no more messages."""
        self.input.finish()


class _Closable:
    """What the SDK asks of a stream besides its messages; the descriptors belong to `open_stdio`."""

    async def aclose(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class WireOutput(_Closable):
    """Writes messages as lines, in the order of their senders."""

    def __init__(self, fd: int, in_flight: _InFlight, *, on_closed: partial[None]) -> None:
        self._fd = fd
        self._in_flight = in_flight
        self._on_closed = on_closed
        self._is_pipe = is_pipe(fd)
        self._rest = bytearray()
        self._turn = anyio.Lock(fast_acquire=True)

    async def send(self, item: SessionMessage) -> None:
        """Write one message.

        Raises:
            BrokenResourceError: nobody reads the output any more.
        """
        message = item.message
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._in_flight.settle(message.id)
        line = write_message(message)
        if isinstance(line, Unusable):
            logger.error("%s", line.reason)
            line = b"".join(line.answers)
        await self.send_line(line)

    async def send_line(self, line: bytes) -> None:
        """Write a line that is JSON already."""
        self._rest += line
        async with self._turn:
            try:
                while self._rest:
                    await self._write_some()
            except OSError as error:
                logger.warning("The output can't be written: %s", error)
                self._rest.clear()
                self._on_closed()
                raise anyio.BrokenResourceError from error

    async def wait_for_room(self) -> None:
        """Return when few bytes are unsent, or nobody reads the output any more."""
        while len(self._rest) > limits.UNSENT_BYTES_MAX:
            # Whoever waits also writes: the sender of these bytes may have been cancelled.
            with suppress(anyio.BrokenResourceError):
                await self.send_line(b"")

    async def _write_some(self) -> None:
        if not self._is_pipe:
            piece = bytes(self._rest[:CHUNK_BYTES])
            del self._rest[:len(piece)]
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(write_whole, self._fd, piece)
            return
        try:
            written = os.write(self._fd, self._rest)
        except BlockingIOError:
            await anyio.wait_writable(self._fd)
        else:
            del self._rest[:written]

    async def watch(self) -> None:
        """Return when nobody reads the output any more, and end the connection; for ever where that can't be seen."""
        if not self._is_pipe:
            await anyio.sleep_forever()
        while True:
            await anyio.wait_readable(self._fd)
            if is_abandoned(self._fd):
                break
            await anyio.sleep(1)  # bytes on a socket that is for output only: nobody will ever read them
        self._on_closed()


class WireInput(_Closable):
    """Reads messages line by line, when asked."""

    def __init__(self, fd: int, in_flight: _InFlight, output: WireOutput, *, on_end: partial[None]) -> None:
        self._fd = fd
        self._in_flight = in_flight
        self._output = output
        self._on_end = on_end
        self._can_wait = is_pipe(fd) or os.isatty(fd)
        self._splitter = LineSplitter(limits.MESSAGE_BYTES_MAX)
        self._lines: deque[bytes | OversizedLine] = deque()
        self._waiting = anyio.CancelScope()
        self._is_at_end = False
        self._is_finished = False
        self._all_taken: anyio.Event | None = None
        """To be set when nothing is there to be given out, if somebody asks for that."""

    async def take_all(self) -> None:
        """Return once every message that has come was given out; of a file, once that has ended."""
        asked = self._all_taken = anyio.Event()
        if self._can_wait or self._is_at_end:
            self._waiting.cancel()  # and look again
        await asked.wait()

    def finish(self) -> None:
        """Report the end of input from now on, whatever is there."""
        self._is_finished = True
        self._waiting.cancel()

    def __aiter__(self) -> Self:
        return self

    async def receive(self) -> SessionMessage:
        """Return the next message that can be served.

        Raises:
            EndOfStream: there will be none.
        """
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def __anext__(self) -> SessionMessage:
        while not self._is_finished:
            if not self._lines:
                await self._read_lines()
                continue
            message = await self._understand(self._lines.popleft())
            if message is not None:
                return message
        raise StopAsyncIteration

    async def _read_lines(self) -> None:
        """Wait for bytes, and keep the lines that they complete; at the end of input, the last line too."""
        chunk: bytes | None = None
        with anyio.CancelScope() as self._waiting:
            if self._all_taken is not None and (self._is_at_end or (self._can_wait and not has_bytes(self._fd))):
                self._all_taken.set()
            if self._is_at_end:
                await anyio.sleep_forever()
            if self._can_wait:
                await anyio.wait_readable(self._fd)
                chunk = read_chunk(self._fd)
            else:
                chunk = await to_thread.run_sync(read_chunk, self._fd, abandon_on_cancel=True)
        if chunk is None:
            return
        if chunk:
            self._lines.extend(self._splitter.feed(chunk))
        else:
            self._lines.extend(self._splitter.finish())
            self._is_at_end = True
            self._on_end()

    async def _understand(self, line: bytes | OversizedLine) -> SessionMessage | None:
        """Return the message in `line`; None if it can't be served, after whoever waits for it was answered."""
        if isinstance(line, OversizedLine):
            message: JSONRPCMessage | Unusable = refuse_oversized(
                line.head, line.tail, size_bytes=line.size_bytes, bytes_max=limits.MESSAGE_BYTES_MAX
            )
        else:
            message = read_message(line)
        if isinstance(message, JSONRPCRequest) and not self._in_flight.begin(message.id):
            message = refuse_duplicate(message.id)
        if isinstance(message, Unusable):
            logger.warning("A message can't be served: %s", message.reason)
            for answer in message.answers:
                await self._answer(answer)
            return None
        if isinstance(message, JSONRPCRequest):
            told = ServerMessageMetadata(on_request_unanswered=partial(self._in_flight.settle_unanswered, message.id))
            return SessionMessage(message, told)
        return SessionMessage(message)

    async def _answer(self, line: bytes) -> None:
        try:
            await self._output.send_line(line)
        except anyio.BrokenResourceError:
            logger.debug("an answer to a message that can't be served found nobody")


@asynccontextmanager
async def open_stdio() -> AsyncIterator[Wire]:
    """Yield the wire on this process' stdin and stdout; on leaving, both are as they were."""
    with diverted_stdio() as (input_fd, output_fd):
        yield Wire(input_fd, output_fd)
