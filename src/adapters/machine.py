"""This machine and this process, as they are told apart from others: for the log's envelope and for proofs of death.

The machine's id is part of every workspace's identity, so it has to be the same for every server of a user, whatever
its data directory. Source: event catalogue, *instance*; decision 0.
"""

import hashlib
import hmac
import os
import re
import resource
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.settings.regular_file import read_regular
from codespace_es.ports.clock_and_ids import Ids

_MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_PURPOSE = b"codespace-es workspace identity"


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """By which this process is recognised again, even after its number was given to another."""

    host: str
    boot_id: str
    """Empty where the system has none."""
    pid: int
    pid_namespace: int
    """Inode; 0 where the system has none."""
    started_ticks: int
    """Clock ticks since boot; 0 where the system doesn't tell."""


def machine_id(state_directory: Path, ids: Ids, *, sources: Iterable[Path] = _MACHINE_ID_FILES) -> str:
    """Return 32 hex digits that name this machine to this product.

    Derived from the system's machine id, which itself is confidential and never leaves this function (source:
    machine-id(5)). Without one, an id is made once and kept in `state_directory`, which all servers of a user share.

    Raises:
        OSError: there is no id, and none can be kept.
    """
    for source in sources:
        try:
            text = read_regular(source).decode("ascii", "replace").strip()
        except OSError:
            continue
        if _MACHINE_ID.fullmatch(text):
            return hmac.new(text.encode(), _PURPOSE, hashlib.sha256).hexdigest()[:32]
    return _kept_id(state_directory, ids)


def _kept_id(state_directory: Path, ids: Ids) -> str:
    """Return the id kept in `state_directory`; the first of several servers that start at once makes it."""
    state_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = state_directory / "machine-id"
    if not kept.exists():
        draft = state_directory / f"machine-id.{ids.uuid()}"
        draft.write_text(ids.uuid().hex + "\n", encoding="ascii")
        try:
            os.link(draft, kept)
        except FileExistsError:
            pass  # another server was quicker, and its id is whole: it came by a link too
        finally:
            draft.unlink()
    text = read_regular(kept).decode("ascii", "replace").strip()
    if not _MACHINE_ID.fullmatch(text):
        raise OSError(f"{kept} doesn't hold 32 hexadecimal digits")
    return text


def this_process() -> ProcessIdentity:
    """Return who this process is."""
    return ProcessIdentity(
        host=socket.gethostname(),
        boot_id=_read_or_empty("/proc/sys/kernel/random/boot_id"),
        pid=os.getpid(),
        pid_namespace=_pid_namespace(),
        started_ticks=_started_ticks(_read_or_empty("/proc/self/stat")),
    )


def _read_or_empty(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _started_ticks(stat_line: str) -> int:
    """Return field 22 of proc(5)'s stat line; the name in parentheses may itself hold blanks and parentheses."""
    after_name = stat_line.rpartition(")")[2].split()
    return int(after_name[19]) if len(after_name) > 19 else 0


def new_file_mode() -> int:
    """Return the permission bits of a new file: 0666 less this process' umask.

    The umask can only be read by setting it, so call this before there are threads.
    """
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def allow_many_descriptors() -> None:
    """Raise this process' limit of open files as far as its user may: a patch holds one for each of its directories.

    Commands get the limit that the server was started with. A system that refuses leaves the limit as it was.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
