"""Writing a planned patch: all of it or none, decided by hashes on disk alone. Synchronous: call from a worker thread.

The caller holds the workspace's lease and has made the plan and both images durable before it calls.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from codespace_es.vocabulary.event import Digest, Fault
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile
from codespace_es.vocabulary.identifiers import OperationId


@dataclass(frozen=True, slots=True)
class PatchOrder:
    """A minted plan: all that is needed to carry it out, or to find out later how far that came."""

    operation_id: OperationId
    root: str
    plan: tuple[PlannedFile, ...]
    made_directories: tuple[str, ...]
    image: Callable[[Digest], bytes]
    """Content by digest, before- and after-images. May block; raises LookupError for one that is gone."""
    removed_directories: tuple[str, ...] = ()
    """Directories to remove when all else is done, if they are empty then; parents first (an undo's)."""


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What the disk says, by whoever has looked at it. `findings` is empty exactly when the status is `applied`."""

    status: Literal["applied", "failed_rolled_back", "failed_partial", "unknown"]
    fault: Fault | None = None
    findings: tuple[FileFinding, ...] = ()
    is_swap_atomic: bool = True


class SettleImpossibleError(Exception):
    """The files can't be brought back now (full disk, no permission): the operation stays open, and is tried again."""


class PatchWriter(Protocol):
    """Carries out plans.

    Guarantees: `applied` is returned only after every file was re-read from disk and everything is durable there. No
    content that is neither a planned before- nor after-image is ever overwritten or lost. After `failed_rolled_back`
    every byte, mode and directory is as it was. No temporary file outlives a call that returns.
    """

    def write(self, order: PatchOrder) -> WriteOutcome:
        """Apply the plan. A conflict or failure on the way is undone and returned as an outcome with its fault.

        Never raises for a failure of the system; a bug escapes.
        """
        ...

    def settle(self, order: PatchOrder) -> WriteOutcome:
        """Close what a crash left, by the hashes on disk; never applies. Repeating it changes nothing.

        Raises:
            SettleImpossibleError: an undo couldn't be finished; call again later.
        """
        ...

    def inspect(self, order: PatchOrder) -> tuple[FileFinding, ...]:
        """Return what is at each planned path now, in plan order. Changes nothing."""
        ...
