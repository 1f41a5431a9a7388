"""What a waiting reader is given in one piece: all until the end, as much as he may have, or what comes in a moment."""

from dataclasses import dataclass, field

import anyio
import pytest

from codespace_es.command_handlers.observing import ReadProcess, gather
from codespace_es.ports.runner import OutputChunk

pytestmark = pytest.mark.anyio


@dataclass
class PrintsWhenAsked:
    """A process that prints its next piece as soon as somebody waits for it; after the last, it is silent or ends."""

    pieces: list[bytes]
    is_silent: bool = False
    printed: bytearray = field(default_factory=bytearray)

    async def read(self, cursor: int, *, wait_ms: int, bytes_max: int) -> OutputChunk:
        while wait_ms and cursor >= len(self.printed) and self.pieces:
            self.printed += self.pieces.pop(0)
        if wait_ms and cursor >= len(self.printed) and self.is_silent:
            await anyio.sleep_forever()
        content = bytes(self.printed[cursor : cursor + bytes_max])
        is_end = not self.pieces and not self.is_silent and cursor + len(content) >= len(self.printed)
        return OutputChunk(cursor, content, is_end, 0, len(self.printed))


def command(max_bytes: int = 1000) -> ReadProcess:
    return ReadProcess(process_id="proc-1", wait_ms=1000, max_bytes=max_bytes)


async def test_it_goes_on_to_the_end() -> None:
    chunk = await gather(PrintsWhenAsked([b"a", b"b", b"c"]), command(), 600)
    assert (chunk.content, chunk.is_end) == (b"abc", True)


async def test_it_stops_when_the_piece_is_full() -> None:
    process = PrintsWhenAsked([b"a", b"b" * 10, b"c"])
    chunk = await gather(process, command(max_bytes=5), 600)
    assert (chunk.content[:5], chunk.is_end, process.pieces) == (b"abbbb", False, [b"c"])


async def test_it_doesnt_wait_long_for_one_that_is_silent() -> None:
    chunk = await gather(PrintsWhenAsked([b"a", b"b"], is_silent=True), command(), 0.01)
    assert (chunk.content, chunk.is_end) == (b"ab", False)


async def test_it_takes_what_is_there_when_nobody_waits() -> None:
    process = PrintsWhenAsked([b"b"], printed=bytearray(b"a"))
    assert (await gather(process, command(), 0)).content == b"a"
