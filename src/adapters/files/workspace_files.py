"""The door: the files port over one directory of the host."""

import errno
import os

from adapters.beneath import open_beneath, path_error
from adapters.files import reading
from adapters.files.finding import find
from adapters.files.opening import lookalike, open_regular, opened_root
from adapters.files.paths import normalized
from adapters.files.searching import search
from codespace_es.ports.files import Listing, ReadWindow, RootIdentity, SearchFindings, SearchQuery, WorkspaceFiles
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Version
from codespace_es.vocabulary.file_change import FileImage

_PARENT = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)


class DirectoryFiles:
    """Files beneath one root. The root is opened anew by each call, so a replaced directory is seen at once."""

    def __init__(self, root: str) -> None:
        self._root = root

    def identity(self) -> RootIdentity:
        """Return device and inode of the directory that the root's path names now."""
        with opened_root(self._root) as root_fd:
            status = os.fstat(root_fd)
        return RootIdentity(status.st_dev, status.st_ino)

    def normalize(self, path: str) -> str:
        """Return `path` folded as text."""
        return normalized(path)

    def read_image(self, path: str, *, bytes_max: int) -> FileImage | None:
        """Return the whole file, or None if it is absent."""
        name = normalized(path)
        with opened_root(self._root) as root_fd:
            return reading.read_image(root_fd, name, bytes_max=bytes_max)

    def missing_directories(self, path: str) -> tuple[str, ...]:
        """Return the parents of `path` that don't exist, outermost first."""
        parts = normalized(path).split("/")[:-1]
        parents = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        with opened_root(self._root) as root_fd:
            for index, parent in enumerate(parents):
                try:
                    os.close(open_beneath(root_fd, parent, _PARENT))
                except OSError as error:
                    if error.errno == errno.ENOENT:
                        return tuple(parents[index:])
                    raise path_error(error, path) from error
        return ()

    def did_you_mean(self, path: str) -> str | None:
        """Return the existing path that only looks different from `path`, or None."""
        name = normalized(path)
        with opened_root(self._root) as root_fd:
            return lookalike(root_fd, name)

    def version(self, path: str) -> Version:
        """Return the version of a file, `absent` if there is none."""
        name = normalized(path)
        with opened_root(self._root) as root_fd:
            return reading.version_of(root_fd, name)

    def is_small(self, path: str, *, bytes_max: int) -> bool:
        """Return whether `path` is a regular file of at most `bytes_max` bytes."""
        try:
            name = normalized(path)
            with opened_root(self._root) as root_fd:
                descriptor, status = open_regular(root_fd, name)
                os.close(descriptor)
        except (OSError, CodespaceError):
            return False  # whatever is wrong is told by the read that follows
        return status.st_size <= bytes_max

    def read_window(self, path: str, *, offset: int, limit: int) -> ReadWindow:
        """Return at most `limit` bytes from `offset`."""
        name = normalized(path)
        with opened_root(self._root) as root_fd:
            return reading.read_window(root_fd, name, offset=offset, limit=limit)

    def read_lines(self, path: str, *, line_start: int, line_end: int | None, limit: int) -> ReadWindow:
        """Return a range of lines, at most `limit` bytes."""
        name = normalized(path)
        with opened_root(self._root) as root_fd:
            return reading.read_lines(root_fd, name, line_start=line_start, line_end=line_end, limit=limit)

    def find(self, glob: str | None, *, include_ignored: bool = False) -> Listing:
        """Return the files that `glob` names."""
        with opened_root(self._root) as root_fd:
            return find(root_fd, glob, include_ignored=include_ignored)

    def search(self, query: SearchQuery) -> SearchFindings:
        """Return the lines that match."""
        with opened_root(self._root) as root_fd:
            return search(root_fd, query)


class DirectoryFilesByRoot:
    """Opens directories of the host as workspaces. It holds no descriptor and no lock."""

    def open(self, root: str) -> WorkspaceFiles:
        """Return the files beneath `root`; what is wrong with it shows at the first use."""
        return DirectoryFiles(root)
