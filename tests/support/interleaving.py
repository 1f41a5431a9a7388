"""Letting one operation in at a chosen moment of another: two servers, a loop each, no luck about who comes first."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from codespace_es.ports.fault_points import FaultPoint, no_faults
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from support.server import Server

BLOCKED_SECONDS = 0.03
PATIENCE_SECONDS = 20.0


def ask(portal: BlockingPortal, server: Server, command: Command) -> dict[str, Any]:
    """Return an answer's wire form; of a refusal its code under `status`."""

    async def run() -> dict[str, Any]:
        try:
            return (await server.handle(command)).to_wire()
        except CodespaceError as error:
            return {**error.to_wire(), "status": error.code.value}

    return portal.call(run)


async def ask_in_thread(portal: BlockingPortal, server: Server, command: Command) -> dict[str, Any]:
    """Do the same from a loop of its own."""
    return await to_thread.run_sync(ask, portal, server, command)


class LetIn:
    """At the k-th point of the first operation, starts the second and gives it time to get as far as it can."""

    def __init__(self, k: int, start: Callable[[], "Future[dict[str, Any]]"]) -> None:
        self.k = k
        self.hits = 0
        self.second: Future[dict[str, Any]] | None = None
        self._start = start

    def __call__(self, _point: FaultPoint) -> None:
        self.hits += 1
        if self.hits == self.k:
            self.second = self._start()
            wait({self.second}, timeout=BLOCKED_SECONDS)


def let_in(
    make: Callable[[], Server], k: int, begin: Callable[[Server], Any], first: Callable[[Any], Command],
    second: Callable[[Any], Command],
) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Return both answers, with the second let in at the k-th moment of the first, and whether that moment came.

    Args:
        make: Returns a server; called twice.
        k: From 1.
        begin: A coroutine function, run on the first server; its result is what both requests are made from.
        first: Makes the first request.
        second: Makes the second.
    """
    with start_blocking_portal() as here, start_blocking_portal() as there, start_blocking_portal() as errands:
        left, right = here.call(make().start), there.call(make().start)
        begun = here.call(begin, left)
        hook = LetIn(k, lambda: errands.start_task_soon(ask_in_thread, there, right, second(begun)))
        left.hook = hook
        answer = ask(here, left, first(begun))
        left.hook = no_faults
        late = hook.second.result(PATIENCE_SECONDS) if hook.second is not None else ask(there, right, second(begun))
        here.call(left.stop)
        there.call(right.stop)
    return answer, late, hook.second is not None
