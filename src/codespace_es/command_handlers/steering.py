"""Steering, from the agent's side: open a work, ask, claim what people have queued, complete it (`finishing` ends it).

A claim is a version conflict in the store, so no two agents ever get the same intent, in one process or in ten.
Source: contract B1.10, B6, A6.
"""

from typing import Any

from pydantic import Field

from codespace_es.admission import admit
from codespace_es.aggregates.steering.events import IntentClaimed, IntentRedelivered, WorkOpened
from codespace_es.aggregates.steering.rules import (
    ClaimNext,
    CompleteIntent,
    OpenWork,
    SteeringCommand,
    find_intent,
    find_work,
)
from codespace_es.aggregates.steering.state import Intent, Steering
from codespace_es.command_handlers.steering_streams import Steered, steering_now, steering_of_work
from codespace_es.ports.log import Append, NewBody, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Event
from codespace_es.vocabulary.identifiers import (
    IntentId,
    StreamId,
    WorkId,
    steering_stream,
)

# work_open


class OpenWorkCommand(Command):
    """Begin a work."""

    workspace_id: str = Field(description="Where.")
    title: str | None = Field(default=None, description="What it is about.")


class WorkAnswer(Answer):
    """A work."""

    work_id: str = Field(description="The work.")
    workspace_id: str = Field(description="Where.")
    state: str = Field(description="active, closing or closed.")


async def open_work(world: World, command: OpenWorkCommand, caller: Caller) -> WorkAnswer:
    """Return the new work. Raises WORKSPACE_NOT_FOUND, INVALID_ARGUMENT."""
    workspace = admit(world.workspaces, command.workspace_id, "read")
    if command.title is not None and len(command.title) > limits.LABEL_CHARACTERS_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, f"title is longer than {limits.LABEL_CHARACTERS_MAX} characters.",
            detail={"field": "title"},
        )
    work_id = WorkId(f"work-{world.ids.uuid()}")
    opened = WorkOpened(
        workspace_key=workspace.key, workspace_id=workspace.workspace_id, work_id=work_id, title=command.title
    )
    await append_to_steering(world, steering_stream(workspace.key), OpenWork(opened), caller)
    return WorkAnswer(work_id=work_id, workspace_id=workspace.workspace_id, state="active")


# steer_status


class AskWork(Command):
    """Ask how a work stands."""

    work_id: str = Field(description="A work.")


class WorkStatus(Answer):
    """How a work stands; never what the intents say."""

    work_id: str = Field(description="The work.")
    state: str = Field(description="active, closing or closed.")
    queued: int = Field(description="Intents that wait.")
    claimed: int = Field(description="Intents that an agent has.")
    claimed_ids: tuple[str, ...] = Field(default=(), description="Which.")
    claimable_now: int = Field(description="Intents that steer_claim_next would give.")
    queue_revision: int = Field(description="Rises with every change.")


async def ask_work(world: World, command: AskWork, _caller: Caller) -> WorkStatus:
    """Return the status. Raises WORK_NOT_FOUND."""
    steered = await steering_of_work(world, command.work_id)
    work = find_work(steered.state, command.work_id)
    intents = steered.state.waiting(work.work_id)
    claimed = tuple(each.intent_id for each in intents if each.phase == "claimed")
    return WorkStatus(
        work_id=work.work_id,
        state=work.phase,
        queued=sum(each.phase == "queued" for each in intents),
        claimed=len(claimed),
        claimed_ids=claimed,
        claimable_now=len(steered.state.claimable(work.work_id)),
        queue_revision=work.queue_revision,
    )


# steer_claim_next


class ClaimNextCommand(Command):
    """Ask for the next intent."""

    work_id: str = Field(description="An open work.")
    redeliver: bool = Field(default=False, description="The oldest claimed one again, if an answer was lost.")


class ClaimedItem(Answer):
    """What a person wants; empty if nothing waits."""

    item: dict[str, Any] | None = Field(default=None, description="intent_id, revision, kind, delivery, content.")


