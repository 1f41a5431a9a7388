"""A real directory as the planner's tree, and a plan carried out on it in the most naive way."""

import os
import stat
from pathlib import Path
from typing import Any

from codespace_es.v4a.plan import Plan
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import FileImage


class RealTree:
    """Reads beneath `root` component by component; safe enough for a test that nobody races."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.reads: list[str] = []

    def normalize(self, path: str) -> str:
        parts: list[str] = []
        if path.startswith("/") or "\0" in path:
            raise CodespaceError(ErrorCode.PATH_ESCAPE, "absolute or NUL")
        for part in path.split("/"):
            if part == "..":
                if not parts:
                    raise CodespaceError(ErrorCode.PATH_ESCAPE, "climbs out")
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        if not parts:
            raise CodespaceError(ErrorCode.PATH_ESCAPE, "empty")
        return "/".join(parts)

    def read_image(self, path: str, *, bytes_max: int) -> FileImage | None:
        self.reads.append(path)
        place = self._root
        parts = path.split("/")
        for index, part in enumerate(parts):
            place = place / part
            status = self._status(place)
            if status is None:
                return None
            if stat.S_ISLNK(status.st_mode):
                raise CodespaceError(ErrorCode.SYMLINK_REJECTED, path)
            if index < len(parts) - 1 and not stat.S_ISDIR(status.st_mode):
                raise CodespaceError(ErrorCode.PATH_NOT_DIRECTORY, path)
        if not stat.S_ISREG(status.st_mode):
            raise CodespaceError(ErrorCode.SPECIAL_FILE_REJECTED, path)
        if status.st_size > bytes_max:
            raise CodespaceError(ErrorCode.INVALID_PATCH, "too large")
        return FileImage(place.read_bytes(), stat.S_IMODE(status.st_mode), status.st_nlink)

    def missing_directories(self, path: str) -> tuple[str, ...]:
        parts = path.split("/")[:-1]
        above = ["/".join(parts[: index + 1]) for index in range(len(parts))]
        return tuple(parent for parent in above if self._status(self._root / parent) is None)

    def did_you_mean(self, path: str) -> str | None:
        return next((name for name in os.listdir(self._root) if name != path and name.lower() == path.lower()), None)

    @staticmethod
    def _status(place: Path) -> os.stat_result | None:
        try:
            return place.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CodespaceError(ErrorCode.FILE_OPERATION_FAILED, str(error)) from error


def carry_out(plan: Plan, root: Path) -> None:
    """Write `plan` below `root`: first what goes, then folders, then what comes."""
    for row in plan.files:
        place = root / row.path
        if row.before == ABSENT:
            assert not place.exists()
        else:
            assert place.read_bytes() == plan.images[row.before]
            place.unlink()
    for directory in plan.made_directories:
        (root / directory).mkdir()
    for row in plan.files:
        if row.after != ABSENT:
            place = root / row.path
            place.write_bytes(plan.images[row.after])
            assert row.mode is not None
            place.chmod(row.mode)


def snapshot(top: Path) -> dict[str, Any]:
    """Return everything below `top`: path -> (bytes, owner's execute bit), ("link", target) or "folder" if empty."""
    found: dict[str, Any] = {}
    for place in sorted(top.rglob("*")):
        name = str(place.relative_to(top))
        if place.is_symlink():
            found[name] = ("link", os.readlink(place))
        elif place.is_dir():
            if not any(place.iterdir()):
                found[name] = "folder"
        else:
            found[name] = (place.read_bytes(), bool(place.stat().st_mode & 0o100))
    return found
