"""Temporary files: made beside their target, private from the first moment, complete and durable before they are used.

Durability is bought in batches: the disk starts writing every file of a batch before the first one is waited for.
"""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, Self

from adapters.patch_writer.exchange import kept_name
from adapters.patch_writer.places import Place, naming
from adapters.patch_writer.sight import look, open_regular
from codespace_es.ports.fault_points import FaultHook, FaultPoint
from codespace_es.ports.patch_writer import PatchOrder
from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import PlannedFile
from codespace_es.vocabulary.limits import IMAGE_BYTES_MAX

BATCH_FILES_MAX: Final = 64
_BLOCK_BYTES: Final = 512
_START_WRITEOUT: Final = 2
"""SYNC_FILE_RANGE_WRITE. Source: sync_file_range(2)."""
_ATTRIBUTES_OF_CONTENT: Final = frozenset({"security.capability", "security.ima", "security.evm"})
"""Granted to the old bytes, not to the name: a write in place would drop or break them too."""
_NOT_PERMITTED: Final = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENODATA})


def temp_name(operation_id: str, row: int) -> bytes:
    """Return the name of the temporary file of plan row `row`; its length doesn't depend on the target's."""
    assert "/" not in operation_id
    return f".{operation_id}.{row}.tmp".encode()


class TempBatch:
    """Files being written; `flush` makes all of them durable. Use it as a context manager, so that none stays open."""

    def __init__(self, faults: FaultHook) -> None:
        self._faults = faults
        self._open: list[tuple[int, str]] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what an error left open."""
        while self._open:
            os.close(self._open.pop()[0])

    def write(self, place: Place, temp: bytes, content: bytes, *, mode: int, like: int | None) -> int:
        """Make `temp` beside `place` with `content`, and return the permission bits that it was given.

        Args:
            place: Whose directory it is made in.
            temp: A name at which nothing stands.
            content: All bytes.
            mode: The permission bits it is to have once it is complete; until then it is 0600.
            like: A file whose owner and extended attributes it takes over, as far as we may.

        Raises:
            OSError: what the system said; the file may stay behind, incomplete.
        """
        self._faults(FaultPoint.TEMP_CREATE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temp, flags, 0o600, dir_fd=place.directory)
        self._open.append((descriptor, place.path))
        half = len(content) // 2
        whole = memoryview(content)
        write_fully(descriptor, whole[:half])
        self._faults(FaultPoint.TEMP_HALF_WRITTEN)
        write_fully(descriptor, whole[half:])
        if like is not None:
            _take_over_attributes(like, descriptor)
        os.fchmod(descriptor, mode)
        granted = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if len(self._open) >= BATCH_FILES_MAX:
            self.flush()
        return granted

    def flush(self) -> None:
        """Make every written file durable. Raises OSError that names the planned path."""
        if len(self._open) > 1:
            for descriptor, _ in self._open:
                start_writeout(descriptor)
        while self._open:
            descriptor, path = self._open[0]
            with naming(path):
                self._faults(FaultPoint.TEMP_UNSYNCED)
                sync_file(descriptor)
            os.close(self._open.pop(0)[0])
            self._faults(FaultPoint.TEMP_SYNCED)


def write_fully(descriptor: int, content: memoryview) -> None:
    """Write all of `content`: one write may be short, and on a filling disk it says so only by what it returns."""
    while content:
        content = content[os.write(descriptor, content) :]


def sync_file(descriptor: int) -> None:
    """Make a file's content and mode durable. Raises OSError."""
    os.fsync(descriptor)


def start_writeout(descriptor: int) -> None:
    """Ask the disk to begin writing a file. Only a hint: what goes wrong shows in the fsync that follows."""
    call = _sync_file_range()
    if call is not None:
        call(descriptor, 0, 0, _START_WRITEOUT)


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    call = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if call is None:
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    call.restype = ctypes.c_int
    found: Callable[[int, int, int, int], int] = call
    return found


def is_ours(order: PatchOrder, row: PlannedFile, place: Place, temp: bytes) -> bool:
    """Return whether nothing is lost with the file at `temp`: it is an image of `row`, or one that wasn't finished.

    Unfinished means: each block is that of an image, or zeros (what a power cut leaves of an unsynced file). A second
    name of the file at `place` is ours too. A file that isn't ours is somebody's, displaced and not yet put back.

    Raises:
        OSError: it can't be read.
    """
    sight = look(place.directory, temp)
    if sight.version in {row.before, row.after}:
        return True
    if sight.version is None:
        return False
    if sight.identity == look(place.directory, place.name).identity:
        return True
    content = _read(place.directory, temp, bytes_max=IMAGE_BYTES_MAX)
    if content is None:
        return False
    for version in (row.after, row.before):
        if version == ABSENT:
            continue
        with contextlib.suppress(LookupError):
            if _is_unfinished(content, order.image(version)):
                return True
    return False


def sweep(order: PatchOrder, row_number: int, place: Place, faults: FaultHook) -> bool:
    """Remove the temporary files of a row as far as they are ours; return whether none is left. Raises OSError."""
    row = order.plan[row_number]
    temp = temp_name(order.operation_id, row_number)
    is_clean = True
    for name in (temp, kept_name(temp)):
        if not exists(place, name):
            continue
        if is_ours(order, row, place, name):
            faults(FaultPoint.SWEEP)
            unlink(place, name)
        else:
            is_clean = False
    return is_clean


def exists(place: Place, name: bytes) -> bool:
    """Return whether anything stands at `name` beside `place`. Raises OSError for another failure."""
    try:
        os.stat(name, dir_fd=place.directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def unlink(place: Place, name: bytes) -> None:
    """Remove `name`; one that is gone already is fine. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place.directory)


def _read(directory: int, name: bytes, *, bytes_max: int) -> bytes | None:
    descriptor = open_regular(directory, name)
    if descriptor is None:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        if os.fstat(descriptor).st_size > bytes_max:
            return None
        return file.readall()


def _is_unfinished(content: bytes, image: bytes) -> bool:
    if len(content) > len(image):
        return False
    for start in range(0, len(content), _BLOCK_BYTES):
        block = content[start : start + _BLOCK_BYTES]
        if block != image[start : start + len(block)] and any(block):
            return False
    return True


def _take_over_attributes(origin: int, target: int) -> None:
    wanted, present = os.fstat(origin), os.fstat(target)
    for user, group in ((-1, wanted.st_gid), (wanted.st_uid, -1)):
        if (user not in {-1, present.st_uid}) or (group not in {-1, present.st_gid}):
            with _where_permitted():
                os.fchown(target, user, group)
    with _where_permitted():
        for name in os.listxattr(origin):
            if name not in _ATTRIBUTES_OF_CONTENT:
                with _where_permitted():
                    os.setxattr(target, name, os.getxattr(origin, name))


@contextlib.contextmanager
def _where_permitted() -> Iterator[None]:
    """Go on without what isn't ours to give or isn't known to this file system. Other failures pass through."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_PERMITTED:
            raise
