"""The lock by which an instance shows that it lives: held by its server and its spawner until both are gone."""

from adapters.locks.flock import HeldFlock, LockDirectory
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import InstanceId


class FlockInstanceLocks:
    """One lock file an instance. Implements `InstanceLocks`."""

    def __init__(self, directory: str) -> None:
        self._locks = LockDirectory(directory)

    def take_own(self, instance_id: InstanceId) -> HeldFlock:
        """Take the lock of this, new, instance.

        Raises:
            CodespaceError: INTERNAL when somebody holds it already, so the id isn't new; FILE_OPERATION_FAILED.
        """
        held = self._locks.try_lock(instance_id)
        if held is None:
            raise CodespaceError(ErrorCode.INTERNAL, f"The lock of {instance_id} is held by another process.")
        return held

    def try_take(self, instance_id: InstanceId) -> HeldFlock | None:
        """Return the lock of a dead instance, or None while it, or somebody who cleans up after it, holds it.

        Raises:
            CodespaceError: FILE_OPERATION_FAILED.
        """
        return self._locks.try_lock(instance_id)
