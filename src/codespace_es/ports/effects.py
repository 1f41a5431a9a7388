"""Running an effect so that the one who asked for it can go away without stopping it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class EffectRunner(Protocol):
    """Runs stories in tasks of their own, started before their mint and shielded to their finish."""

    async def run(self, story: Callable[[], Awaitable[Result]]) -> Result:
        """Start `story` in a task of its own and return what it returns, or raise what it raises.

        From the moment of the call the story runs to its end: cancelling the caller cancels only its waiting.
        """
        ...

    def start(self, story: Callable[[], Awaitable[None]]) -> None:
        """Start `story` in a task of its own and return at once; an error that escapes from it ends the server."""
        ...

    async def wait_until_idle(self) -> None:
        """Return once every story that was started is over; a server calls it before it says that it stops."""
        ...
