"""What `resolve` answers: how an action ended, with what its tool said, and what is next on its stack.

Stored as the action's result, without what stands beside it in the log (`details`, `extra`) and what belongs to one
call only (`replayed`). Source: the pending-actions paper; decision 30.
"""

from typing import Any, Literal

from pydantic import Field

from codespace_es.aggregates.pending.events import PendingActionPushed
from codespace_es.aggregates.pending.state import Resolving
from codespace_es.vocabulary.answer import Answer, PendingHead
from codespace_es.vocabulary.patch_result import ResultError

_NOT_STORED = {"replayed", "coordination", "pending_actions", "details", "extra"}


class ResolveResult(Answer):
    """How an action was resolved."""

    action: str = Field(description="apply or discard.")
    outcome: Literal["applied", "discarded"] = Field(description="applied or discarded; anything else is an error.")
    id: str = Field(description="The action.")
    label: str = Field(description="What it would do.")
    source_tool_name: str = Field(description="Who proposed it.")
    reason: str = Field(description="As it was given.")
    text: str = Field(description="What came of it, for people.")
    operation_id: str | None = Field(default=None, description="What it wrote; operation_revert undoes it.")
    source_result: Any = Field(default=None, description="What its tool returned, or what writing its edits gave.")
    details: Any = Field(default=None, description="What its tool had pushed with it.")
    extra: dict[str, Any] | None = Field(default=None, description="As it was given.")
    error: ResultError | None = Field(default=None, description="What reject raised; it is discarded all the same.")
    remaining: int = Field(description="Actions that still wait here.")
    next: PendingHead | None = Field(
        default=None, description="The one that is resolved next, null if none is.",
        json_schema_extra={"type": ["object", "null"]},
    )
    replayed: bool = Field(default=False, description="True: it was resolved before; nothing was run.")

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of the answer; `next` is null where nothing waits."""
        wire = super().to_wire()
        return {**wire, "next": wire.get("next")}

    def to_stored(self) -> bytes:
        """Return the canonical JSON that is kept for replays."""
        return self.model_dump_json(exclude_none=True, exclude=_NOT_STORED).encode()


def head_of(actions: tuple[PendingActionPushed, ...]) -> PendingHead | None:
    """Return how the newest of `actions` is told."""
    if not actions:
        return None
    top = actions[-1]
    return PendingHead(id=top.action_id, label=top.label, source_tool_name=top.source_tool_name)


def particulars(state: Resolving) -> dict[str, Any]:
    """Return what every end of the action being resolved is told with, results and errors alike."""
    return {
        "action": state.started.action,
        "id": state.action.action_id,
        "label": state.action.label,
        "source_tool_name": state.action.source_tool_name,
        "reason": state.started.reason,
    }


def applied_text(label: str, said: str) -> str:
    """Return the text of an apply: its label, and what its tool said."""
    return f"Applied: {label}" + (f"\n{said}" if said else "")


def discarded_text(label: str, reason: str) -> str:
    """Return the text of a discard that says nothing itself: exactly these words."""
    return f"Discarded: {label}. Reason: {reason}"
