"""How a hold stands: who asked for what, who decided through which channel, what came of it. Source: contract A4."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from codespace_es.aggregates.approval import (
    APPROVAL,
    ApprovalConsumed,
    ApprovalCreated,
    ApprovalDenied,
    ApprovalGranted,
    wire_state,
)
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Channel, RecordedEvent


class ApprovalReport(Answer):
    """A hold and its story."""

    approval_id: str = Field(description="The hold.")
    state: str = Field(description="pending, granted, queued, resuming, consumed, denied or expired.")
    tool: str = Field(description="What was asked for.")
    workspace_id: str = Field(description="Where.")
    title: str = Field(description="What would happen, one line.")
    created_at: int = Field(description="Unix seconds.")
    requested_by: str | None = Field(default=None, description="The client that asked.")
    decided_at: int | None = Field(default=None, description="Unix seconds.")
    decided_by: str | None = Field(default=None, description="The channel of the decision: mcp, cli, web.")
    reason: str | None = Field(default=None, description="What was said with the decision.")
    expires_at: int | None = Field(default=None, description="Unix seconds.")
    operation_key: str | None = Field(default=None, description="The request's key.")
    effect_id: str | None = Field(default=None, description="The operation or process that it led to.")
    error: dict[str, Any] | None = Field(default=None, description="The error that it was consumed with.")
    command: tuple[str, ...] | None = Field(default=None, description="The command that would run.")
    files: tuple[str, ...] | None = Field(default=None, description="Files that would change.")
    diff: str | None = Field(default=None, description="Against the files as they are now.")
    diff_truncated: bool | None = Field(default=None, description="The diff was cut.")
    moved_on: tuple[str, ...] | None = Field(default=None, description="Files that have changed since it was held.")
    preview_error: dict[str, Any] | None = Field(default=None, description="Why it couldn't be applied now.")


NONCE_BYTES = 16
"""What stands before the arguments of a hold, so that equal requests aren't equal bodies."""


def arguments_of(stored: bytes) -> dict[str, Any]:
    """Return the arguments of a hold from the body that they are stored in."""
    arguments: dict[str, Any] = json.loads(stored[NONCE_BYTES:])
    return arguments


def granted_by(recorded: Sequence[RecordedEvent]) -> Channel | None:
    """Return the channel by which a hold was granted; None if it wasn't."""
    grants = (each.envelope.channel for each in recorded if isinstance(each.event, ApprovalGranted))
    return next(grants, None)


def project(recorded: Iterable[RecordedEvent]) -> ApprovalReport:
    """Return the report of a hold's stream, which begins with `created`."""
    story: dict[str, Any] = {}
    state = APPROVAL.initial_state
    for entry in recorded:
        at = int(entry.envelope.recorded_at.timestamp())
        state = APPROVAL.evolve(state, entry.event)
        match entry.event:
            case ApprovalCreated() as event:
                story |= {
                    "approval_id": entry.stream_id,
                    "tool": event.tool,
                    "workspace_id": event.workspace_id,
                    "title": event.title,
                    "created_at": at,
                    "requested_by": entry.envelope.client,
                    "operation_key": event.operation_key,
                    "expires_at": None if event.expires_at is None else int(event.expires_at.timestamp()),
                }
            case ApprovalGranted(reason=reason) | ApprovalDenied(reason=reason):
                story |= {"decided_at": at, "decided_by": entry.envelope.channel, "reason": reason}
            case ApprovalConsumed() as event:
                story["effect_id"] = event.effect_id
                if event.fault is not None:
                    story["error"] = {"code": event.fault.code.value, "message": event.fault.message}
            case _:
                pass
    return ApprovalReport(state=wire_state(state), **story)
