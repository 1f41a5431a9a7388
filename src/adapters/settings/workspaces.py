"""Workspaces as the operator named them, made into the vocabulary's: canonical root, identity, no two nested.

The short form is `ID=PATH[:PROFILE]`; the last `:` part is a profile only if it is exactly one.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from wcmatch import glob

from adapters.settings.model import WorkspaceTable
from adapters.settings.problem import StartupError
from codespace_es.vocabulary.identifiers import workspace_key
from codespace_es.vocabulary.workspace import Profile, Workspace

_WORKSPACE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PROFILES: tuple[str, ...] = get_args(Profile)
_CARRIED = (
    "profile", "environment", "network", "approvals", "approval_ttl_seconds", "elicitation_timeout_seconds",
    "operator_unsafe", "patch_matching", "pending_bias", "live_process", "sandbox", "stdin_default",
    "output_retention_bytes", "process_timeout_seconds",
)
"""Keys that stand in the vocabulary's workspace as they are written."""


def parse_short_form(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the written keys of `ID=PATH[:PROFILE]`; the path is absolute then.

    Raises:
        StartupError: it isn't of this form, or no directory is there.
    """
    workspace_id, separator, rest = text.partition("=")
    if not separator or not rest or not workspace_id:
        raise StartupError(f"--workspace {text!r}: write ID=PATH or ID=PATH:PROFILE, such as demo=/home/me/project.")
    path, colon, last = rest.rpartition(":")
    keys = {"root": path, "profile": last} if colon and last in _PROFILES else {"root": rest}
    root = os.path.abspath(os.path.expanduser(keys["root"]))
    if not os.path.isdir(root):
        is_misspelt = bool(colon) and os.path.isdir(os.path.abspath(os.path.expanduser(path)))
        hint = f" A profile is {' or '.join(_PROFILES)}, not {last!r}." if is_misspelt else ""
        raise StartupError(f"--workspace {text!r}: there is no directory {root}.{hint}")
    return workspace_id, {**keys, "root": root}


def resolve_workspaces(
    tables: Mapping[str, WorkspaceTable], *, machine_id: str, private_paths: Iterable[Path],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Workspace]:
    """Return the workspaces by name, in the order of `tables`, whose `root`s are all given.

    Args:
        tables: By name, defaults already applied.
        machine_id: Part of every workspace's identity.
        environment: The server's own, of which `pass_env` names what commands get.
        private_paths: What no patch may touch even if it lies inside a workspace: log, locks, configuration.

    Raises:
        StartupError: a name, root or glob is unusable, or one root lies inside another.
    """
    hidden = [Path(os.path.realpath(path)) for path in private_paths]
    workspaces = {
        name: _resolve(name, table, machine_id, hidden).model_copy(update={"env": _variables(name, table, environment)})
        for name, table in tables.items()
    }
    _refuse_nested(list(workspaces.values()))
    return workspaces


def _resolve(name: str, table: WorkspaceTable, machine_id: str, hidden: list[Path]) -> Workspace:
    if not _WORKSPACE_ID.fullmatch(name):
        raise StartupError(
            f"Workspace {name!r}: a name has 1 to 64 letters, digits, dots, dashes or underscores, and begins with a "
            "letter or digit."
        )
    root = _canonical_root(name, table.root or "")
    if table.approvals == "operator" and table.elicitation_timeout_seconds > 0:
        raise StartupError(
            f"Workspace {name!r}: approvals = 'operator' and elicitation_timeout_seconds exclude each other: what "
            "comes through a client's form is the client's word. Leave one out."
        )
    for pattern in table.protected_paths:
        _require_usable_glob(name, pattern)
    inside = [glob.escape(os.path.relpath(path, root)) for path in hidden if path.is_relative_to(root)]
    if "." in inside:
        raise StartupError(f"Workspace {name!r}: {root} is a directory of codespace-es itself; choose another root.")
    carried: dict[str, Any] = {key: getattr(table, key) for key in _CARRIED}
    return Workspace(
        workspace_id=name,
        key=workspace_key(machine_id, root),
        root=root,
        protected_paths=(*table.protected_paths, *(f"/{path}" for path in inside)),
        **carried,
    )


def _variables(name: str, table: WorkspaceTable, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that commands get: those passed on by name, then those written. Raises StartupError."""
    for variable, value in table.env.items():
        if not variable or "=" in variable or "\0" in variable + value:
            raise StartupError(f"Workspace {name!r}: env {variable!r} can't be an environment variable.")
    passed = {variable: environment[variable] for variable in table.pass_env if variable in environment}
    return {**passed, **table.env}


def _canonical_root(name: str, written: str) -> str:
    """Return the real path; that it exists is found out at its first use. Source: contract B7.2."""
    expanded = os.path.expanduser(written)
    if not os.path.isabs(expanded):
        raise StartupError(f"Workspace {name!r}: the root {written!r} must be an absolute path.")
    try:
        root = os.path.realpath(expanded)
        root.encode("utf-8")
    except (ValueError, OSError) as error:
        raise StartupError(f"Workspace {name!r}: the root {written!r} can't be used: {error}.") from error
    if root == "/":
        raise StartupError(f"Workspace {name!r}: the root of the whole file system can't be a workspace.")
    return root


def _require_usable_glob(name: str, pattern: str) -> None:
    place = f"Workspace {name!r}: protected_paths {pattern!r}"
    if not pattern.strip("/") or ".." in pattern.split("/"):
        raise StartupError(f"{place}: name files beneath the root.")
    try:
        glob.translate(pattern, flags=glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB)
    except Exception as error:
        raise StartupError(f"{place}: not a usable glob: {error}.") from error


def _refuse_nested(workspaces: list[Workspace]) -> None:
    by_root: dict[str, Workspace] = {}
    for workspace in workspaces:
        _refuse_overlap(by_root.setdefault(workspace.root, workspace), workspace)
    for inner in workspaces:
        for place in Path(inner.root).parents:
            _refuse_overlap(by_root.get(str(place), inner), inner)


def _refuse_overlap(outer: Workspace, inner: Workspace) -> None:
    if outer is not inner:
        raise StartupError(
            f"Workspaces {outer.workspace_id!r} ({outer.root}) and {inner.workspace_id!r} ({inner.root}) "
            "overlap; one root may not be another or lie inside it."
        )
