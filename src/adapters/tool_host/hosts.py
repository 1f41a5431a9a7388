"""Which source is loaded in which process, and whose fault it is when one ends.

All sources share one process. When it ends by itself, or hangs, nobody can tell for certain who did it: a file may
have left a thread behind. Whoever's call ran then is named. From then on each source has a process of its own, and the
next end is certainly of that one, which is skipped until the server starts again. SIGKILL proves little, since people
and the system kill so; it has to come thrice. A source that takes too long to load is known at once.
Source: decision 32; ADR 0014.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.abc import TaskGroup

from adapters.tool_host.end import HostEnd
from adapters.tool_host.host import Host, HostEndedError
from adapters.tool_host.messages import Loaded, Refused
from adapters.tool_host.sources import Source
from codespace_es.ports.custom_tools import OrphanedAction
from codespace_es.vocabulary import limits

OnOrphans = Callable[[Sequence[OrphanedAction]], Awaitable[None]]

logger = logging.getLogger(__name__)

_KILLS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, for tests to shorten."""

    load: float = limits.TOOL_LOAD_SECONDS_MAX
    grace: float = limits.TOOL_STOP_GRACE_SECONDS


DEFAULT_LIMITS: Final = Limits()


@dataclass(slots=True, eq=False)
class _Group:
    """Sources that share a process."""

    sources: tuple[Source, ...]
    host: Host | None = None
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    kills: int = 0


class SkippedError(Exception):
    """A source isn't loaded any more, or never was. The text is a clause: `it …`."""


class Hosts:
    """The processes of the sources, started when they are needed."""

    def __init__(
        self, tasks: TaskGroup, sources: tuple[Source, ...], *, roots: tuple[str, ...],
        on_said: Callable[[Source, Loaded | Refused], None], on_skip: Callable[[Source, str], None],
        on_suspect: Callable[[Source, str], None],
        on_orphans: OnOrphans, limits_of_time: Limits,
    ) -> None:
        self._tasks = tasks
        self._roots = roots
        self._on_said = on_said
        self._on_skip = on_skip
        self._on_suspect = on_suspect
        self._on_orphans = on_orphans
        self._limits = limits_of_time
        self._groups = [_Group(sources)] if sources else []
        self._skipped: dict[Source, str] = {}
        self._is_closing = False

    async def of(self, source: Source) -> Host:
        """Return the process in which `source` is loaded, started if need be. Raises SkippedError."""
        while True:
            reason = self._skipped.get(source)
            if reason is not None or self._is_closing:
                raise SkippedError(reason or "it ends with the server")
            group = next(each for each in self._groups if source in each.sources)
            async with group.turn:
                if group not in self._groups or source in self._skipped:
                    continue
                if group.host is None or not group.host.is_up:
                    with anyio.CancelScope(shield=True):  # whoever asks may go; others wait for it too
                        await self._bring_up(group)
                if group.host is not None and group.host.is_up:
                    return group.host

    def with_closure(self, action_id: str) -> Host | None:
        """Return the process in which the callbacks of a pending action live."""
        hosts = (group.host for group in self._groups)
        return next((host for host in hosts if host is not None and action_id in host.closures), None)

    async def close(self) -> None:
        """End all of them, and return when they are gone."""
        self._is_closing = True
        for group in list(self._groups):
            if group.host is not None:
                await group.host.kill(HostEnd("closed", "it ends with the server"))

    async def _bring_up(self, group: _Group) -> None:
        """Give a group a process with all that can be loaded; none if it has to be split, or nothing is left."""
        while True:
            wanted = [source for source in group.sources if source not in self._skipped]
            if not wanted or self._is_closing:
                group.host = None
                return
            loading = wanted[0]
            try:
                group.host = host = Host(self._tasks, tuple(wanted), self._ended, grace_seconds=self._limits.grace)
                for loading in wanted:
                    host.loading = loading
                    said = await host.load(loading, self._roots, self._limits.load)
                    if isinstance(said, Refused):
                        self._skipped[loading] = said.problem
                    self._on_said(loading, said)
                host.loading = None
            except HostEndedError as ended:
                if ended.end.kind == "closed":
                    return
                if ended.end.kind == "hung" or len(wanted) == 1:
                    self._skip(loading, ended.end)
                else:
                    self._split(group)
                    return
            else:
                return

    async def _ended(self, host: Host) -> None:
        """See to what a process leaves behind, and who was it."""
        assert host.end is not None, "it has ended"
        if host.end.kind != "closed" and host.closures:
            await self._on_orphans([kept.action for kept in host.closures.values()])
        host.closures = {}
        if host.end.kind == "closed" or host.loading is not None:
            return  # what ends while it is brought up is judged there
        group = next((each for each in self._groups if each.host is host), None)
        if group is None:
            return
        group.host = None
        logger.warning("Custom tools: a process has ended: %s.", host.end.words)
        if len(host.sources) > 1:
            for source in host.busy_sources:
                self._on_suspect(source, f"{host.end.words}, while a call of it ran; from now on it has a process of "
                                         "its own, and is skipped if that happens again.")
            self._split(group)
            return
        group.kills += host.end.kind == "killed"
        if host.end.kind != "killed" or group.kills >= _KILLS_MAX:
            self._skip(host.sources[0], host.end)

    def _split(self, group: _Group) -> None:
        """Give each source of a group a process of its own from now on."""
        place = self._groups.index(group)
        self._groups[place : place + 1] = [_Group((source,)) for source in group.sources]

    def _skip(self, source: Source, end: HostEnd) -> None:
        reason = f"{end.words}; it is skipped until the server starts again."
        self._skipped[source] = reason
        self._on_skip(source, reason)
