"""Compare-and-swap on names: put a file in place only if what it displaces is what was expected.

With `renameat2(EXCHANGE)` the displaced file stands at the temporary name at every moment, so nothing of anybody's can
be lost: it is looked at after the swap, and swapped back if it isn't the expected one. A file system without EXCHANGE
is served by a hard link and a check before a plain rename, which leaves a window of one system call; `is_atomic` says
so afterwards. All names are relative to the open directory of a `Place`.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Final

from adapters.patch_writer.places import Place
from adapters.patch_writer.sight import Sight, look
from codespace_es.ports.fault_points import FaultHook, FaultPoint

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_NOT_SUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_PUT_BACK_ROUNDS_MAX: Final = 1_000
"""Each round means that somebody wrote the file again within microseconds."""

Expectation = Callable[[Sight], bool]


class DisplacedError(Exception):
    """What stood at the place wasn't what was expected; it stands there again, or still."""

    def __init__(self, sight: Sight) -> None:
        super().__init__(sight)
        self.sight = sight


def kept_name(temp: bytes) -> bytes:
    """Return the name of the hard link that the fallback makes beside `temp`."""
    return temp.removesuffix(b".tmp") + b".kept.tmp"


class Swaps:
    """Installs, withdraws and puts back files.

    Args:
        faults: Called before each durable step.
        has_exchange: False behaves as a file system without EXCHANGE does.
    """

    def __init__(self, faults: FaultHook, *, has_exchange: bool = True) -> None:
        self._faults = faults
        self._has_exchange = has_exchange
        self.is_atomic = True
        """No swap so far had a window in which a foreign edit could be lost."""

    def replace(
        self, place: Place, temp: bytes, *, installs: object, expects: Expectation, swapped: FaultPoint
    ) -> None:
        """Put `temp` at `place`; then the displaced file stands at `temp`.

        Args:
            place: Where a file stands that `expects` accepts.
            temp: The name of the new file.
            installs: The `Sight.key` of the new file.
            expects: What may be displaced.
            swapped: Reported between the swap and its check.

        Raises:
            DisplacedError: something else stood there, or nothing; it is there again.
            OSError: the system failed; the displaced file may still stand at `temp`.
        """
        if self._has_exchange:
            try:
                _rename(place.directory, temp, place.name, _EXCHANGE)
            except FileNotFoundError:
                raise DisplacedError(look(place.directory, place.name)) from None
            except OSError as error:
                if error.errno not in _NOT_SUPPORTED:
                    raise
                self._has_exchange = False
        if not self._has_exchange:
            self._replace_plainly(place, temp, expects, swapped)
            return
        self._faults(swapped)
        displaced = look(place.directory, temp)
        if not expects(displaced):
            if not self.put_back(place, temp, on_path=installs, displaced=displaced):
                os.unlink(temp, dir_fd=place.directory)
            raise DisplacedError(displaced)

    def create(self, place: Place, temp: bytes) -> None:
        """Move `temp` to `place`, where nothing stands.

        Raises:
            DisplacedError: something stands there; `temp` still is where it was.
        """
        try:
            _move_new(place.directory, temp, place.name)
        except FileExistsError:
            raise DisplacedError(look(place.directory, place.name)) from None

    def remove(self, place: Place, temp: bytes, *, expects: Expectation, swapped: FaultPoint) -> None:
        """Move the file at `place` to `temp`, where nothing stands.

        Raises:
            DisplacedError: something else stood there, or nothing; it is there again.
            OSError: as `replace`.
        """
        try:
            _move_new(place.directory, place.name, temp)
        except FileNotFoundError:
            raise DisplacedError(look(place.directory, place.name)) from None
        self._faults(swapped)
        displaced = look(place.directory, temp)
        if not expects(displaced):
            if not self.bring_back(place, temp):
                os.unlink(temp, dir_fd=place.directory)
            raise DisplacedError(displaced)

    def bring_back(self, place: Place, temp: bytes) -> bool:
        """Move `temp` back to `place`, from where it was taken; return False if a newer file there keeps it out.

        If it was away only for the moment between a swap and its check, then whoever made the newer file would have
        replaced it without us too, and `temp` is worth nothing any more.
        """
        self._faults(FaultPoint.INSTALL_PUT_BACK)
        try:
            _move_new(place.directory, temp, place.name)
        except FileExistsError:
            return False
        return True

    def put_back(self, place: Place, temp: bytes, *, on_path: object, displaced: Sight) -> bool:
        """Exchange `temp` with `place` until the newest foreign content stands at `place`.

        Args:
            place: Where a file of ours stands, or stood until somebody wrote there again.
            temp: The name at which the `displaced` file stands.
            on_path: The `Sight.key` of what was put at `place` last.
            displaced: What is at `temp`.

        Returns:
            True when `temp` holds what stood at `place`, or nothing; False when it holds a foreign content that its
            author has written over meanwhile, as `bring_back` says.

        Raises:
            OSError: the system failed, EBUSY if the file is being written without end.
        """
        for rounds in range(_PUT_BACK_ROUNDS_MAX):
            self._faults(FaultPoint.INSTALL_PUT_BACK)
            try:
                _rename(place.directory, temp, place.name, _EXCHANGE)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    _move_new(place.directory, temp, place.name)
                    return True
                continue
            came = look(place.directory, temp)
            if came.key == on_path:
                return rounds == 0
            on_path, displaced = displaced.key, came
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), place.path)

    def _replace_plainly(self, place: Place, temp: bytes, expects: Expectation, swapped: FaultPoint) -> None:
        self.is_atomic = False
        kept = kept_name(temp)
        is_kept = _try_link(place.directory, place.name, kept)
        self._faults(swapped)
        present = look(place.directory, kept if is_kept else place.name)
        if not expects(present):
            if is_kept:
                os.unlink(kept, dir_fd=place.directory)
            raise DisplacedError(present)
        os.rename(temp, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
        if is_kept:
            os.rename(kept, temp, src_dir_fd=place.directory, dst_dir_fd=place.directory)


def _try_link(directory: int, name: bytes, link: bytes) -> bool:
    try:
        os.link(name, link, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True


def _move_new(directory: int, source: bytes, target: bytes) -> None:
    """Rename without replacing; a link and an unlink where the file system can't. Raises FileExistsError."""
    try:
        _rename(directory, source, target, _NOREPLACE)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
        os.link(source, target, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        os.unlink(source, dir_fd=directory)


@cache
def _system_call() -> Callable[[int, bytes, int, bytes, int], int]:
    call = ctypes.CDLL(None, use_errno=True).renameat2
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call


def _rename(directory: int, source: bytes, target: bytes, flags: int) -> None:
    if _system_call()(directory, source, directory, target, flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source, None, target)
