"""Which files a workspace has: the walk, a glob, and the order that callers see."""

from adapters.beneath import path_error, shown_name
from adapters.files.globs import literal_directory, path_test
from adapters.files.walking import CAPS, Walk, WalkCaps, walk
from codespace_es.ports.files import Listing
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode


def find(root_fd: int, glob: str | None, *, include_ignored: bool = False, caps: WalkCaps = CAPS) -> Listing:
    """Return the files that `glob` names, sorted by their bytes. Raises INVALID_ARGUMENT, FILE_OPERATION_FAILED."""
    found = named_files(root_fd, glob, include_ignored=include_ignored, caps=caps)
    shown = [shown_name(path) for path in found.paths]
    unreadable_count = sum(1 for path, text in zip(found.paths, shown, strict=True) if text.encode() != path)
    return Listing(shown, found.ignored_count, found.is_incomplete, unreadable_count)


def named_files(root_fd: int, glob: str | None, *, include_ignored: bool, caps: WalkCaps = CAPS) -> Walk:
    """Return the walk over what `glob` names, its paths sorted. A glob sees a name as it is shown."""
    is_named = path_test(glob)
    try:
        found = walk(
            root_fd,
            is_wanted=(lambda _: True) if is_named is None else lambda path: is_named(_shown_bytes(path)),
            below=literal_directory(glob),
            include_ignored=include_ignored,
            caps=caps,
        )
    except OSError as error:
        raise CodespaceError(
            ErrorCode.FILE_OPERATION_FAILED, f"The workspace root can't be listed: {error.strerror}.",
            detail=path_error(error, ".").detail,
        ) from error
    found.paths.sort()
    return found


def _shown_bytes(path: bytes) -> bytes:
    return path if path.isascii() else shown_name(path).encode()
