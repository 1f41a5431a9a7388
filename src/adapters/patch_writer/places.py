"""The directories of one plan, each opened beneath the root once and held, so that a swapped parent can't divert us.

What is done goes on in the directory that was opened, also when its name comes to mean another one meanwhile; before
a patch counts as applied, `is_still_there` asks whether names and held directories still agree.
"""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from adapters.beneath import open_beneath, open_parent, open_root
from adapters.patch_writer.sight import NO_PARENT, NOT_REACHABLE, Sight, look

UNREACHABLE_NUMBERS: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EXDEV})
"""What opening says when a parent is a file, a link, or leads outside."""


@dataclass(frozen=True, slots=True)
class Place:
    """A planned path as its open directory and its name there."""

    path: str
    parent: str
    """`.` for the root."""
    directory: int
    name: bytes


class Places:
    """Finds and holds the directories of planned paths. Close it, or use it as a context manager."""

    def __init__(self, root: str) -> None:
        """Open `root`. Raises OSError."""
        self._root = open_root(root)
        self._held: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every directory."""
        for directory in self._held.values():
            os.close(directory)
        self._held.clear()
        os.close(self._root)

    def require_room(self, descriptors: int) -> None:
        """Do nothing if this process can open `descriptors` more files now. Raises OSError (EMFILE, ENFILE)."""
        spare: list[int] = []
        try:
            spare.extend(os.dup(self._root) for _ in range(descriptors))
        finally:
            for descriptor in spare:
                os.close(descriptor)

    def of(self, path: str) -> Place:
        """Return the place of `path`; the descriptor stays ours. Raises OSError as `open_beneath`."""
        parent = parent_of(path)
        if parent not in self._held:
            self._held[parent], _ = open_parent(self._root, path)
        leaf = path.rpartition("/")[2]
        return Place(path, parent, self._held[parent], leaf.encode("utf-8", "surrogateescape"))

    def look_at(self, path: str) -> Sight:
        """Return what stands at `path`, in the held directory if there is one. Raises OSError for a failing system."""
        try:
            place = self.of(path)
        except FileNotFoundError:
            return NO_PARENT
        except OSError as error:
            if error.errno in UNREACHABLE_NUMBERS:
                return NOT_REACHABLE
            raise
        return look(place.directory, place.name)

    def is_still_there(self, place: Place) -> bool:
        """Return whether the parent's name, opened from the root anew, is the directory that is held."""
        try:
            fresh = open_beneath(self._root, place.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno in UNREACHABLE_NUMBERS:
                return False
            raise
        try:
            return os.path.sameopenfile(fresh, place.directory)
        finally:
            os.close(fresh)

    def forget(self, parent: str) -> None:
        """Close the held directory `parent`, if any: it is gone."""
        directory = self._held.pop(parent, None)
        if directory is not None:
            os.close(directory)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Let an OSError from within name `path`, as text relative to the root."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def parent_of(path: str) -> str:
    """Return the directory part of `path`, `.` for the root."""
    return path.rpartition("/")[0] or "."


def parents_of(paths: Iterable[str]) -> list[str]:
    """Return the directories that hold `paths`, each once, sorted."""
    return sorted({parent_of(path) for path in paths})