async def claim_next(world: World, command: ClaimNextCommand, caller: Caller) -> ClaimedItem:
    """Return the claimed intent, or nothing. Raises WORK_NOT_FOUND, WORK_CLOSED."""
    stream_id = (await steering_of_work(world, command.work_id)).stream_id
    request = ClaimNext(WorkId(command.work_id), command.redeliver)
    steered, events = await append_to_steering(world, stream_id, request, caller)
    if not events:
        return ClaimedItem()
    assert isinstance(events[0], IntentClaimed | IntentRedelivered)
    intent = find_intent(steered.state, events[0].intent_id)
    item = {
        "intent_id": intent.intent_id,
        "revision": intent.revision,
        "kind": intent.kind,
        "delivery": intent.delivery,
        "content": await read_text(world, steered, intent),
    }
    return ClaimedItem(item={**item, "redelivered": True} if command.redeliver else item)


# steer_complete


class CompleteIntentCommand(Command):
    """Be done with a claimed intent."""

    work_id: str = Field(description="Its work.")
    intent_id: str = Field(description="A claimed intent.")
    outcome: str = Field(default="done", description="done or blocked.")


class IntentAnswer(Answer):
    """An intent as people see it."""

    intent_id: str = Field(description="The intent.")
    work_id: str | None = Field(default=None, description="The work it belongs to.")
    workspace_id: str | None = Field(default=None, description="Where.")
    position: int = Field(description="Place in the queue.")
    revision: int = Field(description="Needed to edit or queue it.")
    kind: str = Field(description="follow_up, note or stop_notice.")
    delivery: str = Field(description="next_checkpoint, after_current_work or next_work.")
    body: str | None = Field(default=None, description="The text.")
    state: str = Field(description="draft, queued, claimed, done, blocked or cancelled.")


async def complete_intent(world: World, command: CompleteIntentCommand, caller: Caller) -> IntentAnswer:
    """Return the intent with its new state. Raises WORK_NOT_FOUND, INTENT_NOT_FOUND, INTENT_NOT_EDITABLE."""
    if command.outcome not in ("done", "blocked"):
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, f"outcome is {command.outcome[:40]!r}; it can be done or blocked.",
            detail={"field": "outcome"},
        )
    stream_id = (await steering_of_work(world, command.work_id)).stream_id
    request = CompleteIntent(
        WorkId(command.work_id), IntentId(command.intent_id), "done" if command.outcome == "done" else "blocked"
    )
    await append_to_steering(world, stream_id, request, caller)
    return await tell_intent(world, stream_id, command.intent_id)


# Shared by both sides


async def append_to_steering(
    world: World, stream_id: StreamId, command: SteeringCommand, caller: Caller, *, bodies: tuple[NewBody, ...] = ()
) -> tuple[Steered, list[Event]]:
    """Decide and append, until nobody was quicker; return the state decided upon, and the events."""
    while True:
        steered = await steering_now(world, stream_id)
        events = steered.decide(command)
        if not events:
            return steered, []
        try:
            await world.log.append(Append(events, bodies), caller)
        except VersionConflictError:
            continue
        return steered, [each.event for each in events]


async def read_text(world: World, steered: Steered, intent: Intent) -> str | None:
    """Return what an intent says; None if that was pruned, or nothing was said."""
    if intent.body is None:
        return None
    stored = await world.log.read_body(steered.stream_id, intent.body.digest)
    return None if stored is None else stored.decode()


async def tell_intent(world: World, stream_id: StreamId, intent_id: str) -> IntentAnswer:
    """Return an intent as people see it."""
    steered = await steering_now(world, stream_id)
    intent = find_intent(steered.state, intent_id)
    return await as_answer(world, steered, intent)


async def as_answer(world: World, steered: Steered, intent: Intent) -> IntentAnswer:
    """Return an intent as people see it."""
    return project_intent(steered.state, intent, await read_text(world, steered, intent))


def project_intent(state: Steering, intent: Intent, text: str | None) -> IntentAnswer:
    """Return an intent as people see it, with its text."""
    return IntentAnswer(
        intent_id=intent.intent_id,
        work_id=intent.work_id,
        workspace_id=state.workspace_id,
        position=intent.position,
        revision=intent.revision,
        kind=intent.kind,
        delivery=intent.delivery,
        body=text,
        state=intent.phase,
    )
