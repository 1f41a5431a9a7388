"""What happens to the stack of a session. Source: event catalogue, *pending*."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.vocabulary.event import Body, Event, Fault, Version
from codespace_es.vocabulary.identifiers import ActionId, OperationId, StreamId, WorkId, WorkspaceKey

Resolution = Literal["apply", "discard"]
Ending = Literal["applied", "discarded", "failed", "orphaned"]

EDITS_HANDLER = "edits"
"""Name of the one handler that the core itself has: it writes the staged bytes. No tool can register it."""


class StagedEditRow(BaseModel):
    """What one file was when the preview was made, and exactly what it is to become; the bytes are images."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="Relative to the root, `/` separators.")
    before: Version = Field(description="Version that the preview has seen.")
    after: Version = Field(description="Version of the staged bytes.")


class PendingActionPushed(Event):
    """A tool has shown what it would do, and waits; nothing of it is done."""

    TOPIC = "pending.action_pushed.v1"

    workspace_key: WorkspaceKey = Field(description="Identity of the workspace.")
    workspace_id: str = Field(description="Its name in the server's configuration.")
    work_id: WorkId | None = Field(default=None, description="The work whose stack it is on.")
    action_id: ActionId = Field(description="The action.")
    label: str = Field(max_length=200, description="What it would do, one line.")
    source_tool_name: str = Field(max_length=200, description="The tool that proposes it.")
    handler: str | None = Field(
        default=None, max_length=200, description="Registered name of its callback; absent: a closure of this server."
    )
    payload: Body | None = Field(default=None, description="What the registered callback is given, JSON.")
    preview: Body = Field(description="What the caller was shown, JSON.")
    details: Body | None = Field(default=None, description="What its tool wants echoed, JSON.")
    edits: tuple[StagedEditRow, ...] = Field(default=(), description="Staged files; empty for other actions.")


class PendingResolveStarted(Event):
    """The newest action is taken off the stack to be applied or discarded: nobody else can have it."""

    TOPIC = "pending.resolve_started.v1"

    action_id: ActionId = Field(description="The action.")
    action: Resolution = Field(description="What is done with it.")
    reason: str = Field(default="", description="What was said; it changes nothing.")
    extra: Body | None = Field(default=None, description="What its callback is given beside, JSON.")
    effect_id: OperationId | None = Field(default=None, description="The id that its operation has, if it writes.")


class PendingEffectBegun(Event):
    """Its callback is about to do what can't be taken back, such as running a command: it never returns to the stack.

    Recorded before that is done, so that no crash makes anybody do it twice.
    """

    TOPIC = "pending.effect_begun.v1"

    action_id: ActionId = Field(description="The action.")


class PendingActionReturned(Event):
    """It couldn't be applied and nothing of it is done: it is on top again, under the same id."""

    TOPIC = "pending.action_returned.v1"

    action_id: ActionId = Field(description="The action.")
    fault: Fault = Field(description="Why.")


class PendingActionPopped(Event):
    """It is over, for good."""

    TOPIC = "pending.action_popped.v1"

    action_id: ActionId = Field(description="The action.")
    outcome: Ending = Field(description="How.")
    reason: str = Field(default="", description="What was said with the resolve.")
    remaining: int = Field(ge=0, description="Actions that still wait on this stack.")
    effect_id: OperationId | None = Field(default=None, description="The operation that it led to.")
    result: Body | None = Field(default=None, description="The answer, to be given again.")
    fault: Fault | None = Field(default=None, description="Or the error, to be given again.")


class PendingStackLeft(Event):
    """The work whose stack this is was closed, in the same append: nothing waited here then.

    A push at the same moment comes before it, and the work stays open, or after it.
    """

    TOPIC = "pending.stack_left.v1"

    workspace_key: WorkspaceKey = Field(description="Identity of the workspace.")
    workspace_id: str = Field(description="Its name in the server's configuration.")
    work_id: WorkId = Field(description="The work.")


class PendingActionPlaced(Event):
    """Where an action waits: its own stream has just this, so that it is found by its id."""

    TOPIC = "pending.action_placed.v1"

    stack_id: StreamId = Field(description="The stream of its stack.")
