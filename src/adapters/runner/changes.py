"""Telling whoever waits that something is different now; they look for themselves what."""

import anyio


class Changes:
    """One thing's changes. What happens while nobody waits isn't kept: look first, then wait, with no await between."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._waiting = 0

    def notify(self) -> None:
        """Wake up all who wait."""
        if self._waiting:
            event, self._event = self._event, anyio.Event()
            event.set()

    async def wait(self) -> None:
        """Return at the next change."""
        self._waiting += 1
        try:
            await self._event.wait()
        finally:
            self._waiting -= 1
