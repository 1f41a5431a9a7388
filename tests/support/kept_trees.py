"""A tree as it stood at one moment, kept in memory: taken at a fault point, it is what a death there leaves on a disk.

So one run of a writer gives the tree of a death at every point of it, and each can be put on a disk as often as it is
needed. That a process that really dies leaves the same is asked by the tests that let processes die.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from codespace_es.ports.fault_points import FaultHook, FaultPoint


class KeptTree(NamedTuple):
    """Every name beneath a root, parents first: directories with their mode, files with it and their content."""

    directories: tuple[tuple[str, int], ...]
    files: tuple[tuple[str, int, bytes], ...]
    second_names: tuple[tuple[str, str], ...]
    """Names of a file that has another one already, with that one."""

    def plant(self, root: Path) -> Path:
        """Make the tree at `root`, which must not exist yet, and return `root`."""
        os.makedirs(root)
        for name, mode in self.directories:
            os.mkdir(f"{root}/{name}", mode)
        self._fill(root)
        return root

    def put_back(self, root: Path) -> None:
        """Make the tree at `root` this one again; directories that are there stay the same ones, as locks count on."""
        wanted = {name for name, _ in self.directories}
        for found, directories, files in os.walk(root, topdown=False):
            for name in files:
                os.unlink(f"{found}/{name}")
            for name in directories:
                if os.path.relpath(f"{found}/{name}", root) not in wanted:
                    os.rmdir(f"{found}/{name}")
        for name, mode in self.directories:
            if not os.path.isdir(f"{root}/{name}"):
                os.mkdir(f"{root}/{name}", mode)
        self._fill(root)

    def _fill(self, root: Path) -> None:
        for name, mode, content in self.files:
            file = os.open(f"{root}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            assert os.write(file, content) == len(content)
            os.fchmod(file, mode)
            os.close(file)
        for name, first in self.second_names:
            os.link(f"{root}/{first}", f"{root}/{name}")


def keep(root: Path) -> KeptTree:
    """Return the tree at `root`, which may hold nothing but directories and small files."""
    directories, files, second_names = [], [], []
    names: dict[int, str] = {}
    waiting = [""]
    while waiting:
        beneath = waiting.pop()
        with os.scandir(f"{root}/{beneath}") as unsorted:
            entries = sorted(unsorted, key=lambda entry: entry.name)
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            name = f"{beneath}{entry.name}"
            if stat.S_ISDIR(status.st_mode):
                directories.append((name, stat.S_IMODE(status.st_mode)))
                waiting.append(f"{name}/")
                continue
            assert stat.S_ISREG(status.st_mode), name
            first = names.setdefault(status.st_ino, name)
            if first == name:
                with open(entry.path, "rb", buffering=0) as file:
                    files.append((name, stat.S_IMODE(status.st_mode), file.readall()))
            else:
                second_names.append((name, first))
    return KeptTree(tuple(directories), tuple(files), tuple(second_names))


def trees_of_deaths(root: Path, act: Callable[[FaultHook], object]) -> Iterator[tuple[int, FaultPoint, KeptTree]]:
    """Run `act` on the tree at `root` once; yield each of its fault points, by number, with what a death there leaves.

    Points at which the tree is what it was at an earlier one are passed over: what comes after them is the same.
    """
    kept: list[tuple[FaultPoint, KeptTree]] = []
    act(lambda point: kept.append((point, keep(root))))
    seen: set[KeptTree] = set()
    for k, (point, tree) in enumerate(kept, start=1):
        if tree not in seen:
            seen.add(tree)
            yield k, point, tree
