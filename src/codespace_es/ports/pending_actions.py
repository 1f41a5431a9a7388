"""Pending actions as tool authors know them: push what was previewed, and let the caller resolve it.

A stack a session, newest first. The names `push`, `peek`, `pop`, `has_pending` are those of the contract; what they
do is durable and the same in every server that shares the log. Source: decision 27; the pending-actions paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.event import Version
from codespace_es.vocabulary.identifiers import ActionId, OperationId


@dataclass(frozen=True, slots=True)
class StagedEdit:
    """One file of a preview: what it was, and exactly the bytes that it is to have."""

    path: str
    """Relative to the root, normalised."""
    before: Version
    """Version that the preview was made from; `absent` for a new file."""
    after: bytes | None
    """None: the file is to be deleted."""


@dataclass(frozen=True, slots=True)
class StagedEdits:
    """Apply writes exactly these bytes, all or none, and only if every file is as the preview saw it."""

    edits: tuple[StagedEdit, ...]
    """One a path, in the order of the preview; at least one."""


@dataclass(frozen=True, slots=True)
class RegisteredCallback:
    """Apply calls a handler that a tool registered under a name: the action outlives this server."""

    handler: str
    payload: Any = None
    """JSON; the handler is given it again, here or after a restart."""


@dataclass(frozen=True, slots=True)
class Closure:
    """Apply calls what lives in the tool host now, under the action's id: the action ends with it."""


Effect = StagedEdits | RegisteredCallback | Closure


@dataclass(frozen=True, slots=True)
class NewAction:
    """What a tool proposes, and has shown to its caller."""

    label: str
    """What it would do, one short, specific line."""
    source_tool_name: str
    effect: Effect
    preview: Mapping[str, Any]
    """What the caller is shown, JSON."""
    details: Any = None
    """JSON that its tool wants to see again in the result of `resolve`."""


@dataclass(frozen=True, slots=True)
class PushedAction:
    """An action that is on the stack now."""

    action_id: ActionId
    how_to_resolve: str
    """The line that a preview's text begins with: nothing is changed yet, and which call applies or discards it."""
    notices: tuple[Notice, ...] = ()
    """What its author should know, such as a label that was cut."""


@dataclass(frozen=True, slots=True)
class WaitingAction:
    """An action that isn't over."""

    action_id: ActionId
    label: str
    source_tool_name: str
    is_durable: bool
    """It outlives this server."""


@dataclass(frozen=True, slots=True)
class Claim:
    """On whose word an action is taken off the stack."""

    action: Literal["apply", "discard"]
    reason: str = ""
    extra: Mapping[str, Any] | None = None
    action_id: ActionId | None = None
    """Which one is meant; None: whichever is on top."""
    effect_id: OperationId | None = None
    """With apply, the id that the operation of what its callback stages will have."""


class PendingActionStore(Protocol):
    """The stack of one session. Every method answers from the log; nothing is kept beside it.

    Raises STORE_UNAVAILABLE's causes as the log does.
    """

    async def push(self, action: NewAction) -> PushedAction:
        """Put an action on top, durably, with its staged bytes and its preview.

        Raises:
            CodespaceError: INVALID_ARGUMENT (empty label, no edit, a path twice, what isn't JSON), UNAUTHORIZED,
                PATH_ESCAPE, PATH_PROTECTED, RESOURCE_QUEUE_FULL, INVALID_PATCH for images beyond the limits.
        """
        ...

    async def peek(self) -> WaitingAction | None:
        """Return the action that would be resolved next; None if nothing waits."""
        ...

    async def pop(self, claim: Claim) -> WaitingAction:
        """Take the newest off: from now on it is the caller's to end, and nobody else's, here or in another server.

        Raises:
            CodespaceError: NO_PENDING_ACTION, PENDING_ACTION_MISMATCH, WORKSPACE_BUSY.
        """
        ...

    async def has_pending(self) -> bool:
        """Return whether something waits."""
        ...
