"""Options that several commands share, and the settings they lead to."""

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from adapters.clock_and_ids import RandomIds
from adapters.locks.flock import lock_directory_of_user
from adapters.machine import machine_id
from adapters.settings.load import Flags, Settings, load_settings
from adapters.settings.problem import StartupError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_DATA_DIR = click.option(
    "--data-dir", metavar="DIR", help="Where the event log is kept.  [env: CODESPACE_DATA_DIR]"
)
_CONFIG = click.option(
    "--config", metavar="FILE", help="Configuration, .toml or .json.  [env: CODESPACE_CONFIG]"
)
_WORKSPACE = click.option(
    "--workspace", "workspaces", multiple=True, metavar="ID=PATH[:PROFILE]",
    help="Serve a directory under a name; PROFILE is read-only or workspace-write (default). Repeatable.",
)
_ROOT = click.option("--root", metavar="PATH", help="The same as --workspace default=PATH.")

as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


def settings_of_log(function: Callable[Concatenate[Settings, _P], _R]) -> Callable[..., _R]:
    """Give a command the options that say where the log is, and the settings they lead to as first argument."""
    return _with_options(function, _DATA_DIR, _CONFIG)


def settings_of_workspaces(function: Callable[Concatenate[Settings, _P], _R]) -> Callable[..., _R]:
    """Give a command the options for log and workspaces, and the settings they lead to as first argument."""
    return _with_options(function, _DATA_DIR, _CONFIG, _WORKSPACE, _ROOT)


def _with_options(function: Callable[Concatenate[Settings, _P], _R], *options: Any) -> Callable[..., _R]:
    @wraps(function)
    def with_settings(
        *arguments: _P.args,
        **keywords: _P.kwargs,
    ) -> _R:
        return function(effective_settings(_take_flags(keywords), os.environ), *arguments, **keywords)

    decorated: Callable[..., _R] = with_settings
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _take_flags(keywords: dict[str, Any]) -> Flags:
    return Flags(
        config=keywords.pop("config", None),
        data_dir=keywords.pop("data_dir", None),
        workspaces=tuple(keywords.pop("workspaces", ())),
        root=keywords.pop("root", None),
        is_ephemeral=bool(keywords.pop("is_ephemeral", False)),
    )


def effective_settings(flags: Flags, environment: Mapping[str, str]) -> Settings:
    """Return the settings of a run on this machine. Raises StartupError."""
    locks = Path(lock_directory_of_user())
    try:
        return load_settings(
            flags, environment, machine_id=lambda: machine_id(locks, RandomIds()), lock_directory=locks
        )
    except OSError as error:
        raise StartupError(f"This machine can't be told from others: {error}.") from error
