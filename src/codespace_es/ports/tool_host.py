"""Where the callbacks of pending actions run: outside this process, so that none of them can stop or block it.

What a callback writes by `api.apply_patch` is staged: it comes back as patches, and the core writes all of them as
one operation, or nothing. What it does by `api.exec`, or by itself, can't be taken back, and is said so.
Source: decisions 30 to 32.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from codespace_es.vocabulary.event import Caller, Version
from codespace_es.vocabulary.identifiers import ActionId, OperationId


@dataclass(frozen=True, slots=True)
class ActionCall:
    """One call of a callback."""

    action_id: ActionId
    """By which the host knows a closure."""
    workspace_id: str
    work_id: str | None
    label: str
    source_tool_name: str
    handler: str | None
    """Registered name; None: the closure of this action."""
    payload: Any
    """JSON, as it was pushed; None without a handler."""
    reason: str
    extra: Mapping[str, Any] | None
    effect_id: OperationId | None
    """The id that the operation of its staged patches will have."""
    caller: Caller


@dataclass(frozen=True, slots=True)
class CallbackResult:
    """What a callback returned."""

    text: str
    details: Any = None
    """JSON."""
    is_error: bool = False
    """It says itself that it failed: the action is over, and its staged patches are dropped."""
    patches: tuple[str, ...] = ()
    """V4A texts, in the order in which they were staged; written as one operation, or none of them."""
    expected_versions: Mapping[str, Version] = field(default_factory=dict)
    """What has to be so of files when the patches are written."""
    is_external: bool = False
    """It ran a command or wrote by itself: running it again would repeat that."""


class CallbackRaisedError(Exception):
    """The callback raised, or its time was up. What it had staged is dropped."""

    def __init__(self, message: str, *, is_external: bool = False) -> None:
        super().__init__(message)
        self.message = message
        """As the author wrote it, one text."""
        self.is_external = is_external


class CallbackLostError(CallbackRaisedError):
    """There is nothing to call: the closure died with its host, or no tool registers such a handler now."""


class ToolHost(Protocol):
    """Runs callbacks, one call at a time an action. Cancelling the wait ends the call in the host, too."""

    async def apply(self, call: ActionCall) -> CallbackResult:
        """Return what `apply` of the action returned.

        Raises:
            CallbackRaisedError: it raised or took too long.
            CallbackLostError: it can't be called, or the host died in the middle of it.
        """
        ...

    async def reject(self, call: ActionCall) -> CallbackResult | None:
        """Return what `reject` of the action returned; None if it has none, or that returned nothing. Raises alike."""
        ...

    def forget(self, action_id: ActionId) -> None:
        """Let go of a closure: its action is over. Unknown ids are nothing to it."""
        ...


class NoToolHost:
    """The host of a server without custom tools: it has no callback at all."""

    async def apply(self, call: ActionCall) -> CallbackResult:
        """Refuse. See the port."""
        raise _lost(call)

    async def reject(self, call: ActionCall) -> CallbackResult | None:
        """Refuse. See the port."""
        raise _lost(call)

    def forget(self, action_id: ActionId) -> None:
        """Do nothing. See the port."""


def _lost(call: ActionCall) -> CallbackLostError:
    if call.handler is not None:
        return CallbackLostError(f"No tool registers the handler {call.handler!r} here.")
    return CallbackLostError("The tool host that had its callback is gone.")
