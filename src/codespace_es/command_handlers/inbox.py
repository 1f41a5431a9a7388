"""Steering, from people's side: write an instruction, queue it, order the queue, stop a work, take back.

Only the operator's channels come here (command line, web, the inbox over HTTP): an agent can neither write nor see a
draft. Text is never authority: nothing queued changes what a profile allows. Source: contract B6.5, A6.
"""

from contextlib import suppress
from typing import Any

from pydantic import Field

from codespace_es.aggregates.steering.events import Delivery, IntentDrafted, IntentKind, StopRequested
from codespace_es.aggregates.steering.rules import (
    CancelIntent,
    DraftIntent,
    EditIntent,
    QueueIntent,
    ReleaseIntent,
    ReorderIntents,
    SteeringCommand,
    StopWork,
)
from codespace_es.aggregates.steering.state import Intent, Steering, Work
from codespace_es.command_handlers.steering import (
    IntentAnswer,
    append_to_steering,
    as_answer,
    tell_intent,
)
from codespace_es.command_handlers.steering_streams import all_steering, steering_of_intent, steering_of_work
from codespace_es.command_handlers.watching import SIGTERM, request_end
from codespace_es.ports.log import NewBody
from codespace_es.ports.runner import RunnerLostError
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import IntentId, ProcessId, StreamId, WorkId, steered_workspace

# Looking


class ListWorks(Command):
    """Ask for the works, newest first."""

    workspace_id: str | None = Field(default=None, description="Only of this workspace.")


class WorkDescription(Answer):
    """A work as people see it."""

    work_id: str = Field(description="The work.")
    workspace_id: str = Field(description="Where.")
    title: str | None = Field(default=None, description="What it is about.")
    state: str = Field(description="active, closing or closed.")
    queue_revision: int = Field(description="Rises with every change of its queue.")


class WorkList(Answer):
    """Works, newest first."""

    works: tuple[WorkDescription, ...] = Field(description="Each as people see it.")


async def list_works(world: World, command: ListWorks, _caller: Caller) -> WorkList:
    """Return the works, newest first within each workspace."""
    works: list[WorkDescription] = []
    async for steered in all_steering(world):
        works += [project_work(each) for each in reversed(list(steered.state.works.values()))]
    wanted = command.workspace_id
    return WorkList(works=tuple(each for each in works if wanted is None or each.workspace_id == wanted))


class LookAtWork(Command):
    """Ask for one work."""

    work_id: str = Field(description="A work.")


async def look_at_work(world: World, command: LookAtWork, _caller: Caller) -> WorkDescription:
    """Return the work. Raises WORK_NOT_FOUND."""
    steered = await steering_of_work(world, command.work_id)
    return project_work(steered.state.works[WorkId(command.work_id)])


def project_work(work: Work) -> WorkDescription:
    """Return a work as people see it."""
    return WorkDescription(
        work_id=work.work_id, workspace_id=work.workspace_id, title=work.title, state=work.phase,
        queue_revision=work.queue_revision,
    )


class ListIntents(Command):
    """Ask for the intents of a work, and those of its workspace that belong to no work."""

    work_id: str = Field(description="A work.")


class IntentList(Answer):
    """Intents in the order in which people care: claimed, queued, draft, the rest; then by position."""

    intents: tuple[IntentAnswer, ...] = Field(description="With their texts, drafts included.")


_ORDER = {"claimed": 0, "queued": 1, "draft": 2}


async def list_intents(world: World, command: ListIntents, _caller: Caller) -> IntentList:
    """Return the intents. Raises WORK_NOT_FOUND."""
    steered = await steering_of_work(world, command.work_id)
    listed = in_order(steered.state, WorkId(command.work_id))
    return IntentList(intents=tuple([await as_answer(world, steered, each) for each in listed]))


