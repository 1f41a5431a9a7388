"""Our ends of a child's pipes, as streams that wait without threads and that closing really closes."""

import os

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream


class OutputPipe(ByteReceiveStream):
    """The reading end of a pipe, which closing really closes."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if self._fd is None:
            raise anyio.ClosedResourceError
        await anyio.wait_readable(self._fd)
        chunk = os.read(self._fd, max_bytes)
        if not chunk:
            raise anyio.EndOfStream
        return chunk

    async def aclose(self) -> None:
        if self._fd is not None:
            anyio.notify_closing(self._fd)
            os.close(self._fd)
            self._fd = None


class InputPipe(ByteSendStream):
    """The writing end of a pipe."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd: int | None = fd

    async def send(self, item: bytes) -> None:
        rest = memoryview(item)
        while rest:
            if self._fd is None:
                raise anyio.ClosedResourceError
            try:
                rest = rest[os.write(self._fd, rest):]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
            except OSError as error:
                raise anyio.BrokenResourceError from error
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        if self._fd is not None:
            anyio.notify_closing(self._fd)
            os.close(self._fd)
            self._fd = None
