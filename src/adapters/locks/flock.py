"""One exclusive lock on one file of a private directory: taken without waiting, let go only by closing.

The lock belongs to the open file, so a descriptor passed to another process holds it too, and a second opening in the
same process conflicts like any other. `LOCK_UN` is never used: it would let go for every holder of a duplicate.

A file is unlinked only by who holds its lock, and a lock counts only if its name still stands for the same file once it
is taken. So nobody ever holds "the same" lock on two different files, unless somebody else deletes them: a holder can
find that out (`is_in_place`). The file of a workspace stays for good.
"""

import contextlib
import fcntl
import os
import pwd
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from typing import Final

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_ID_FILE: Final = "directory-id"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,200}")


def lock_directory_of_user() -> str:
    """Return the one directory for the locks of this user's servers, whatever their environment and data directory.

    Beneath the home directory of the user database, not `$HOME` or `$XDG_…`, which two servers may see differently;
    without a usable home, beneath `/var/tmp`. It isn't made here.
    """
    user = os.geteuid()
    # No entry for this user, or a home that isn't there, is the same as a home that can't be used.
    with contextlib.suppress(KeyError, OSError):
        home = pwd.getpwuid(user).pw_dir
        if os.stat(home).st_uid == user and os.access(home, os.W_OK | os.X_OK, effective_ids=True):
            return os.path.join(home, ".local", "state", "codespace-es", "locks")
    return f"/var/tmp/codespace-es-{user}"  # noqa: S108 - its owner is checked at each opening, and the parent is sticky


class HeldFlock:
    """A lock in hand. Implements `Held`."""

    def __init__(self, descriptor: int, path: str, *, on_release: Callable[[], None] | None = None) -> None:
        self._descriptor = descriptor
        self._path = path
        self._on_release = on_release

    def fileno(self) -> int:
        """Return the descriptor that holds the lock. Raises ValueError after `release`."""
        if self._descriptor < 0:
            raise ValueError("this lock was released")
        return self._descriptor

    @property
    def is_held(self) -> bool:
        """Whether it wasn't released."""
        return self._descriptor >= 0

    def is_in_place(self) -> bool:
        """Return whether the lock's name still stands for the locked file. Raises ValueError after `release`."""
        return _is_named(self._path, self.fileno())

    def remove(self) -> None:
        """Unlink the file, then let go. Only for who holds the lock alone; whoever opened the file finds out."""
        with contextlib.suppress(OSError):  # a file that stays is untidy, no more
            os.unlink(self._path)
        self.release()

    def release(self) -> None:
        """Close the descriptor; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        os.close(descriptor)
        if self._on_release is not None:
            self._on_release()


class LockDirectory:
    """A directory of lock files, 0700 and this user's. Made at first use, parents too."""

    def __init__(self, path: str) -> None:
        self._path = path

    def try_lock(self, name: str, *, on_release: Callable[[], None] | None = None) -> HeldFlock | None:
        """Return the lock called `name`, or None while somebody else holds it. Never waits.

        Raises:
            CodespaceError: FILE_OPERATION_FAILED when the directory isn't ours alone or the file can't be opened.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} can't name a lock")
        file_name = f"{name}.lock"
        path = os.path.join(self._path, file_name)
        while True:
            descriptor = -1
            try:
                descriptor = self._open(file_name)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_named(path, descriptor):
                    return HeldFlock(descriptor, path, on_release=on_release)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError as error:
                if descriptor >= 0:
                    os.close(descriptor)
                raise CodespaceError(
                    ErrorCode.FILE_OPERATION_FAILED,
                    f"The lock {name} in {self._path!r} can't be taken: {error.strerror or error}.",
                ) from error
            os.close(descriptor)  # it was removed between the opening and the locking: by its new name, again

    def names(self, beginning: str) -> Iterator[str]:
        """Yield the names of locks that begin so, in no order, as their files are there now.

        Raises:
            CodespaceError: FILE_OPERATION_FAILED when the directory can't be read.
        """
        try:
            with os.scandir(self._path) as entries:
                for entry in entries:
                    name = entry.name.removesuffix(".lock")
                    if name != entry.name and name.startswith(beginning) and _NAME.fullmatch(name):
                        yield name
        except FileNotFoundError:
            return
        except OSError as error:
            raise CodespaceError(
                ErrorCode.FILE_OPERATION_FAILED,
                f"The directory of locks {self._path!r} can't be read: {error.strerror or error}.",
            ) from error

    def directory_id(self) -> str:
        """Return 32 hex digits that name this directory, the same for all who use it; they go with it.

        Raises:
            CodespaceError: FILE_OPERATION_FAILED when the directory isn't ours alone, or they can't be kept.
        """
        try:
            os.close(self._open(_ID_FILE))
            with open(os.path.join(self._path, _ID_FILE), "r+", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # whoever comes first writes, the others read what it wrote
                kept = file.read().strip()
                if not kept:
                    kept = secrets.token_hex(16)
                    file.write(kept + "\n")
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise CodespaceError(
                ErrorCode.FILE_OPERATION_FAILED,
                f"The directory of locks {self._path!r} can't be used: {error.strerror or error}.",
            ) from error
        return kept

    def _open(self, file_name: str) -> int:
        try:
            directory = self._open_directory()
        except FileNotFoundError:
            os.makedirs(self._path, mode=0o700, exist_ok=True)
            directory = self._open_directory()
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(file_name, flags, 0o600, dir_fd=directory)
        finally:
            os.close(directory)

    def _open_directory(self) -> int:
        directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        status = os.fstat(directory)
        if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
            os.fchmod(directory, 0o700)
        elif status.st_uid != os.geteuid():
            os.close(directory)
            raise PermissionError(f"the directory belongs to user {status.st_uid}")
        return directory


def _is_named(path: str, descriptor: int) -> bool:
    """Return whether `path` names the open file."""
    try:
        named = os.lstat(path)
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