def in_order(state: Steering, work_id: WorkId) -> list[Intent]:
    """Return the intents of a work and the unattached ones: claimed, queued, draft, the rest; then by position."""
    both = [*state.attached(work_id), *state.attached(None)]
    return sorted(both, key=lambda each: (_ORDER.get(each.phase, 3), each.position))


# Writing


class WriteIntent(Command):
    """Draft an instruction for a work."""

    work_id: str = Field(description="A work; a closed one passes it on to the next.")
    body: str = Field(description="The text.")
    kind: IntentKind = Field(default="follow_up", description="What sort of instruction.")
    delivery: Delivery = Field(default="after_current_work", description="When it may be claimed.")
    client_key: str | None = Field(default=None, max_length=200, description="A repeat with it makes one intent.")


async def write_intent(world: World, command: WriteIntent, caller: Caller) -> IntentAnswer:
    """Return the draft; of a repeated `client_key` the one that is there. Raises WORK_NOT_FOUND, INVALID_ARGUMENT."""
    steered = await steering_of_work(world, command.work_id)
    text = _text(steered.stream_id, command.body)
    intent_id = IntentId(f"fb-{world.ids.uuid()}")
    drafted = IntentDrafted(
        intent_id=intent_id, work_id=WorkId(command.work_id), kind=command.kind, delivery=command.delivery,
        body=text.body, client_key=command.client_key,
    )
    before, events = await append_to_steering(world, steered.stream_id, DraftIntent(drafted), caller, bodies=(text,))
    if not events:
        intent_id = before.state.by_client_key[command.client_key or ""]
    return await tell_intent(world, steered.stream_id, intent_id)


class EditIntentCommand(Command):
    """Change an intent that nobody has claimed."""

    intent_id: str = Field(description="A draft or queued intent.")
    revision: int = Field(description="Its present revision.")
    body: str = Field(description="The new text.")
    delivery: Delivery | None = Field(default=None, description="When it may be claimed.")


async def edit_intent(world: World, command: EditIntentCommand, caller: Caller) -> IntentAnswer:
    """Return the edited intent. Raises INTENT_NOT_FOUND, -ALREADY_CLAIMED, -NOT_EDITABLE, -REVISION_CONFLICT."""
    steered = await steering_of_intent(world, command.intent_id)
    text = _text(steered.stream_id, command.body)
    edit = EditIntent(IntentId(command.intent_id), command.revision, text.body, command.delivery)
    await append_to_steering(world, steered.stream_id, edit, caller, bodies=(text,))
    return await tell_intent(world, steered.stream_id, command.intent_id)


class QueueIntentCommand(Command):
    """Let agents have a draft."""

    intent_id: str = Field(description="A draft.")
    revision: int = Field(description="Its present revision.")


async def queue_intent(world: World, command: QueueIntentCommand, caller: Caller) -> IntentAnswer:
    """Return the queued intent. Raises INTENT_NOT_FOUND, INTENT_NOT_EDITABLE, INTENT_REVISION_CONFLICT."""
    return await _change(world, command.intent_id, QueueIntent(IntentId(command.intent_id), command.revision), caller)


class CancelIntentCommand(Command):
    """Take an intent back."""

    intent_id: str = Field(description="A draft or queued intent.")


async def cancel_intent(world: World, command: CancelIntentCommand, caller: Caller) -> IntentAnswer:
    """Return the cancelled intent. Raises INTENT_NOT_FOUND, INTENT_ALREADY_CLAIMED, INTENT_NOT_EDITABLE."""
    return await _change(world, command.intent_id, CancelIntent(IntentId(command.intent_id)), caller)


class ReleaseIntentCommand(Command):
    """Put a claimed intent back into the queue."""

    intent_id: str = Field(description="A claimed intent.")


async def release_intent(world: World, command: ReleaseIntentCommand, caller: Caller) -> IntentAnswer:
    """Return the queued intent. Raises INTENT_NOT_FOUND, INTENT_NOT_EDITABLE."""
    return await _change(world, command.intent_id, ReleaseIntent(IntentId(command.intent_id)), caller)


