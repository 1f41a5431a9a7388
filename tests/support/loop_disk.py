"""Small disks that can be cut off: ext4 on a loop device over a file in memory, whose content is what the disk has.

A cut is a copy of that file: what was never flushed is really not there. A mounted copy replays its journal, as after
a power cut. Background write-out is told to wait, so that nothing is on the disk by luck.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BLOCK = 64 * 1024

Cut = dict[int, bytes]
"""The blocks of a disk, by number, that differ from what it had at first."""


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class LoopDisk:
    """One disk, mounted at the same place, under the same device number, whatever is on it."""

    def __init__(self, directory: Path, name: str, bytes_max: int) -> None:
        self._image = directory / f"{name}.img"
        self._image.touch()
        os.truncate(self._image, bytes_max)
        run("mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "^has_journal", self._image)
        run("tune2fs", "-j", "-J", "size=1", self._image)
        self.root = directory / name
        self.root.mkdir()
        self._device = run("losetup", "--find", "--show", self._image)
        self._first = b""

    def mount(self) -> None:
        run("mount", "-o", "noatime,commit=900", self._device, self.root)

    def unmount(self) -> None:
        run("umount", self.root)

    def begin(self) -> None:
        """From here on cuts are told by their difference."""
        os.sync()
        self._first = self._image.read_bytes()

    def cut(self) -> Cut:
        content, again = b"", self._image.read_bytes()
        while content != again:  # somebody's `sync` may be on its way to it
            content, again = again, self._image.read_bytes()
        now, first = memoryview(content), memoryview(self._first)
        return {
            start: bytes(now[start:start + BLOCK]) for start in range(0, len(first), BLOCK)
            if now[start:start + BLOCK] != first[start:start + BLOCK]
        }

    def restore(self, cut: Cut) -> None:
        """Make an unmounted disk what it was at a cut."""
        content = bytearray(self._first)
        for start, block in cut.items():
            content[start:start + BLOCK] = block
        with open(self._device, "r+b", buffering=0) as device:
            device.write(content)
            os.fsync(device.fileno())

    def detach(self) -> None:
        run("losetup", "--detach", self._device)


@contextmanager
def loop_disk(directory: Path, name: str, bytes_max: int) -> Iterator[LoopDisk]:
    """Yield a mounted, empty disk, or skip, aloud, where there can't be one."""
    if os.geteuid() != 0:
        pytest.skip("SKIPPED POWER CUTS: only root can mount an image")
    try:
        disk = LoopDisk(directory, name, bytes_max)
        disk.mount()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"SKIPPED POWER CUTS: no loop mount here ({error})")
    try:
        yield disk
    finally:
        if os.path.ismount(disk.root):
            run("umount", "--lazy", disk.root)  # a test that failed may have left something open there
        disk.detach()
