"""What a plan needs to know of the real files. The files port satisfies it by its shape."""

from typing import Protocol

from codespace_es.vocabulary.file_change import FileImage


class PatchTree(Protocol):
    """A directory, read-only. Each path is relative to its root."""

    def normalize(self, path: str) -> str:
        """Return `path` with `.`, `..` and doubled slashes folded as text. Raises PATH_ESCAPE."""
        ...

    def read_image(self, path: str, *, bytes_max: int) -> FileImage | None:
        """Return the whole file, or None if it is absent (a missing parent too).

        Raises SYMLINK_REJECTED, PATH_NOT_DIRECTORY (a parent is a file), SPECIAL_FILE_REJECTED (a directory, FIFO,
        socket or device), INVALID_PATCH (larger than `bytes_max`), FILE_OPERATION_FAILED.
        """
        ...

    def missing_directories(self, path: str) -> tuple[str, ...]:
        """Return the parents of `path` that don't exist, outermost first."""
        ...

    def did_you_mean(self, path: str) -> str | None:
        """Return the name of a file that `path` may stand for (letter case, Unicode form, kind of space), or None."""
        ...
