"""Writing the files of an earlier moment into a directory of their own, never into a workspace.

What a log says is somebody else's word: a path in it can name any place. So each one is taken apart and made beneath
the directory, component by component, and nothing that is there is ever opened, followed or replaced.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from adapters.settings.problem import StartupError

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UnusablePathError(ValueError):
    """A path that can't be written beneath a directory."""


def make_target(target: Path, forbidden: Iterable[Path]) -> Path:
    """Return `target`, made if it wasn't there.

    Args:
        target: Where to restore to.
        forbidden: Directories in which nothing may be written: the workspaces, the log's own.

    Raises:
        StartupError: it holds something, lies in a forbidden place, or can't be made.
    """
    real = Path(os.path.realpath(target))
    for place in forbidden:
        other = Path(os.path.realpath(place))
        if real == other or other in real.parents:
            raise StartupError(f"{target} lies in {place}, where only operations write; restore to a place outside.")
    try:
        real.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(real.iterdir()):
            raise StartupError(f"{target} isn't empty; name an empty or a new directory.")
    except OSError as error:
        raise StartupError(f"{target} can't be used: {error.strerror or error}.") from error
    return real


def write_file(target: Path, path: str, content: bytes, mode: int | None) -> None:
    """Write one new file beneath `target`, which nobody else writes.

    Raises:
        UnusablePathError: the path leads out, or meets what is there already.
    """
    *parents, name = _components(path)
    directory = os.open(target, _DIRECTORY)
    try:
        for parent in parents:
            inner = _enter(directory, parent)
            os.close(directory)
            directory = inner
        descriptor = os.open(name, _NEW_FILE, 0o600, dir_fd=directory)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            os.fchmod(stream.fileno(), stat.S_IMODE(mode or 0o644) & 0o777)
    except OSError as error:
        raise UnusablePathError(f"it can't be written: {error.strerror or error}") from error
    finally:
        os.close(directory)


def _enter(directory: int, name: str) -> int:
    try:
        os.mkdir(name, 0o755, dir_fd=directory)
    except FileExistsError:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    return os.open(name, _DIRECTORY, dir_fd=directory)


def _components(path: str) -> list[str]:
    """Return the names that `path` consists of. Raises UnusablePathError unless each is a plain one."""
    names = path.split("/")
    if any(name in ("", ".", "..") or "\0" in name for name in names):
        raise UnusablePathError("it leads out of the directory, or is no path")
    return names
