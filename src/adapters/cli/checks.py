"""What `doctor` looks at, one check a function. Each says what it found and, where it is bad, what to do."""

import os
import platform
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from adapters.beneath import kernel_has_openat2
from adapters.cli.check import Check, Verdict
from adapters.cli.checks_commands import examine_commands
from adapters.cli.checks_postgres import examine_postgres
from adapters.cli.host_list import Host, hosts_of
from adapters.cli.living import has_lock
from adapters.cli.reading import open_log
from adapters.files.workspace_files import DirectoryFilesByRoot
from adapters.locks.flock import lock_directory_of_user
from adapters.log.reader import LogReader
from adapters.log.sqlite.connecting import driver, guard_version
from adapters.patch_writer.writer import ExchangePatchWriter
from adapters.settings.directories import holds_only_ours, is_open_to_others
from adapters.settings.load import Settings
from adapters.settings.postgres_address import PostgresAddress
from adapters.settings.problem import StartupError
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.ports.log import OpenItem, StoreUnavailableError
from codespace_es.ports.patch_writer import PatchOrder
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.file_change import PlannedFile, digest_of
from codespace_es.vocabulary.identifiers import OperationId, StreamId, WorkspaceKey
from codespace_es.vocabulary.workspace import Workspace

_FLUSHES = 5


def examine(settings: Settings) -> Iterator[Check]:
    """Yield every check, from the machine to what is open."""
    yield _python()
    yield _sqlite()
    yield _openat2()
    if settings.log_path is not None:
        yield _private_directory("data directory", settings.log_path.parent)
    yield _private_directory("lock directory", Path(lock_directory_of_user()), is_closed_by_server=True)
    for workspace in settings.workspaces.values():
        yield from _workspace(workspace)
    if not settings.workspaces:
        yield Check("workspaces", "warning", "None is configured: name one with --workspace or --config to have it "
                                             "checked.")
    yield from examine_commands(settings)
    if isinstance(settings.log_place, PostgresAddress):
        yield from examine_postgres(settings.log_place)
    yield from _log(settings)


def _python() -> Check:
    verdict: Verdict = "ok" if sys.version_info >= (3, 11) else "bad"
    return Check("python", verdict, f"{platform.python_version()} at {sys.executable}")


def _sqlite() -> Check:
    try:
        guard_version()
    except StoreUnavailableError as error:
        return Check("sqlite", "bad", str(error))
    return Check("sqlite", "ok", f"{driver.sqlite_version} by {driver.__name__.partition('.')[0]}")


def _openat2() -> Check:
    if kernel_has_openat2():
        return Check("openat2", "ok", "Paths are resolved by the kernel, beneath the workspace's root.")
    return Check("openat2", "warning", "The kernel hasn't got it: paths are opened one component at a time, which is "
                                       "as safe and slower.")


def _private_directory(name: str, path: Path, *, is_closed_by_server: bool = False) -> Check:
    try:
        status = path.stat()
    except FileNotFoundError:
        return Check(name, "ok", f"{path} isn't there yet; the first server makes it.")
    except OSError as error:
        return Check(name, "bad", f"{path}: {error.strerror}.")
    if status.st_uid != os.geteuid():
        return Check(name, "bad", f"{path} belongs to user {status.st_uid}: choose another.")
    if not stat.S_ISDIR(status.st_mode) or not os.access(path, os.W_OK | os.X_OK):
        return Check(name, "bad", f"{path} can't be written by this user.")
    if is_open_to_others(path):
        if is_closed_by_server or holds_only_ours(path):
            return Check(name, "warning", f"{path} is open to other users; the next server closes it (0700).")
        return Check(name, "bad", f"{path} is open to other users and holds other things: choose another, or close it.")
    return Check(name, "ok", f"{path} is private and can be written.")


def _workspace(workspace: Workspace) -> Iterator[Check]:
    name = f"workspace {workspace.workspace_id}"
    try:
        DirectoryFilesByRoot().open(workspace.root).identity()
    except CodespaceError as error:
        yield Check(name, "bad", error.message)
        return
    yield Check(name, "ok", f"{workspace.root} ({workspace.profile})")
    if workspace.profile == "workspace-write":
        yield _writing(f"writing in {workspace.workspace_id}", workspace.root)


def _writing(name: str, root: str) -> Check:
    """Replace a file in a directory of its own beneath `root`, the way a patch does, and flush some."""
    try:
        with tempfile.TemporaryDirectory(prefix=".codespace-es-doctor-", dir=root) as directory:
            return _write_as_a_patch(name, directory)
    except OSError as error:
        return Check(name, "bad", f"Nothing can be written beneath {root}: {error.strerror or error}.")


