"""The effective settings of one run: flags win over the environment, that over the file, that over the defaults."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from adapters.settings.directories import LOG_FILE_NAME, default_data_directory
from adapters.settings.file import not_supported, read_settings_file
from adapters.settings.model import LATER_KEYS, LATER_WORKSPACE_KEYS, FileSettings, Later, WorkspaceTable
from adapters.settings.problem import StartupError
from adapters.settings.workspaces import parse_short_form, resolve_workspaces
from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.workspace import Workspace

NO_WORKSPACE = (
    "No workspace is configured. Say which directory to serve: codespace-es serve --workspace demo=/path/to/project"
)

_LATER_VARIABLES: Mapping[str, Later] = MappingProxyType({
    "CODESPACE_STORE": Later(("sqlite",), "another store than SQLite"),
    "CODESPACE_HTTP_TOKEN": Later((), "serving over HTTP"),
    "CODESPACE_OPERATOR_TOKEN": Later((), "serving over HTTP"),
    "CODESPACE_PROCESS_TIMEOUT_SECS": Later(("0", "30"), LATER_WORKSPACE_KEYS["process_timeout_seconds"].feature),
    "CODESPACE_MAX_PROCESSES": Later(("8",), LATER_KEYS["max_processes"].feature),
    "CODESPACE_RUNNER": Later(("in-process",), LATER_KEYS["max_processes"].feature),
    "CODESPACE_RUNNER_SOCKET": Later((), LATER_KEYS["max_processes"].feature),
})


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
    """None: in memory, gone with the process."""
    machine_id: str
    workspaces: Mapping[str, Workspace]
    """By name, in the operator's order."""
    configuration_path: Path | None = None

    @property
    def digest(self) -> Digest:
        """Names these settings in the log; they hold no secret."""
        policy = "\n".join(each.model_dump_json() for each in self.workspaces.values())
        return "sha256:" + hashlib.sha256(f"{self.log_path}\n{policy}".encode(errors="backslashreplace")).hexdigest()


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
    _refuse_later_variables(environment)
    named = flags.config or environment.get("CODESPACE_CONFIG") or None
    configuration_path = Path(named).expanduser().absolute() if named else None
    written = read_settings_file(configuration_path) if configuration_path else FileSettings()
    data_directory = _data_directory(flags, environment, written)
    log_path = _log_path(flags, environment, data_directory)
    private = [data_directory, lock_directory, *(path for path in (log_path, configuration_path) if path)]
    if log_path is not None:
        private += [log_path.with_name(log_path.name + ending) for ending in ("-wal", "-shm")]
    workspaces = resolve_workspaces(_tables(flags, written), machine_id=machine_id(), private_paths=private)
    return Settings(
        data_directory=data_directory,
        log_path=log_path,
        machine_id=machine_id(),
        workspaces=MappingProxyType(workspaces),
        configuration_path=configuration_path,
    )


def require_workspaces(settings: Settings) -> Settings:
    """Return `settings`. Raises StartupError, with the line to type, if they name no workspace."""
    if not settings.workspaces:
        raise StartupError(NO_WORKSPACE)
    return settings


def _refuse_later_variables(environment: Mapping[str, str]) -> None:
    for name, later in _LATER_VARIABLES.items():
        value = environment.get(name, "").strip()
        if value and value not in later.allowed:
            raise StartupError(not_supported(f"The environment variable {name}", later))


def _data_directory(flags: Flags, environment: Mapping[str, str], written: FileSettings) -> Path:
    given = flags.data_dir or environment.get("CODESPACE_DATA_DIR")
    if given:
        return Path(os.path.abspath(os.path.expanduser(given)))
    if written.data_dir is None:
        return default_data_directory()
    path = Path(os.path.expanduser(written.data_dir))
    if not path.is_absolute():
        raise StartupError(f"data_dir {written.data_dir!r} must be an absolute path.")
    return path


def _log_path(flags: Flags, environment: Mapping[str, str], data_directory: Path) -> Path | None:
    if flags.is_ephemeral:
        return None
    given = environment.get("CODESPACE_OPERATIONS_DB")
    if given and not flags.data_dir:
        return Path(os.path.abspath(os.path.expanduser(given)))
    return data_directory / LOG_FILE_NAME


def _tables(flags: Flags, written: FileSettings) -> dict[str, WorkspaceTable]:
    """Return the workspaces by name, with defaults: the file's, then those of the command line, which win by name."""
    defaults = _written_keys(written.defaults)
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
