"""What happens to works and intents. Positions and revisions are folds. Source: event catalogue, *steering*."""

from typing import Literal

from pydantic import Field

from codespace_es.vocabulary.event import Body, Event
from codespace_es.vocabulary.identifiers import IntentId, ProcessId, WorkId, WorkspaceKey

IntentKind = Literal["follow_up", "note", "stop_notice"]
Delivery = Literal["next_checkpoint", "after_current_work", "next_work"]


class WorkOpened(Event):
    """A work begins, and takes over what waited for the next one."""

    TOPIC = "steering.work_opened.v1"

    workspace_key: WorkspaceKey = Field(description="Identity of the workspace.")
    workspace_id: str = Field(description="Its name in the server's configuration.")
    work_id: WorkId = Field(description="The work.")
    title: str | None = Field(default=None, max_length=200, description="What it is about.")
    adopted: tuple[IntentId, ...] = Field(default=(), description="Intents that it takes over, in order.")


class WorkClosing(Event):
    """The agent thinks that it is done; what waits for after the work is delivered now."""

    TOPIC = "steering.work_closing.v1"

    work_id: WorkId = Field(description="The work.")


class WorkClosed(Event):
    """It is over; what is left goes back to the workspace."""

    TOPIC = "steering.work_closed.v1"

    work_id: WorkId = Field(description="The work.")
    detached: tuple[IntentId, ...] = Field(default=(), description="Intents that belong to no work any more.")


class StopRequested(Event):
    """A person stops a work: its processes are ended next, and a notice says so."""

    TOPIC = "steering.stop_requested.v1"

    work_id: WorkId = Field(description="The work.")
    intent_id: IntentId = Field(description="The notice.")
    body: Body | None = Field(default=None, description="What was said.")
    process_ids: tuple[ProcessId, ...] = Field(default=(), description="Ended next.")
    is_claimed: bool = Field(description="False: the work was closed, the notice waits unattached.")


class IntentDrafted(Event):
    """A person writes an instruction; no agent sees it yet."""

    TOPIC = "steering.intent_drafted.v1"

    intent_id: IntentId = Field(description="The intent.")
    work_id: WorkId | None = Field(default=None, description="The work it is meant for.")
    kind: IntentKind = Field(description="What sort of instruction.")
    delivery: Delivery = Field(description="When it may be claimed.")
    body: Body = Field(description="The text.")
    client_key: str | None = Field(default=None, description="The writer's key: a repeat makes one intent.")


class IntentEdited(Event):
    """Its text, and maybe its delivery, has changed."""

    TOPIC = "steering.intent_edited.v1"

    intent_id: IntentId = Field(description="The intent.")
    body: Body = Field(description="The text.")
    delivery: Delivery | None = Field(default=None, description="When it may be claimed, if that changed.")


class IntentQueued(Event):
    """It may be claimed now."""

    TOPIC = "steering.intent_queued.v1"

    intent_id: IntentId = Field(description="The intent.")


class IntentsReordered(Event):
    """The queue of a work has another order."""

    TOPIC = "steering.intents_reordered.v1"

    work_id: WorkId = Field(description="The work.")
    intent_ids: tuple[IntentId, ...] = Field(description="Exactly its queued intents, in the new order.")


class IntentClaimed(Event):
    """An agent has it; it is frozen."""

    TOPIC = "steering.intent_claimed.v1"

    intent_id: IntentId = Field(description="The intent.")


class IntentRedelivered(Event):
    """A claimed one was given out again, since its first answer may have been lost."""

    TOPIC = "steering.intent_redelivered.v1"

    intent_id: IntentId = Field(description="The intent.")


class IntentReleased(Event):
    """The operator puts a claimed one back into the queue."""

    TOPIC = "steering.intent_released.v1"

    intent_id: IntentId = Field(description="The intent.")


class IntentCompleted(Event):
    """The agent is done with it."""

    TOPIC = "steering.intent_completed.v1"

    intent_id: IntentId = Field(description="The intent.")
    outcome: Literal["done", "blocked"] = Field(description="How.")


class IntentCancelled(Event):
    """It was taken back before anybody had it."""

    TOPIC = "steering.intent_cancelled.v1"

    intent_id: IntentId = Field(description="The intent.")
