"""The lock by which an instance shows that it lives: held by its server and its spawner until both are gone.

Its file goes with the last of them where they end in good order, else with whoever has proved by it that they are dead:
no file says the same as a file that nobody has locked.
"""

import time
from contextlib import suppress
from itertools import islice
from typing import Final

from adapters.locks.flock import HeldFlock, LockDirectory
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import InstanceId

_TIDIED_AT_ONCE_MAX: Final = 1_000
"""Files that one tidying looks at; the rest is for the next."""
_TRIES: Final = 100
_PAUSE_SECONDS: Final = 0.01


class OwnInstanceLock:
    """The lock of a living instance, in its own hand. Implements `Held`."""

    def __init__(self, held: HeldFlock, instance_id: InstanceId, locks: LockDirectory) -> None:
        self._held = held
        self._instance_id = instance_id
        self._locks = locks

    def fileno(self) -> int:
        """Return the descriptor that holds the lock. Raises ValueError after `release`."""
        return self._held.fileno()

    def is_in_place(self) -> bool:
        """Return whether others can still see by this lock that the instance lives."""
        return self._held.is_in_place()

    def release(self) -> None:
        """Let go, and remove the file unless a spawner holds a duplicate still; a second call does nothing."""
        if not self._held.is_held:
            return
        was_in_place = self._held.is_in_place()
        self._held.release()
        if was_in_place:
            with suppress(CodespaceError):  # a file that stays is untidy, no more
                left = self._locks.try_lock(self._instance_id)
                if left is not None:
                    left.remove()


class DeadInstanceLock:
    """The lock of a dead instance, in the hand of whoever needs the proof. Implements `Held`."""

    def __init__(self, held: HeldFlock) -> None:
        self._held = held

    def fileno(self) -> int:
        """Return the descriptor that holds the lock. Raises ValueError after `release`."""
        return self._held.fileno()

    def release(self) -> None:
        """Remove the file and let go; a second call does nothing."""
        if self._held.is_held:
            self._held.remove()


class FlockInstanceLocks:
    """One lock file an instance. Implements `InstanceLocks`."""

    def __init__(self, directory: str) -> None:
        self._locks = LockDirectory(directory)

    def take_own(self, instance_id: InstanceId) -> OwnInstanceLock:
        """Take the lock of this, new, instance; whoever tidies may have it for a moment.

        Raises:
            CodespaceError: INTERNAL when somebody holds it already, so the id isn't new; FILE_OPERATION_FAILED.
        """
        for _ in range(_TRIES):
            held = self._locks.try_lock(instance_id)
            if held is not None:
                return OwnInstanceLock(held, instance_id, self._locks)
            time.sleep(_PAUSE_SECONDS)
        raise CodespaceError(ErrorCode.INTERNAL, f"The lock of {instance_id} is held by another process.")

    def try_take(self, instance_id: InstanceId) -> DeadInstanceLock | None:
        """Return the lock of a dead instance, or None while it, or somebody who cleans up after it, holds it.

        Raises:
            CodespaceError: FILE_OPERATION_FAILED.
        """
        held = self._locks.try_lock(instance_id)
        return None if held is None else DeadInstanceLock(held)

    def tidy(self) -> None:
        """Remove the files of dead instances. See the port.

        Raises:
            CodespaceError: FILE_OPERATION_FAILED.
        """
        for name in islice(self._locks.names("inst-"), _TIDIED_AT_ONCE_MAX):
            held = self._locks.try_lock(name)
            if held is not None:
                held.remove()

    def directory_id(self) -> str:
        """Return what names this directory of locks. Raises CodespaceError: FILE_OPERATION_FAILED."""
        return self._locks.directory_id()
