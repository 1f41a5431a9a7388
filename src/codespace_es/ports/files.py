"""Reading a workspace, beneath its root and never through a link. All of it is synchronous: call from a worker thread.

A swap of a component between check and use can't escape: every component is opened beneath the root by descriptor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from codespace_es.vocabulary.event import Version
from codespace_es.vocabulary.file_change import FileImage


@dataclass(frozen=True, slots=True)
class RootIdentity:
    """By which a root is recognised again: a directory that was replaced is another one."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """A part of a file and what is known about the whole of it."""

    content: str
    version: Version
    """Of the whole file."""
    offset: int
    byte_count: int
    """Raw bytes in the window."""
    size_bytes: int
    line_count: int
    """Lines of the whole file; a last line without an end counts."""
    content_lossy: bool
    """Replacement characters stand for bytes that are not UTF-8."""
    line_start: int | None = None
    line_end: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a workspace that a glob names, sorted by their bytes."""

    paths: Sequence[str]
    """Relative, `/` separators; bytes that aren't UTF-8 stand as `\\xNN`."""
    ignored_count: int
    """Files and directories left out by ignore rules."""
    is_incomplete: bool
    """The walk hit a cap, so there may be more."""
    unreadable_count: int = 0
    """Of `paths`: names that aren't UTF-8, which no path argument can say."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to look for in the text of files."""

    pattern: str
    is_regex: bool = False
    glob: str | None = None
    is_case_sensitive: bool = True
    context_lines: int = 0
    limit: int = 200
    offset: int = 0
    include_ignored: bool = False


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """One matching line."""

    path: str
    line: int
    """1-based."""
    column: int
    """1-based, in code points."""
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """A page of matches, by path and line."""

    matches: Sequence[SearchMatch]
    is_truncated: bool
    """More matches follow this page."""
    is_incomplete: bool
    """The walk or the time limit cut the search."""
    files_searched: int
    ignored_count: int


class WorkspaceFiles(Protocol):
    """One workspace's directory, read-only.

    Every path argument is relative to the root. Errors, in the order they are checked: PATH_ESCAPE (empty, absolute,
    NUL, lone surrogates, climbing above the root), SYMLINK_REJECTED (the leaf or any parent), PATH_NOT_DIRECTORY (a
    parent is a file), FILE_NOT_FOUND, SPECIAL_FILE_REJECTED (directory, FIFO, socket, device; never blocks on one),
    FILE_OPERATION_FAILED (any other failure of the system, a missing root included).
    """

    def identity(self) -> RootIdentity:
        """Return what recognises the root directory. Raises FILE_OPERATION_FAILED if it is gone."""
        ...

    def normalize(self, path: str) -> str:
        """Return `path` with `.`, `..` and doubled slashes folded as text. Raises PATH_ESCAPE."""
        ...

    def read_image(self, path: str, *, bytes_max: int) -> FileImage | None:
        """Return the whole file, or None if it is absent (a missing parent too).

        Raises INVALID_PATCH for a file larger than `bytes_max`, and the codes above.
        """
        ...

    def missing_directories(self, path: str) -> tuple[str, ...]:
        """Return the parents of `path` that don't exist, outermost first. Raises the codes above."""
        ...

    def did_you_mean(self, path: str) -> str | None:
        """Return the existing path that differs from `path` only in letter case or Unicode form, or None.

        FILE_NOT_FOUND of the reading methods carries it in `detail`. Raises PATH_ESCAPE, FILE_OPERATION_FAILED.
        """
        ...

    def version(self, path: str) -> Version:
        """Return the version of a file, `absent` if there is none; the file is streamed, whatever its size."""
        ...

    def is_small(self, path: str, *, bytes_max: int) -> bool:
        """Return whether `path` is a regular file of at most `bytes_max` bytes: quick to read. No error."""
        ...

    def read_window(self, path: str, *, offset: int, limit: int) -> ReadWindow:
        """Return at most `limit` bytes from `offset`, ending on a character boundary where that is possible.

        Past the end the window is empty. The file is streamed: memory is bounded by the window.
        """
        ...

    def read_lines(self, path: str, *, line_start: int, line_end: int | None, limit: int) -> ReadWindow:
        """Return lines `line_start` to `line_end` (1-based, inclusive; -n: the last n lines), at most `limit` bytes."""
        ...

    def find(self, glob: str | None, *, include_ignored: bool = False) -> Listing:
        """Return the files that `glob` names. Raises INVALID_ARGUMENT for a glob that can't be understood."""
        ...

    def search(self, query: SearchQuery) -> SearchFindings:
        """Return the lines that match, in linear time. Raises INVALID_ARGUMENT for a bad pattern or glob."""
        ...


class FilesByRoot(Protocol):
    """Opens workspaces by their root."""

    def open(self, root: str) -> WorkspaceFiles:
        """Return the files beneath `root` (absolute). Never fails: what is wrong shows at the first use."""
        ...


Images = Mapping[str, bytes]
"""Digest -> content."""
