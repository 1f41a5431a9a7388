"""Where this user's files of the product live, unless told otherwise, and how a private directory is made."""

import os
import stat
from pathlib import Path

from platformdirs import user_config_path, user_data_path

from adapters.settings.problem import StartupError

_NAME = "codespace-es"
LOG_FILE_NAME = "codespace.db"


def default_data_directory() -> Path:
    """Return where the event log is kept by default."""
    return user_data_path(_NAME, appauthor=False)


def default_configuration_directory() -> Path:
    """Return where `init` writes: never inside a workspace, where an agent could change its own permissions."""
    return user_config_path(_NAME, appauthor=False)


def make_private_directory(path: Path) -> None:
    """Make `path` for this user alone; close it if it is ours, open to others, and holds nothing but our log.

    Raises:
        StartupError: it can't be made or written, or is shared with other things or users.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_open_to_others(path):
            if not holds_only_ours(path):
                raise StartupError(
                    f"The data directory {path} is open to other users and holds other things; choose one of its own "
                    "with --data-dir, or close it: chmod 700."
                )
            path.chmod(0o700)
    except OSError as error:
        raise StartupError(f"The data directory {path} can't be made: {error.strerror or error}.") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise StartupError(f"The data directory {path} can't be written by this user; choose another with --data-dir.")


def is_open_to_others(path: Path) -> bool:
    """Return whether the directory `path` belongs to somebody else, or lets others in. Raises OSError."""
    status = path.stat()
    return status.st_uid != os.geteuid() or bool(stat.S_IMODE(status.st_mode) & 0o077)


def holds_only_ours(path: Path) -> bool:
    """Return whether the directory `path` is this user's and holds our log or nothing. Raises OSError."""
    is_own = path.stat().st_uid == os.geteuid()
    return is_own and all(each.name.startswith(LOG_FILE_NAME) for each in path.iterdir())
