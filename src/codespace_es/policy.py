"""What a workspace allows: profile, environment, protected paths. Pure: the operator's settings in, an answer out.

Nothing a caller says ever unlocks anything. Source: contract B7.2, A3, A4.
"""

from collections.abc import Callable
from typing import Literal

from wcmatch import glob

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Channel
from codespace_es.vocabulary.workspace import Workspace

_GLOB_FLAGS = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.CASE | glob.FORCEUNIX

Action = Literal["read", "write", "exec"]

ALWAYS_PROTECTED = (".git",)
"""A hook in it is code that runs later, so no patch writes there, at any depth."""


def allows(workspace: Workspace, action: Action) -> bool:
    """Return whether `workspace` permits `action` at all."""
    if workspace.environment != "host":
        return False
    return action == "read" or workspace.profile == "workspace-write"


def require(workspace: Workspace, action: Action) -> None:
    """Pass if `workspace` permits `action`.

    Raises:
        CodespaceError: UNAUTHORIZED, saying which setting is in the way.
    """
    if allows(workspace, action):
        return
    if workspace.environment != "host":
        reason = f"its environment {workspace.environment} has no backend here"
    else:
        reason = f"its profile is {workspace.profile}"
    raise CodespaceError(
        ErrorCode.UNAUTHORIZED,
        f"Workspace {workspace.workspace_id!r} doesn't allow {action}: {reason}.",
        detail={"workspace_id": workspace.workspace_id},
    )


OPERATOR_CHANNELS: tuple[Channel, ...] = ("cli", "web", "http")
"""By these the operator speaks. What comes through an MCP client, a form it shows included, is the client's word."""


def may_grant(workspace: Workspace | None, channel: Channel) -> bool:
    """Return whether who speaks by `channel` may grant holds there; None: a directory that isn't configured here."""
    return channel in OPERATOR_CHANNELS or (workspace is not None and workspace.approvals != "operator")


def needs_hold(workspace: Workspace, channel: Channel) -> bool:
    """Return whether a mutation waits for a decision: not where the one who decides asks for it himself."""
    return workspace.approvals != "off" and channel not in OPERATOR_CHANNELS


def protects(workspace: Workspace) -> Callable[[str], bool]:
    """Return the predicate `may this path never be written`, for normalised relative paths.

    A glob without `/` names a file or directory at any depth; whatever lies beneath a named directory is protected too.
    """
    patterns = [*ALWAYS_PROTECTED, *workspace.protected_paths]
    globs = [pattern.strip("/") if "/" in pattern.strip("/") else f"**/{pattern.strip('/')}" for pattern in patterns]
    matcher = glob.compile(globs, flags=_GLOB_FLAGS)

    def is_protected(path: str) -> bool:
        parts = path.split("/")
        chain = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
        return any(map(matcher.match, chain))

    return is_protected
