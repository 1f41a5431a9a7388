"""The handles of commands that live in this very process: the one thing not in the log, since it can't outlive us.

What became of a command is never asked of this; only how to reach it while it runs.
"""

from collections.abc import Iterator

from codespace_es.ports.runner import LiveProcess
from codespace_es.vocabulary.identifiers import ProcessId


class LiveProcesses:
    """Process id → handle, from go until the exit is on record."""

    def __init__(self) -> None:
        self._handles: dict[ProcessId, LiveProcess] = {}

    def add(self, process_id: ProcessId, handle: LiveProcess) -> None:
        """Remember a command that was let go."""
        self._handles[process_id] = handle

    def forget(self, process_id: ProcessId) -> None:
        """Drop the handle of one whose exit is on record."""
        self._handles.pop(process_id, None)

    def find(self, process_id: str) -> LiveProcess | None:
        """Return the handle, None if it doesn't live here."""
        return self._handles.get(ProcessId(process_id))

    def __iter__(self) -> Iterator[ProcessId]:
        return iter(tuple(self._handles))
