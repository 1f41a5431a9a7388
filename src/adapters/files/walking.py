"""The regular files beneath a root, by descriptor: no link is followed, `.git` is never entered, and there is an end.

Nearer directories come first, so that a cap cuts what is deepest, not what is last in the alphabet.
"""

import errno
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.beneath import open_beneath
from adapters.files.ignoring import IgnoreChain, IgnoreRules, parse_rules
from adapters.files.opening import open_regular
from codespace_es.vocabulary.limits import (
    IGNORE_FILE_BYTES_MAX,
    WALK_DEPTH_MAX,
    WALK_DIRECTORIES_MAX,
    WALK_ENTRIES_MAX,
)

_GIT = b".git"
_IGNORE_FILE = b".gitignore"
_EXCLUDE_FILE = b".git/info/exclude"
_GONE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO})


@dataclass(frozen=True, slots=True)
class WalkCaps:
    """Where a walk ends, whatever the tree."""

    depth_max: int = WALK_DEPTH_MAX
    directories_max: int = WALK_DIRECTORIES_MAX
    entries_max: int = WALK_ENTRIES_MAX


CAPS = WalkCaps()


@dataclass(slots=True)
class Walk:
    """What a walk found. `paths` are raw bytes relative to the root, in no order."""

    paths: list[bytes] = field(default_factory=list)
    ignored_count: int = 0
    is_incomplete: bool = False
    directory_count: int = 0
    entry_count: int = 0


@dataclass(frozen=True, slots=True)
class _Directory:
    prefix: bytes
    """Relative path with a slash at the end; empty for the root."""
    depth: int
    ignoring: IgnoreChain | None


def walk(
    root_fd: int,
    *,
    is_wanted: Callable[[bytes], bool],
    below: str = "",
    include_ignored: bool = False,
    caps: WalkCaps = CAPS,
) -> Walk:
    """Return the regular files that `is_wanted` (asked with the raw relative path), below the directory `below`.

    Raises:
        OSError: the root itself can't be listed. A directory that can't makes the walk incomplete, one that was
            removed or swapped meanwhile is left out.
    """
    found = Walk()
    focus = below.encode("utf-8", "surrogateescape") + b"/" if below else b""
    waiting = deque([_Directory(b"", 0, None)])
    while waiting:
        if found.directory_count >= caps.directories_max or found.entry_count >= caps.entries_max:
            found.is_incomplete = True
            break
        directory = waiting.popleft()
        entries = _entries(root_fd, directory, found, caps)
        chain = None if include_ignored else _chain(root_fd, directory, entries)
        for name, is_directory in entries:
            if name == _GIT:
                continue
            path = directory.prefix + name
            if is_directory:
                if not _leads_to(focus, path + b"/"):
                    continue
                if chain is not None and chain.is_ignored(path, is_directory=True):
                    found.ignored_count += 1
                elif directory.depth + 1 >= caps.depth_max:
                    found.is_incomplete = True
                else:
                    waiting.append(_Directory(path + b"/", directory.depth + 1, chain))
            elif path.startswith(focus) and is_wanted(path):
                if chain is not None and chain.is_ignored(path, is_directory=False):
                    found.ignored_count += 1
                else:
                    found.paths.append(path)
    return found


def _leads_to(focus: bytes, prefix: bytes) -> bool:
    return focus.startswith(prefix) or prefix.startswith(focus)


def _entries(root_fd: int, directory: _Directory, found: Walk, caps: WalkCaps) -> list[tuple[bytes, bool]]:
    """Return the files and directories in `directory` as (name, is a directory), and count what was seen."""
    found.directory_count += 1
    entries: list[tuple[bytes, bool]] = []
    try:
        descriptor = open_beneath(root_fd, _text(directory.prefix), os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as listing:
                for entry in listing:
                    if found.entry_count >= caps.entries_max:
                        found.is_incomplete = True
                        break
                    found.entry_count += 1
                    if entry.is_file(follow_symlinks=False):
                        entries.append((os.fsencode(entry.name), False))
                    elif entry.is_dir(follow_symlinks=False):
                        entries.append((os.fsencode(entry.name), True))
        finally:
            os.close(descriptor)
    except OSError as error:
        if directory.depth == 0:
            raise
        found.is_incomplete = found.is_incomplete or not is_gone(error)
    return entries


def is_gone(error: OSError) -> bool:
    """Return whether `error` says that what the walk saw has been removed, or replaced by something else."""
    return error.errno in _GONE


def _chain(root_fd: int, directory: _Directory, entries: list[tuple[bytes, bool]]) -> IgnoreChain | None:
    """Return the ignore files that count in `directory`: its own over those of its parents over the repository's."""
    chain = directory.ignoring
    files = []
    if directory.depth == 0 and (_GIT, True) in entries:
        files.append(_EXCLUDE_FILE)
    if (_IGNORE_FILE, False) in entries:
        files.append(directory.prefix + _IGNORE_FILE)
    for path in files:
        rules = _rules(root_fd, path)
        if rules is not None:
            chain = IgnoreChain(len(directory.prefix), rules, chain)
    return chain


def _rules(root_fd: int, path: bytes) -> IgnoreRules | None:
    """Return the rules in the ignore file `path`, of its first IGNORE_FILE_BYTES_MAX; None if it can't be read.

    git takes an ignore file that it can't read for an empty one, too.
    """
    try:
        descriptor, status = open_regular(root_fd, _text(path))
        try:
            return parse_rules(os.pread(descriptor, min(status.st_size, IGNORE_FILE_BYTES_MAX), 0))
        finally:
            os.close(descriptor)
    except OSError:
        return None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
