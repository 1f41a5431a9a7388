"""What a patch will do: enough to mint an operation, to write it, and to show it. Nothing has been written."""

from collections.abc import Mapping
from dataclasses import dataclass

from codespace_es.v4a.warning import PatchWarning
from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.file_change import PlannedFile


@dataclass(frozen=True, slots=True)
class Plan:
    """The net effect of all sections."""

    files: tuple[PlannedFile, ...]
    """One row a path, in the order in which the patch first names them; a path that ends as it began absent has none.

    A path that was absent and gets a file from elsewhere is a `move`; one that had a file is an `update`, also where a
    moved file takes its place (then with `moved_from`).
    """
    images: Mapping[Digest, bytes]
    """Every before- and after-image of `files`."""
    made_directories: tuple[str, ...]
    """Parents first. One of them may be the path of a file that the plan deletes."""
    summaries: Mapping[str, str]
    """Path -> `+n -m`. What was moved counts at its destination alone."""
    diff: str
    """Unified, at most DIFF_BYTES_MAX bytes, cut between lines."""
    is_diff_truncated: bool
    warnings: tuple[PatchWarning, ...]

    @property
    def file_order(self) -> tuple[str, ...]:
        """The paths of `files`, in their order. Source: contract B3.6."""
        return tuple([row.path for row in self.files])
