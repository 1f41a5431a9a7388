"""The effective settings of one run: flags win over the environment, that over the file, that over the defaults."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from adapters.settings.directories import LOG_FILE_NAME, default_data_directory
from adapters.settings.file import read_settings_file
from adapters.settings.http import HttpSettings, resolve_http
from adapters.settings.model import FileSettings, WorkspaceTable
from adapters.settings.postgres_address import PostgresAddress, is_postgres, postgres_address
from adapters.settings.problem import StartupError
from adapters.settings.workspaces import parse_short_form, resolve_workspaces
from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.limits import STRUCTURAL_FILES_CHANGED_MAX
from codespace_es.vocabulary.workspace import Workspace

NO_WORKSPACE = (
    "No workspace is configured. Say which directory to serve: codespace-es serve --workspace demo=/path/to/project"
)

DEFAULT_COMMAND_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says; None and empty where it says nothing."""

    config: str | None = None
    data_dir: str | None = None
    workspaces: tuple[str, ...] = ()
    """In short form."""
    root: str | None = None
    """Short for `--workspace default=PATH`."""
    is_ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What one run goes by."""

    data_directory: Path
    log_path: Path | None
    """The log's file, if it is in one; its directory is where what belongs to a log is kept. None: in memory, gone with
    the process."""
    machine_id: str
    workspaces: Mapping[str, Workspace]
    """By name, in the operator's order."""
    configuration_path: Path | None = None
    max_processes: int = 8
    runner_socket: str | None = None
    """Where a runner that was started elsewhere listens; None: the server has its own."""
    command_path: str = DEFAULT_COMMAND_PATH
    """`PATH` of commands: the server's own."""
    private_paths: tuple[str, ...] = ()
    """Directories that commands must not see."""
    http: HttpSettings = field(default_factory=HttpSettings)
    structural_files_max: int = STRUCTURAL_FILES_CHANGED_MAX
    """Files that one structural rewrite may change."""
    resolve_listing: Literal["always", "while-pending"] = "always"
    """When clients are told of the tool `resolve`; it can be called either way."""
    custom_tools: tuple[Path, ...] = ()
    """Files and folders with tools, beside those in the data directory."""
    store: PostgresAddress | None = None
    """The PostgreSQL that holds the log; None: it is a file, or in memory."""

    @property
    def log_place(self) -> Path | PostgresAddress | None:
        """Where the log is; None: in memory."""
        return self.store or self.log_path

    @property
    def digest(self) -> Digest:
        """Names these settings in the log; they hold no secret."""
        policy = "\n".join(each.model_dump_json(exclude={"env"}) for each in self.workspaces.values())
        tools = "".join(f"\n{path}" for path in self.custom_tools)
        settings = f"{self.log_place}\n{policy}{tools}"
        return "sha256:" + hashlib.sha256(settings.encode(errors="backslashreplace")).hexdigest()


def load_settings(
    flags: Flags, environment: Mapping[str, str], *, machine_id: Callable[[], str], lock_directory: Path
) -> Settings:
    """Return the effective settings; workspaces may be none (see `require_workspaces`).

    Args:
        flags: The command line.
        environment: The process' environment.
        machine_id: Tells this machine's id; asked once everything that is written has been read.
        lock_directory: Where locks are, so that no patch touches them.

    Raises:
        StartupError: in one line, what is wrong and where.
    """
    named = flags.config or environment.get("CODESPACE_CONFIG") or None
    configuration_path = Path(named).expanduser().absolute() if named else None
    written = read_settings_file(configuration_path) if configuration_path else FileSettings()
    data_directory = _data_directory(flags, environment, written)
    log_path = _log_path(flags, environment, data_directory)
    private = [data_directory, lock_directory, *(path for path in (log_path, configuration_path) if path)]
    if log_path is not None:
        private += [log_path.with_name(log_path.name + ending) for ending in ("-wal", "-shm")]
    store = None if flags.is_ephemeral else _store(environment, written)
    tables = _tables(flags, written, timeout_seconds=_whole_number(environment, "CODESPACE_PROCESS_TIMEOUT_SECS", 0))
    workspaces = resolve_workspaces(
        tables,
        machine_id=machine_id(), private_paths=private, environment=environment,
    )
    return Settings(
        data_directory=data_directory,
        log_path=log_path,
        machine_id=machine_id(),
        workspaces=MappingProxyType(workspaces),
        configuration_path=configuration_path,
        max_processes=_whole_number(environment, "CODESPACE_MAX_PROCESSES", 1) or written.max_processes,
        runner_socket=_runner_socket(environment),
        command_path=environment.get("PATH") or DEFAULT_COMMAND_PATH,
        private_paths=tuple(str(path) for path in (data_directory, lock_directory, configuration_path) if path),
        http=resolve_http(written.http, tables, environment),
        structural_files_max=_whole_number(environment, "CODESPACE_AST_MAX_FILES", 1) or STRUCTURAL_FILES_CHANGED_MAX,
        resolve_listing=written.resolve_listing,
        custom_tools=tuple(_absolute("custom_tools", each) for each in written.custom_tools),
        store=store,
    )


