"""The commands that live in this very process: the one thing not in the log, since it can't outlive us.

What became of a command is never asked of this; only how to reach it while it runs.
"""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from codespace_es.ports.runner import EndCause, LiveProcess
from codespace_es.vocabulary.identifiers import ProcessId


class Signal(Protocol):
    """Something that happens once and can be waited for."""

    def set(self) -> None:
        """Let it have happened."""
        ...

    def is_set(self) -> bool:
        """Return whether it has happened."""
        ...

    async def wait(self) -> Any:
        """Return once it has happened."""
        ...


@dataclass(slots=True)
class Living:
    """A command that was let go and whose exit isn't on record yet."""

    handle: LiveProcess
    turn: AbstractAsyncContextManager[Any]
    """A lock, first come first served: what is done to a command is recorded and done in the order of the calls."""
    recorded: Signal
    """Its exit is on record, and it was forgotten here."""
    end_cause: EndCause | None = None
    """Who was the first to want its end, while it still ran."""


class LiveProcesses:
    """Process id → command, from go until the exit is on record."""

    def __init__(self) -> None:
        self._commands: dict[ProcessId, Living] = {}
        self.is_closing = False
        """This server ends: nothing is begun any more, and whatever is let go even so has to end at once."""

    def add(self, process_id: ProcessId, living: Living) -> None:
        """Remember a command that was let go."""
        self._commands[process_id] = living

    def forget(self, process_id: ProcessId) -> None:
        """Drop one whose exit is on record, and tell whoever waits for that."""
        living = self._commands.pop(process_id, None)
        if living is not None:
            living.recorded.set()

    def find(self, process_id: str) -> Living | None:
        """Return the command, None if it doesn't live here."""
        return self._commands.get(ProcessId(process_id))

    def __iter__(self) -> Iterator[ProcessId]:
        return iter(tuple(self._commands))

    def __len__(self) -> int:
        return len(self._commands)
