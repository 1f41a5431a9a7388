"""The named moments of death: where a test may end the process, raise an error or pause.

Every durable step of an effect has one before it. Production passes `no_faults`. A test demands that the list is
complete both ways: each point is hit by some test, each hit is of a listed point.
"""

from collections.abc import Callable
from enum import StrEnum


class FaultPoint(StrEnum):
    """Moments between two durable steps, named for what was about to happen or just has."""

    # The log
    APPEND_BEGIN = "append.begin"
    APPEND_IN_TRANSACTION = "append.in_transaction"
    APPEND_COMMITTED = "append.committed"
    # The story of a patch
    PATCH_LEASED = "patch.leased"
    PATCH_PLANNED = "patch.planned"
    PATCH_MINTED = "patch.minted"
    PATCH_WRITTEN = "patch.written"
    PATCH_FINISHED = "patch.finished"
    # The patch transaction
    DIRECTORY_MAKE = "directory.make"
    TEMP_CREATE = "temp.create"
    TEMP_HALF_WRITTEN = "temp.half_written"
    TEMP_UNSYNCED = "temp.unsynced"
    TEMP_SYNCED = "temp.synced"
    INSTALL = "install.begin"
    INSTALL_SWAPPED = "install.swapped"
    INSTALL_DONE = "install.done"
    INSTALL_PUT_BACK = "install.put_back"
    VERIFY = "verify.begin"
    SWEEP = "sweep.temp"
    DIRECTORY_SYNC = "directory.sync"
    # Undoing, without or after a crash
    UNDO = "undo.begin"
    UNDO_SWAPPED = "undo.swapped"
    UNDO_DONE = "undo.done"
    DIRECTORY_REMOVE = "directory.remove"
    # The story of a command
    EXEC_LEASED = "exec.leased"
    EXEC_FORKED = "exec.forked"
    EXEC_RECORDED = "exec.recorded"
    EXEC_GONE = "exec.gone"
    EXEC_ENDED = "exec.ended"
    EXEC_EXIT_RECORDED = "exec.exit_recorded"
    # The story of a resolve by a callback
    RESOLVE_STARTED = "resolve.started"
    RESOLVE_EFFECT_BEGUN = "resolve.effect_begun"
    CALLBACK_RETURNED = "callback.returned"
    RESOLVE_ENDED = "resolve.ended"
    # Settling what a dead instance left
    SETTLE_LOCKED = "settle.locked"
    SETTLE_FILES_DONE = "settle.files_done"
    SETTLE_CLOSED = "settle.closed"
    INSTANCE_RECOVERED = "instance.recovered"


FaultHook = Callable[[FaultPoint], None]
"""Called at each point with its name. It may raise, sleep or end the process."""


def no_faults(_point: FaultPoint) -> None:
    """Do nothing: what production passes."""
