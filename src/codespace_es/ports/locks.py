"""Locks of the operating system: who lives, and who may mutate a workspace now. They fall with their last holder."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.identifiers import InstanceId, WorkspaceKey


class Held(Protocol):
    """A lock in hand."""

    def fileno(self) -> int:
        """Return the descriptor that holds the lock, to be passed to a child that shall hold it too."""
        ...

    def release(self) -> None:
        """Let go. A second call does nothing; a duplicate elsewhere still holds."""
        ...


class InstanceLocks(Protocol):
    """One lock an instance, held as long as its server or its spawner lives."""

    def take_own(self, instance_id: InstanceId) -> Held:
        """Take this process' own lock, before its first event."""
        ...

    def try_take(self, instance_id: InstanceId) -> Held | None:
        """Return the lock of a dead instance, or None while it lives. In hand, it is the proof of death.

        Only for an instance whose lock is in this very directory: any other one's would always be free.
        """
        ...

    def tidy(self) -> None:
        """Remove what is left in this very directory of instances whose lock nobody holds, at most so much at a time.

        That says nothing new of them: no lock says the same as one that is free. May block.
        """
        ...

    def directory_id(self) -> str:
        """Return what names this directory of locks, the same for all who use it; made with it."""
        ...


class WorkspaceLeases(Protocol):
    """At most one of {patch transaction, live process tree} a workspace, over all servers of this user."""

    async def acquire(
        self,
        key: WorkspaceKey,
        *,
        refuse: Callable[[], Awaitable[CodespaceError | None]],
        on_wait: Callable[[float], Awaitable[None]],
    ) -> Held:
        """Return the lease; wait in order of arrival (inside one process; between processes by polling).

        `refuse` is asked before and while waiting, and its error ends the wait; `on_wait` is told the seconds waited
        about every 5 s. A cancelled wait leaves the queue and holds nothing.

        Raises:
            CodespaceError: RESOURCE_QUEUE_FULL when 64 are waiting already, or what `refuse` returned.
        """
        ...
