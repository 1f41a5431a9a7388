"""The end of a server: no call is begun any more, and each that is open gets an answer before its transport closes.

1. From now on every call is refused; so is who waits for a workspace. Who waits for a person goes on without one.
2. Commands are ended. Who waits for one is told how it ended, with what it has printed.
3. Effects run to their end, since they can't be taken back, and their callers are told what they came to. Custom tools
   that go on with theirs are ended after a while.
4. What is open even then has a moment left. Then it is cut off, and told so.

Everything but 3 is bounded, and in 3 everything but writing a patch. Source: contract A5, A6.
"""

from collections.abc import Callable

import anyio

from codespace_es.admission import ending_refusal
from codespace_es.command_handlers.driving import end_all
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller


class OpenCalls:
    """The calls that are being answered, each in a scope by which it can be cut off."""

    def __init__(self, is_closing: Callable[[], bool]) -> None:
        self._is_closing = is_closing
        self._calls: set[anyio.CancelScope] = set()
        self._waits: set[anyio.CancelScope] = set()
        self._none_left = anyio.Event()

    def begin(self) -> anyio.CancelScope:
        """Return the scope of a call that begins. Raises SERVER_SHUTTING_DOWN."""
        if self._is_closing():
            raise ending_refusal()
        scope = anyio.CancelScope()
        self._calls.add(scope)
        return scope

    def end(self, scope: anyio.CancelScope) -> None:
        """Forget a call that has its answer."""
        self._calls.remove(scope)
        if not self._calls:
            self._none_left.set()

    def begin_wait(self) -> anyio.CancelScope:
        """Return the scope of a wait that the end of the server ends at once."""
        scope = anyio.CancelScope()
        self._waits.add(scope)
        if self._is_closing():
            scope.cancel()
        return scope

    def end_wait(self, scope: anyio.CancelScope) -> None:
        """Forget a wait that is over."""
        self._waits.remove(scope)

    def give_up_waits(self) -> None:
        """End what waits for people."""
        for scope in tuple(self._waits):
            scope.cancel()

    async def answer_all(self) -> None:
        """Return once every call has its answer: it has a moment for its own, then it is cut off."""
        with anyio.move_on_after(limits.SHUTDOWN_ANSWERS_SECONDS):
            await self._wait_until_none()
        for scope in tuple(self._calls):
            scope.cancel()
        await self._wait_until_none()

    async def _wait_until_none(self) -> None:
        while self._calls:
            self._none_left = anyio.Event()
            await self._none_left.wait()


def cut_off() -> CodespaceError:
    """Return what a call is told that was cut off by the end of the server."""
    return CodespaceError(
        ErrorCode.SERVER_SHUTTING_DOWN, "The server is ending and has cut this call off; what it began is in the log."
    )


async def close(world: World, calls: OpenCalls, caller: Caller) -> None:
    """End every command that lives here; return when each effect is over and each call has its answer."""
    world.live.is_closing = True
    calls.give_up_waits()
    await end_all(world, caller)
    await _finish_effects(world)
    await calls.answer_all()
    await world.effects.wait_until_idle()  # one that a call has begun at its last moment


async def _finish_effects(world: World) -> None:
    with anyio.move_on_after(limits.TOOL_STOP_GRACE_SECONDS):
        await world.effects.wait_until_idle()
        return
    await world.custom_tools.close()  # a callback that still runs is told as one whose process has ended
    await world.effects.wait_until_idle()
