"""Paths as text: what a caller may name, before anything is asked of the disk."""

from adapters.beneath import cut_name, shown_name
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import PATH_BYTES_MAX


def normalized(path: str) -> str:
    """Return `path` with `.`, `..` and doubled slashes folded as text; `.` stands for the root itself.

    Raises:
        CodespaceError: PATH_ESCAPE for a path that is empty, absolute, climbs above the root, or holds what no name
            can hold (NUL, lone surrogates). FILE_OPERATION_FAILED for a path longer than the system takes.
    """
    if not path:
        raise _escape(path, "an empty path names nothing")
    if path[0] == "/":
        raise _escape(path, "paths are relative to the workspace root")
    if "\0" in path:
        raise _escape(path, "a path can't hold NUL")
    if not path.isascii() and not _is_encodable(path):
        raise _escape(path, "a path can't hold lone surrogates")
    if len(path.encode()) > PATH_BYTES_MAX:
        raise _too_long(path)
    kept: list[str] = []
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part != "..":
            kept.append(part)
        elif kept:
            kept.pop()
        else:
            raise _escape(path, "it climbs above the workspace root")
    return "/".join(kept) or "."


def _is_encodable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_long(path: str) -> CodespaceError:
    return CodespaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        f"{cut_name(path)!r}: the path is too long, {len(path.encode())} bytes; the limit is {PATH_BYTES_MAX}.",
        detail={"path": cut_name(path)},
    )


def _escape(path: str, reason: str) -> CodespaceError:
    shown = shown_name(path[: PATH_BYTES_MAX + 1])
    return CodespaceError(
        ErrorCode.PATH_ESCAPE, f"{cut_name(shown)!r} is not a path of this workspace: {reason}.", detail={"path": shown}
    )