async def _change(world: World, intent_id: str, change: SteeringCommand, caller: Caller) -> IntentAnswer:
    stream_id = (await steering_of_intent(world, intent_id)).stream_id
    await append_to_steering(world, stream_id, change, caller)
    return await tell_intent(world, stream_id, intent_id)


class ReorderIntentsCommand(Command):
    """Give the queue of a work another order."""

    work_id: str = Field(description="A work.")
    intent_ids: tuple[str, ...] = Field(description="Exactly its queued intents, in the new order.")


async def reorder_intents(world: World, command: ReorderIntentsCommand, caller: Caller) -> IntentList:
    """Return the intents in their new order. Raises WORK_NOT_FOUND, INVALID_ARGUMENT."""
    stream_id = (await steering_of_work(world, command.work_id)).stream_id
    order = tuple(IntentId(each) for each in command.intent_ids)
    await append_to_steering(world, stream_id, ReorderIntents(WorkId(command.work_id), order), caller)
    return await list_intents(world, ListIntents(work_id=command.work_id), caller)


class StopWorkCommand(Command):
    """Stop a work: end its workspace's processes and leave a notice."""

    work_id: str = Field(description="A work.")
    reason: str | None = Field(default=None, description="What the agent is told.")


class StopAnswer(Answer):
    """It was stopped."""

    ok: bool = Field(default=True, description="Always true.")
    killed: int = Field(description="Processes that are being ended.")
    elsewhere: int = Field(description="Processes that other servers run in the workspace: only they can end those.")
    intent: IntentAnswer = Field(description="The notice.")

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object, in which the notice is as it is elsewhere."""
        return {**super().to_wire(), "intent": self.intent.to_wire()}


async def stop_work(world: World, command: StopWorkCommand, caller: Caller) -> StopAnswer:
    """End every live process of the work's workspace that runs here, and leave a notice. Raises WORK_NOT_FOUND."""
    steered = await steering_of_work(world, command.work_id)
    text = None if command.reason is None else _text(steered.stream_id, command.reason)
    items = await world.log.open_items(kind="process", workspace_key=steered_workspace(steered.stream_id))
    here = tuple(ProcessId(item.stream_id) for item in items if world.live.find(item.stream_id) is not None)
    stop = StopRequested(
        work_id=WorkId(command.work_id), intent_id=IntentId(f"fb-{world.ids.uuid()}"),
        body=None if text is None else text.body, process_ids=here, is_claimed=True,
    )

    async def stop_all() -> None:
        bodies = () if text is None else (text,)
        await append_to_steering(world, steered.stream_id, StopWork(stop), caller, bodies=bodies)
        for process_id in here:
            await _end(world, process_id, caller)

    await world.effects.run(stop_all)
    notice = await tell_intent(world, steered.stream_id, stop.intent_id)
    return StopAnswer(killed=len(here), elsewhere=len(items) - len(here), intent=notice)


async def _end(world: World, process_id: ProcessId, caller: Caller) -> None:
    living = world.live.find(process_id)
    if living is not None:
        with suppress(RunnerLostError):  # then all that it ran is ended already
            await request_end(
                world, process_id, living, cause="stop", signal=SIGTERM, grace_ms=limits.TERMINATE_GRACE_MS_DEFAULT,
                caller=caller,
            )


def _text(stream_id: StreamId, text: str) -> NewBody:
    """Return what a person wrote as a body. Raises INVALID_ARGUMENT for one that is too long, or no text."""
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, "body isn't valid Unicode.", detail={"field": "body"}
        ) from error
    if len(content) > limits.INTENT_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT, f"body has {len(content)} bytes; the limit is {limits.INTENT_BYTES_MAX}.",
            detail={"field": "body"},
        )
    return NewBody(stream_id, "text", content)
