"""Paths as text: what a caller may name, before anything is asked of the disk."""

from adapters.beneath import shown_name
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode


def normalized(path: str) -> str:
    """Return `path` with `.`, `..` and doubled slashes folded as text; `.` stands for the root itself.

    Raises:
        CodespaceError: PATH_ESCAPE for a path that is empty, absolute, climbs above the root, or holds what no name
            can hold (NUL, lone surrogates).
    """
    if not path:
        raise _escape(path, "an empty path names nothing")
    if path[0] == "/":
        raise _escape(path, "paths are relative to the workspace root")
    if "\0" in path:
        raise _escape(path, "a path can't hold NUL")
    if not path.isascii() and not _is_encodable(path):
        raise _escape(path, "a path can't hold lone surrogates")
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


def _escape(path: str, reason: str) -> CodespaceError:
    shown = shown_name(path)
    return CodespaceError(
        ErrorCode.PATH_ESCAPE, f"{shown!r} is not a path of this workspace: {reason}.", detail={"path": shown}
    )
