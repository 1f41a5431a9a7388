"""What stands at a name on disk now, and what that means for a planned row."""

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Final, Literal

from codespace_es.vocabulary.event import ABSENT, Version
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile

Found = Literal["before", "after", "foreign", "missing", "not_a_file"]

_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PIECE_BYTES_MAX: Final = 1024 * 1024
_NOT_A_FILE_NUMBERS: Final = frozenset({errno.ELOOP, errno.ENXIO, errno.ENODEV})


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at one name. `version` is None for what is there and isn't a regular file."""

    version: Version | None
    mode: int | None = None
    identity: tuple[int, int] | None = None
    """Device and inode."""
    has_parent: bool = True
    is_directory: bool = False

    @property
    def key(self) -> object:
        """What tells this content from another: the version of a file, the identity of anything else."""
        return self.version or self.identity


NOTHING: Final = Sight(version=ABSENT)
NO_PARENT: Final = Sight(version=ABSENT, has_parent=False)
NOT_REACHABLE: Final = Sight(version=None)
"""A parent is a link, a file, or leads outside."""


def open_regular(directory: int, name: bytes) -> int | None:
    """Return a descriptor of the regular file `name`, or None for anything else that stands there; never blocks.

    Raises FileNotFoundError, and OSError for other failures of the system.
    """
    opened = _open_regular(directory, name)
    return None if opened is None else opened[0]


def look(directory: int, name: bytes) -> Sight:
    """Return what stands at `name`, read to its end. Raises OSError when it is there and can't be read."""
    try:
        opened = _open_regular(directory, name)
        if opened is None:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            identity = (status.st_dev, status.st_ino)
            return Sight(version=None, identity=identity, is_directory=stat.S_ISDIR(status.st_mode))
    except FileNotFoundError:
        return NOTHING
    descriptor, status = opened
    try:
        digest = hashlib.sha256()
        piece_bytes = min(status.st_size + 1, _PIECE_BYTES_MAX)
        while piece := os.read(descriptor, piece_bytes):
            digest.update(piece)
    finally:
        os.close(descriptor)
    return Sight(f"sha256:{digest.hexdigest()}", stat.S_IMODE(status.st_mode), (status.st_dev, status.st_ino))


def _open_regular(directory: int, name: bytes) -> tuple[int, os.stat_result] | None:
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=directory)
    except OSError as error:
        if error.errno in _NOT_A_FILE_NUMBERS:
            return None
        raise
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    return None


def is_untouched(row: PlannedFile) -> bool:
    """Return whether the plan leaves the file of `row` as it is."""
    return row.is_no_change or (row.before == row.after and None in {row.mode, row.before_mode})


def is_mode_change(row: PlannedFile) -> bool:
    """Return whether `row` changes the permission bits of a file and nothing else."""
    return row.before == row.after and not is_untouched(row)


def found_at(row: PlannedFile, sight: Sight) -> Found:
    """Return what `sight` is in terms of `row`. A row that changes nothing is `before` while its content stands."""
    if not sight.has_parent:
        # A plan never removes a directory that was there, so a file that went with its directory isn't our doing.
        return "before" if row.before == ABSENT else "missing"
    if is_mode_change(row) and sight.version == row.before:
        return "after" if sight.mode == row.mode else "before" if sight.mode == row.before_mode else "foreign"
    if sight.version == row.before:
        return "before"
    if sight.version == row.after:
        return "after"
    if sight.version is None:
        return "not_a_file"
    return "missing" if sight.version == ABSENT else "foreign"


def finding_of(row: PlannedFile, sight: Sight) -> FileFinding:
    """Return `sight` as it is reported."""
    is_file = sight.version is not None and sight.version != ABSENT
    return FileFinding(path=row.path, found=found_at(row, sight), version=sight.version if is_file else None)