def require_workspaces(settings: Settings) -> Settings:
    """Return `settings`. Raises StartupError, with the line to type, if they name no workspace."""
    if not settings.workspaces:
        raise StartupError(NO_WORKSPACE)
    return settings


def _whole_number(environment: Mapping[str, str], name: str, least: int) -> int | None:
    """Return a number of the environment, None if it says nothing. Raises StartupError for an unusable one."""
    text = environment.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise StartupError(f"The environment variable {name} is {text!r}; it has to be a whole number from {least}.")
    return int(text)


def _runner_socket(environment: Mapping[str, str]) -> str | None:
    """Return the socket of a runner started elsewhere. Raises StartupError where only half of it is said."""
    written = environment.get("CODESPACE_RUNNER", "").strip()
    kind = written or "in-process"
    path = environment.get("CODESPACE_RUNNER_SOCKET", "").strip()
    if path and not written:
        raise StartupError("CODESPACE_RUNNER_SOCKET is only used with CODESPACE_RUNNER=uds: set that too.")
    if kind not in ("in-process", "uds"):
        raise StartupError(f"The environment variable CODESPACE_RUNNER is {kind!r}; it can be in-process or uds.")
    if kind == "uds" and not path:
        raise StartupError("CODESPACE_RUNNER=uds needs CODESPACE_RUNNER_SOCKET, the path that the runner listens on.")
    return path if kind == "uds" else None


def _data_directory(flags: Flags, environment: Mapping[str, str], written: FileSettings) -> Path:
    given = flags.data_dir or environment.get("CODESPACE_DATA_DIR")
    if given:
        return Path(os.path.abspath(os.path.expanduser(given)))
    if written.data_dir is None:
        return default_data_directory()
    return _absolute("data_dir", written.data_dir)


def _absolute(key: str, text: str) -> Path:
    path = Path(os.path.expanduser(text))
    if not path.is_absolute():
        raise StartupError(f"{key} {text!r} must be an absolute path.")
    return path


def _log_path(flags: Flags, environment: Mapping[str, str], data_directory: Path) -> Path | None:
    if flags.is_ephemeral:
        return None
    given = environment.get("CODESPACE_OPERATIONS_DB")
    if given and not flags.data_dir:
        return Path(os.path.abspath(os.path.expanduser(given)))
    return data_directory / LOG_FILE_NAME


def _store(environment: Mapping[str, str], written: FileSettings) -> PostgresAddress | None:
    """Return the PostgreSQL that holds the log, None for a file. Raises StartupError, quoting no password."""
    given = environment.get("CODESPACE_STORE", "").strip()
    origin = "The environment variable CODESPACE_STORE" if given else "store"
    store = given or written.store
    if store == "sqlite":
        return None
    if not is_postgres(store):
        raise StartupError(f"{origin} can be sqlite, or a PostgreSQL: postgresql://USER@HOST:PORT/DATABASE.")
    if environment.get("CODESPACE_OPERATIONS_DB"):
        raise StartupError("CODESPACE_OPERATIONS_DB names a file for the log, but the store is a PostgreSQL: unset it.")
    return postgres_address(store, origin=origin)


def _tables(flags: Flags, written: FileSettings, *, timeout_seconds: int | None) -> dict[str, WorkspaceTable]:
    """Return the workspaces by name, with defaults: the file's, then those of the command line, which win by name.

    A time limit of the environment is a default too: what the file says of a workspace stands.
    """
    limit = {} if timeout_seconds is None else {"process_timeout_seconds": timeout_seconds}
    defaults = {**_written_keys(written.defaults), **limit}
    tables = {
        name: WorkspaceTable.model_validate({**defaults, **_written_keys(table)})
        for name, table in written.workspaces.items()
    }
    short_forms = [*flags.workspaces, *([f"default={flags.root}"] if flags.root else [])]
    named: set[str] = set()
    for text in short_forms:
        name, keys = parse_short_form(text)
        if name in named:
            raise StartupError(f"The workspace {name!r} is named twice on the command line.")
        named.add(name)
        tables[name] = WorkspaceTable.model_validate({"profile": "workspace-write", **defaults, **keys})
    return tables


def _written_keys(table: WorkspaceTable) -> dict[str, Any]:
    return {name: getattr(table, name) for name in table.model_fields_set}
