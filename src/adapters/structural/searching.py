"""The structural search port over a crew of workers: reads files, has them looked at, and puts the answers together.

One job at a time, in a thread of its own, so that neither the engine nor the reading ever holds up the event loop; who
comes later waits in line. Source: the pending-actions paper, ast_edit and ast_grep.
"""

import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import anyio
from anyio import to_thread

from adapters.structural.crew import Crew
from adapters.structural.finding import find_matches
from adapters.structural.inquiry import unusable
from adapters.structural.patterns import fault_of_pattern, fault_of_replacement
from adapters.structural.remaking import rewrite_files
from adapters.structural.scope import wanted_language
from adapters.structural.worker_link import WorkerUnavailableError
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.structural_search import RewriteFindings, Rewriting, StructuralFindings, StructuralScope
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_CREW_SIZE_MAX: Final = 4
_IDLE_SECONDS_MAX: Final = 300.0

_Result = TypeVar("_Result")


class CrewStructuralSearch:
    """Keeps a crew, which is started by the first job. Implements `StructuralSearch`."""

    def __init__(self, crew: Crew, *, files_changed_max: int = limits.STRUCTURAL_FILES_CHANGED_MAX) -> None:
        self._crew = crew
        self._files_changed_max = files_changed_max
        self._line = anyio.CapacityLimiter(1)
        self._at_work = threading.Lock()
        self._jobs = 0
        self._begun = anyio.Event()

    async def find(
        self, files: WorkspaceFiles, scope: StructuralScope, pattern: str, *, limit: int, offset: int
    ) -> StructuralFindings:
        """Return a page of matches."""
        wanted_language(scope.language)
        _require_usable("pat", pattern, fault_of_pattern(pattern))
        return await self._run(lambda crew, is_left: find_matches(
            crew, files, scope, pattern, limit=limit, offset=offset, is_left=is_left
        ))

    async def rewrite(
        self, files: WorkspaceFiles, scope: StructuralScope, rewritings: Sequence[Rewriting], *, limit: int | None
    ) -> RewriteFindings:
        """Return what matches would become."""
        wanted_language(scope.language)
        for each in rewritings:
            _require_usable("pat", each.pattern, fault_of_pattern(each.pattern))
            _require_usable("out", each.replacement, fault_of_replacement(each.replacement))
        return await self._run(lambda crew, is_left: rewrite_files(
            crew, files, scope, rewritings, limit=limit, files_max=self._files_changed_max, is_left=is_left
        ))

    async def _run(self, job: Callable[[Crew, Callable[[], bool]], _Result]) -> _Result:
        """Return what `job` gives, in a thread. A caller that is cancelled leaves it, and it ends by itself, soon."""
        left = threading.Event()
        self._jobs += 1
        self._begun.set()

        def work() -> _Result:
            with self._at_work:
                return job(self._crew, left.is_set)

        try:
            return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._line)
        except WorkerUnavailableError as error:
            raise CodespaceError(
                ErrorCode.TOOL_FAILED,
                f"Code can't be looked at by its structure now: {error} Nothing was changed. Memory or processes may "
                "be short on the server: call again later, or use search.",
            ) from error
        finally:
            left.set()

    async def let_go_when_idle(self, seconds: float) -> None:
        """End the workers whenever nothing has been asked for `seconds`. Runs until it is cancelled."""
        while True:
            await self._begun.wait()
            seen = -1
            while seen != self._jobs or self._line.borrowed_tokens:
                seen = self._jobs
                await anyio.sleep(seconds)
            self._begun = anyio.Event()
            await self.close()

    async def close(self) -> None:
        """End the workers."""

        def end() -> None:
            with self._at_work:
                self._crew.close()

        await to_thread.run_sync(end)


def _require_usable(field: str, text: str, fault: str | None) -> None:
    """Raise INVALID_ARGUMENT if there is a fault."""
    if fault is not None:
        raise unusable(field, text, fault)


@asynccontextmanager
async def open_structural_search(
    *, files_changed_max: int, idle_seconds_max: float = _IDLE_SECONDS_MAX
) -> AsyncIterator[CrewStructuralSearch]:
    """Have a structural search. Its workers end when they are idle for long, and when it is left."""
    size = min(os.cpu_count() or 1, _CREW_SIZE_MAX)
    crew = Crew(
        size=size, file_seconds_max=limits.STRUCTURAL_FILE_SECONDS_MAX, seconds_max=limits.STRUCTURAL_SECONDS_MAX
    )
    search = CrewStructuralSearch(crew, files_changed_max=files_changed_max)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(search.let_go_when_idle, idle_seconds_max)
        try:
            yield search
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await search.close()
