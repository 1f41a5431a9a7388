"""Waiting for code that isn't the server's: as long as it runs, the caller is told so about every 5 s.

What is told is for a person or a client's time limit; it changes nothing of the wait.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio import create_task_group, move_on_after, sleep

from codespace_es.ports.world import World
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.limits import PROGRESS_INTERVAL_SECONDS

_LISTENER_SECONDS_MAX = 1.0
"""A listener that doesn't take a word in this time misses it."""

Result = TypeVar("Result")


async def wait_aloud(world: World, caller: Caller, awaited: str, work: Callable[[], Awaitable[Result]]) -> Result:
    """Return what `work` returns; meanwhile the caller is told that `awaited` is waited for. Raises as `work`."""
    failure: Exception | None = None
    async with create_task_group() as tasks:
        tasks.start_soon(_tell, world, caller, awaited)
        try:
            return await work()
        except Exception as error:  # raised below: a task group would wrap it
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    assert failure is not None, "it returned otherwise"
    raise failure


async def _tell(world: World, caller: Caller, awaited: str) -> None:
    began = world.clock.monotonic()
    while True:
        await sleep(PROGRESS_INTERVAL_SECONDS)
        try:
            with move_on_after(_LISTENER_SECONDS_MAX):
                await caller.report_wait(world.clock.monotonic() - began, awaited)
        except Exception:
            return  # who can't be told any more is told no more: the wait goes on, whatever it was
