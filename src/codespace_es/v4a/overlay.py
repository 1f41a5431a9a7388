"""The real files with what the sections so far have done to them: read once, written nowhere."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from codespace_es.v4a.line_ends import Edit, TextFile
from codespace_es.v4a.refusal import excerpt, refusal
from codespace_es.v4a.tree import PatchTree
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.limits import IMAGE_BYTES_MAX, MIB, PATCH_IMAGES_BYTES_MAX


@dataclass(frozen=True)
class VirtualFile:
    """A file as the sections so far have left it."""

    content: bytes
    mode: int
    origin: str | None
    """The real path whose file this is, moved and edited as it may be; None for one that the patch made."""
    links: int = 1
    text: TextFile | None = None
    """The origin's text, where an update has read it."""
    edits: tuple[Edit, ...] | None = ()
    """From the origin's lines to these; None where more than one section edited it."""

    @cached_property
    def digest(self) -> Digest:
        """The version of the content."""
        return digest_of(self.content)


class Overlay:
    """Files by normalised path, as real and as changed. Paths keep the order in which they were first mentioned."""

    def __init__(self, tree: PatchTree) -> None:
        self._tree = tree
        self.before: dict[str, VirtualFile | None] = {}
        """What really is at each path mentioned."""
        self.now: dict[str, VirtualFile | None] = {}
        """What the sections so far have made of it."""
        self._made_directories: set[str] = set()
        self._images_bytes = 0

    def file(self, path: str) -> VirtualFile | None:
        """Return the file at `path`, or None if there is none.

        Raises:
            CodespaceError: PATH_NOT_DIRECTORY where a parent is a file, SPECIAL_FILE_REJECTED for a directory, also
                where only this patch makes them so; what the tree raises.
        """
        if path in self._made_directories:
            raise refusal(
                ErrorCode.SPECIAL_FILE_REJECTED, f"'{excerpt(path, 120)}' is a directory that this patch makes."
            )
        if path not in self.now:
            self.before[path] = self.now[path] = self._read(path)
        return self.now[path]

    def put(self, path: str, file: VirtualFile) -> None:
        """Make `path` this file. Raises INVALID_PATCH for one that is too large, or if all are together."""
        if len(file.content) > IMAGE_BYTES_MAX:
            raise _too_large(f"'{excerpt(path, 120)}' would be larger than {IMAGE_BYTES_MAX // MIB} MiB.")
        self._forget_bytes(path)
        self.now[path] = file
        self._count_bytes(len(file.content))
        self._made_directories.update(parents(path))

    def remove(self, path: str) -> None:
        """Leave nothing at `path`; the directories around it stay."""
        self._forget_bytes(path)
        self.now[path] = None

    def missing_directories(self, path: str) -> tuple[str, ...]:
        """Return the parents of `path` that have to be made, outermost first: a file that gives way is one of them."""
        above = list(parents(path))
        for index, parent in enumerate(above):
            if self._has_given_way(parent):
                return tuple(above[index:])
        return self._tree.missing_directories(path)

    def _read(self, path: str) -> VirtualFile | None:
        for parent in parents(path):
            if self.now.get(parent) is not None:
                raise refusal(
                    ErrorCode.PATH_NOT_DIRECTORY, f"'{excerpt(parent, 120)}', a parent of the path, is a file."
                )
            if self._has_given_way(parent):
                return None
        image = self._tree.read_image(path, bytes_max=IMAGE_BYTES_MAX)
        if image is None:
            return None
        self._count_bytes(len(image.content))
        return VirtualFile(image.content, image.mode, path, image.links)

    def _has_given_way(self, path: str) -> bool:
        return self.before.get(path) is not None and self.now[path] is None

    def _forget_bytes(self, path: str) -> None:
        """Take what a section put at `path` out of the sum; what really was there stays in it."""
        file = self.now.get(path)
        if file is not None and file is not self.before[path]:
            self._images_bytes -= len(file.content)

    def _count_bytes(self, size_bytes: int) -> None:
        self._images_bytes += size_bytes
        if self._images_bytes > PATCH_IMAGES_BYTES_MAX:
            limit = f"{PATCH_IMAGES_BYTES_MAX // MIB} MiB"
            raise _too_large(f"The files of the patch, before and after, are together larger than {limit}.")


def parents(path: str) -> Iterator[str]:
    """Yield the directories above `path`, outermost first."""
    cut = path.find("/")
    while cut > 0:
        yield path[:cut]
        cut = path.find("/", cut + 1)


def with_content(file: VirtualFile, content: bytes, text: TextFile, edits: tuple[Edit, ...]) -> VirtualFile:
    """Return `file` after one more update of `text`."""
    is_first = file.edits == () and file.text is None and file.origin is not None
    if is_first:
        return replace(file, content=content, text=text, edits=edits)
    return replace(file, content=content, edits=None)


def _too_large(message: str) -> CodespaceError:
    return refusal(ErrorCode.INVALID_PATCH, message)