def _write_as_a_patch(name: str, directory: str) -> Check:
    before, after = b"before\n", b"after\n"
    file = Path(directory, "probe.txt")
    file.write_bytes(before)
    images = {digest_of(content): content for content in (before, after)}
    row = PlannedFile(
        path=file.name, kind="update", before=digest_of(before), after=digest_of(after),
        before_bytes=len(before), after_bytes=len(after),
    )
    outcome = ExchangePatchWriter().write(PatchOrder(
        operation_id=OperationId("op-doctor"), root=directory, plan=(row,), made_directories=(),
        image=images.__getitem__,
    ))
    if outcome.status != "applied":
        reason = outcome.fault.message if outcome.fault else outcome.status
        return Check(name, "bad", f"A patch can't be written there: {reason}")
    flush = f"a flush takes {_flush_ms(file):.1f} ms"
    if outcome.is_swap_atomic:
        return Check(name, "ok", f"Files are exchanged atomically; {flush}.")
    return Check(name, "warning", f"This file system can't exchange two files: a patch checks just before it replaces, "
                                  f"so an edit in between could be missed; {flush}.")


def _flush_ms(file: Path) -> float:
    """Return what one fsync takes, the middle of a few."""
    taken: list[float] = []
    with file.open("ab", buffering=0) as stream:
        for _ in range(_FLUSHES):
            stream.write(b"x")
            started = time.perf_counter()
            os.fsync(stream.fileno())
            taken.append((time.perf_counter() - started) * 1000)
    return median(taken)


def _log(settings: Settings) -> Iterator[Check]:
    place = settings.log_place
    if place is None or (isinstance(place, Path) and not place.exists()):
        yield Check("event log", "ok", f"{place} isn't there yet; the first server makes it.")
        return
    try:
        with open_log(settings) as source:
            head, _ = source.head()
            yield Check("event log", "ok", f"{place} has {head:,} events; `verify` proves that they are "
                                           "whole.")
            yield from _open_items(settings, source)
    except (StartupError, StoreUnavailableError) as error:
        yield Check("event log", "bad", str(error))


def _open_items(settings: Settings, source: LogReader) -> Iterator[Check]:
    """Yield a check for each thing that is open, and why it is."""
    items = [item for item in source.open_items() if item.kind != "steering"]  # works belong to no server
    waiting = [item for item in items if item.kind != "instance"]
    elsewhere = {host.machine_id: host for host in hosts_of(source) if host.machine_id != settings.machine_id}
    for host in elsewhere.values():
        yield Check("open", "ok", f"{_listed(host)} of host {host.name}: only that host can tell whether they live. If "
                                  f"it is lost: codespace-es hosts take-over {host.machine_id}")
    others = {instance for host in elsewhere.values() for instance in host.instances}
    for item in items:
        if item.instance_id in others:
            continue
        if has_lock(item.instance_id):
            if item.kind == "instance":
                yield Check("open", "ok", f"Server {item.instance_id} runs.")
            else:
                yield Check("open", "ok", f"{item.stream_id} is in the hands of server {item.instance_id}, which runs.")
        elif item.kind == "instance":
            if all(other.instance_id != item.instance_id for other in waiting):
                yield Check("open", "ok", f"Server {item.instance_id} died with nothing left to do; the next server "
                                          "notes it.")
        else:
            yield _left_open(settings, source, item)


def _listed(host: Host) -> str:
    servers, items = len(host.instances), host.open_count
    return f"{servers} server{'s' * (servers != 1)} and {items} open item{'s' * (items != 1)}"


def _left_open(settings: Settings, source: LogReader, item: OpenItem) -> Check:
    """Say whether the next server can settle what a dead one left, and if not, why."""
    left = f"{item.stream_id} was left open by server {item.instance_id}, which is dead"
    workspace = next((each for each in settings.workspaces.values() if each.key == item.workspace_key), None)
    binding = _binding(source, item.workspace_key)
    root = binding.root if binding else "an unknown directory"
    if workspace is None:
        return Check("open", "warning", f"{left}. A server of its workspace settles it: --workspace NAME={root}")
    try:
        identity = DirectoryFilesByRoot().open(workspace.root).identity()
    except CodespaceError as error:
        return Check("open", "bad", f"{left}. It can't be settled: {error.message}")
    if binding is None or (binding.device, binding.inode) != (identity.device, identity.inode):
        return Check("open", "bad", f"{left}. It can't be settled: {root} is another directory than the one on record.")
    return Check("open", "warning", f"{left}. The next server of this workspace settles it.")


def _binding(source: LogReader, key: WorkspaceKey | None) -> WorkspaceBound | None:
    if key is None:
        return None
    bound = [each.event for each in source.read_stream(StreamId(key))]
    newest = bound[-1] if bound else None
    return newest if isinstance(newest, WorkspaceBound) else None
