"""Small disks that can be cut off: ext4 on a loop device over a file in memory, whose content is what the disk has.

A cut is a copy of that file: what was never flushed is really not there. A mounted copy replays its journal, as after
a power cut. Background write-out is told to wait, so that nothing is on the disk by luck.

Others on this machine make mount namespaces meanwhile, each with a copy of every mount. What is unmounted here would
live on in them, so disks are mounted where unmounting is passed on.
"""

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

BLOCK = 64 * 1024
_RELEASE_SECONDS = 60.0

Cut = dict[int, bytes]
"""The blocks of a disk, by number, that differ from what it had at first."""


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def mount_point(directory: Path) -> Iterator[Path]:
    """Make `directory` a place where what is unmounted is unmounted in every copy of the mount table."""
    directory.mkdir(exist_ok=True)
    run("mount", "--bind", directory, directory)
    try:
        run("mount", "--make-shared", directory)
        yield directory
    finally:
        if os.path.ismount(directory):  # a disk of a test that failed, which may have left something open there
            run("umount", "--lazy", directory)
        run("umount", "--lazy", directory)


def flush(directory: Path) -> None:
    """Flush one file system; `sync` alone would flush the disks of tests beside this one, which count on theirs."""
    run("sync", "--file-system", directory)


class LoopDisk:
    """One disk, mounted at the same place, under the same device number, whatever is on it."""

    def __init__(self, directory: Path, name: str, bytes_max: int) -> None:
        self._image = directory / f"{name}.img"
        self._image.touch()
        os.truncate(self._image, bytes_max)
        run("mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "^has_journal", self._image)
        run("tune2fs", "-j", "-J", "size=1", self._image)
        self.root = directory / name
        self._device = run("losetup", "--find", "--show", self._image)
        self._first = b""

    def mount(self) -> None:
        run("mount", "-o", "noatime,commit=900", self._device, self.root)

    def unmount(self) -> None:
        run("umount", self.root)

    def begin(self) -> None:
        """From here on cuts are told by their difference."""
        flush(self.root)
        self._first = self._image.read_bytes()

    def cut(self) -> Cut:
        content, again = b"", self._image.read_bytes()
        while content != again:  # somebody may be writing to it
            content, again = again, self._image.read_bytes()
        return {
            start: block for start in range(0, len(content), BLOCK)
            if (block := content[start:start + BLOCK]) != self._first[start:start + BLOCK]
        }

    def restore(self, cut: Cut) -> None:
        """Make an unmounted disk what it was at a cut."""
        content = bytearray(self._first)
        for start, block in cut.items():
            content[start:start + BLOCK] = block
        device = self._open_alone()
        try:
            assert os.write(device, content) == len(content)
            os.fsync(device)
        finally:
            os.close(device)

    def detach(self) -> None:
        run("losetup", "--detach", self._device)

    def _open_alone(self) -> int:
        """Open the device once it is mounted nowhere any more: a file system that lives on would go by its memory."""
        for _ in range(int(_RELEASE_SECONDS / 0.01)):
            try:
                return os.open(self._device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
            time.sleep(0.01)
        raise TimeoutError(f"{self._device} is still mounted somewhere")


@contextmanager
def loop_disk(directory: Path, name: str, bytes_max: int) -> Iterator[LoopDisk]:
    """Yield a mounted, empty disk, or skip, aloud, where there can't be one."""
    if os.geteuid() != 0:
        pytest.skip("SKIPPED POWER CUTS: only root can mount an image")
    with ExitStack() as stack:
        try:
            stack.enter_context(mount_point(directory / name))
            disk = LoopDisk(directory, name, bytes_max)
            stack.callback(disk.detach)
            disk.mount()
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"SKIPPED POWER CUTS: no loop mount here ({error})")
        yield disk
