"""A thread with an event loop for the driver: other threads have things done there, and wait.

anyio has one too, but whoever is interrupted (Ctrl-C) while that starts waits for its thread for ever.
"""

from concurrent.futures import Future
from threading import Thread
from types import TracebackType

import anyio
from anyio.from_thread import BlockingPortal


class LoopThread:
    """The thread; it never keeps a process from ending. A context manager that gives its portal."""

    def __init__(self) -> None:
        """Start it."""
        self._started: Future[BlockingPortal] = Future()
        self._thread = Thread(target=self._run, name="postgres", daemon=True)
        self._thread.start()
        self.portal = self._started.result()

    def _run(self) -> None:
        try:
            anyio.run(self._serve)
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        async with BlockingPortal() as portal:
            self._started.set_result(portal)
            await portal.sleep_until_stopped()

    def stop(self) -> None:
        """End it. What still runs there is cancelled: whoever had asked for it doesn't wait any more."""
        self.portal.call(self.portal.stop, True)
        self._thread.join()

    def __enter__(self) -> BlockingPortal:
        return self.portal

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()
