"""Effects run in tasks of their own: a caller that goes away cancels its waiting, never the effect.

1. `run` starts a task in the server's own task group; from then on the story runs to its end.
2. The caller waits for the outcome; a cancelled wait leaves the task alone, and its result is in the log.
3. Leaving the group (shutdown) waits for every effect that has begun.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Generic, NoReturn, TypeVar

import anyio
from anyio.abc import TaskGroup

Result = TypeVar("Result")


class _Outcome(Generic[Result]):
    """What a story came to, for the one who waits."""

    def __init__(self) -> None:
        self.is_known = anyio.Event()
        self.tell: Callable[[], Result] = _not_known
        """Returns the result, or raises the error."""


def _not_known() -> NoReturn:
    raise AssertionError("an outcome is told only once it is known")


class TaskGroupEffects:
    """Runs effects in a task group that outlives requests."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._running: set[anyio.Event] = set()

    async def run(self, story: Callable[[], Awaitable[Result]]) -> Result:
        """Start `story` and wait for it. See the port."""
        outcome: _Outcome[Result] = _Outcome()
        self._running.add(outcome.is_known)
        self._tasks.start_soon(self._follow, story, outcome)
        await outcome.is_known.wait()
        return outcome.tell()

    def start(self, story: Callable[[], Awaitable[None]]) -> None:
        """Start `story` and don't wait for it. See the port."""
        is_over = anyio.Event()
        self._running.add(is_over)
        self._tasks.start_soon(self._run_shielded, story, is_over)

    async def _run_shielded(self, story: Callable[[], Awaitable[None]], is_over: anyio.Event) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await story()
            finally:
                self._running.discard(is_over)
                is_over.set()

    async def wait_until_idle(self) -> None:
        """Wait for every story that was started. See the port."""
        while self._running:
            await next(iter(self._running)).wait()

    async def _follow(self, story: Callable[[], Awaitable[Result]], outcome: _Outcome[Result]) -> None:
        try:
            await _tell(story, outcome)
        finally:
            self._running.discard(outcome.is_known)


async def _tell(story: Callable[[], Awaitable[Result]], outcome: _Outcome[Result]) -> None:
    """Run a story to its end, whatever happens around it, and pass on what came of it."""
    with anyio.CancelScope(shield=True):
        try:
            result = await story()
        except Exception as error:
            outcome.tell = partial(_raise, error)
        else:
            outcome.tell = lambda: result
        finally:
            outcome.is_known.set()


def _raise(error: Exception) -> NoReturn:
    raise error


@asynccontextmanager
async def open_effects() -> AsyncIterator[TaskGroupEffects]:
    """Yield a runner; on leaving, wait until every effect that has begun is over."""
    async with anyio.create_task_group() as tasks:
        yield TaskGroupEffects(tasks)
