"""Letting one act in at a chosen moment of another: two servers, a loop each, no luck about who comes first."""

from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from codespace_es.ports.fault_points import FaultPoint, no_faults
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from support.crash_faults import count
from support.holds import audit
from support.server import Server

BLOCKED_SECONDS = 0.03
PATIENCE_SECONDS = 20.0
MOMENTS_MAX = 80

Act = Command | Callable[[Server], Awaitable[Any]]
"""A request, or something else that happens to a server; then its answer has no fields."""

WITHIN_A_PATCH = ("directory.", "temp.", "install.", "verify.", "sweep.")
"""Moments at which the lease is held and nothing is appended: to others they are all one."""


def ask(portal: BlockingPortal, server: Server, act: Act) -> dict[str, Any]:
    """Return an answer's wire form; of a refusal its code under `status`."""

    async def run() -> dict[str, Any]:
        try:
            if isinstance(act, Command):
                return (await server.handle(act)).to_wire()
            await act(server)
        except CodespaceError as error:
            return {**error.to_wire(), "status": error.code.value}
        return {}

    return portal.call(run)


async def ask_in_thread(portal: BlockingPortal, server: Server, act: Act) -> dict[str, Any]:
    """Do the same from a loop of its own."""
    return await to_thread.run_sync(ask, portal, server, act)


async def end_session(server: Server) -> None:
    """End a server in good order."""
    await server.stop()


class LetIn:
    """At the k-th point of the first operation, starts the second and gives it time to get as far as it can."""

    def __init__(
        self, k: int, start: Callable[[], "Future[dict[str, Any]]"], *, skipped: tuple[str, ...] = ()
    ) -> None:
        self.k = k
        self.skipped = skipped
        self.hits = 0
        self.second: Future[dict[str, Any]] | None = None
        self._start = start

    def __call__(self, point: FaultPoint) -> None:
        if point.startswith(self.skipped):
            return
        self.hits += 1
        if self.hits == self.k:
            self.second = self._start()
            wait({self.second}, timeout=BLOCKED_SECONDS)


def let_in(
    make: Callable[[], Server], k: int, begin: Callable[[Server], Any], first: Callable[[Any], Act],
    second: Callable[[Any], Act], *, is_begun_by_second: bool = False, skipped: tuple[str, ...] = (),
) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Return both answers, with the second let in at the k-th moment of the first, and whether that moment came.

    Args:
        make: Returns a server; called twice.
        k: From 1.
        begin: A coroutine function, run on the first server; its result is what both acts are made from.
        first: Makes the first act.
        second: Makes the second.
        is_begun_by_second: `begin` runs on the second server instead.
        skipped: How the names of the moments begin that aren't counted.
    """
    with start_blocking_portal() as here, start_blocking_portal() as there, start_blocking_portal() as errands:
        left, right = here.call(make().start), there.call(make().start)
        begun = there.call(begin, right) if is_begun_by_second else here.call(begin, left)
        hook = LetIn(k, lambda: errands.start_task_soon(ask_in_thread, there, right, second(begun)), skipped=skipped)
        left.hook = hook
        answer = ask(here, left, first(begun))
        left.hook = no_faults
        late = hook.second.result(PATIENCE_SECONDS) if hook.second is not None else ask(there, right, second(begun))
        for portal, server in ((here, left), (there, right)):
            if not server.is_dead:
                portal.call(server.stop)
    return answer, late, hook.second is not None


def at_every_moment(
    directory: Path, make: Callable[[Path, Path], Server], begin: Callable[[Server], Any], first: Callable[[Any], Act],
    second: Callable[[Any], Act], *, told_as: str, is_begun_by_second: bool = False, skipped: tuple[str, ...] = (),
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Path]]:
    """Yield both answers and the workspace, for every moment of the first act; then its log has to verify.

    `make` is given a fresh directory and the workspace in it; see `let_in` for the others.
    """
    for k in range(1, MOMENTS_MAX):
        scratch = directory / str(k)
        root = scratch / "ws"
        root.mkdir(parents=True)
        one, two, has_come = let_in(
            lambda s=scratch, r=root: make(s, r), k, begin, first, second, is_begun_by_second=is_begun_by_second,
            skipped=skipped,
        )
        if not has_come:
            assert k > 2, "the first was never disturbed"
            return
        yield one, two, root
        assert audit(scratch).findings == (), k
        count(told_as, 1)
    raise AssertionError("it has more moments than were looked at")
