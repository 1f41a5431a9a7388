"""`work_finish`: a work is closed once nothing comes first, neither what people have queued nor a preview that waits.

The close and `pending.stack_left` on the work's own stack are one append: a preview that is pushed at the same moment
comes before it, and the work stays open, or after it, as a call that names a closed work. Source: contract B6.3;
decision 29; ADR 12.
"""

from functools import reduce
from typing import Literal

from pydantic import Field

from codespace_es.aggregates.pending.events import PendingStackLeft
from codespace_es.aggregates.pending.rules import LeaveStack
from codespace_es.aggregates.steering import STEERING
from codespace_es.aggregates.steering.rules import FinishWork, count_pending, find_work, open_work
from codespace_es.aggregates.steering.state import Steering
from codespace_es.command_handlers.holding import count_pending as count_pending_holds
from codespace_es.command_handlers.orphaning import settled_stack
from codespace_es.command_handlers.stacks import ReadStack, Session, read_stack
from codespace_es.command_handlers.steering_streams import steering_now, steering_of_work
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import StreamId, WorkId, pending_stream, steered_workspace


class FinishWorkCommand(Command):
    """End a work."""

    work_id: str = Field(description="An open work.")


class FinishAnswer(Answer):
    """Whether it is closed, or what comes first."""

    work_id: str = Field(description="The work.")
    closed: bool = Field(description="It is over.")
    reason: str | None = Field(
        default=None,
        description="pending_user_input: people have queued something. pending_actions: a preview waits for resolve.",
    )
    queued: int = Field(description="How many intents come first, claimed ones too.")
    claimed: int | None = Field(default=None, description="How many of them you have claimed: steer_complete them.")
    state: str = Field(description="active, closing or closed.")
    pending_approvals: int | None = Field(default=None, description="Holds in its workspace that wait for a decision.")


async def finish_work(world: World, command: FinishWorkCommand, caller: Caller) -> FinishAnswer:
    """Return whether the work is closed. Raises WORK_NOT_FOUND, WORK_CLOSED."""
    stream_id = (await steering_of_work(world, command.work_id)).stream_id
    key = steered_workspace(stream_id)
    while True:
        stack = await _stack_of(world, stream_id, command.work_id, caller)
        steered = await steering_now(world, stream_id)
        work = open_work(steered.state, command.work_id)
        if stack.state.unresolved:
            return _tell(steered.state, work.work_id, "pending_actions")
        events = steered.decide(FinishWork(work.work_id))
        after = reduce(STEERING.evolve, (each.event for each in events), steered.state)
        if not find_work(after, work.work_id).is_open:
            left = PendingStackLeft(workspace_key=key, workspace_id=work.workspace_id, work_id=work.work_id)
            events += stack.folded.decide(LeaveStack(left))
        try:
            if events:
                await world.log.append(Append(events), caller)
        except VersionConflictError:
            continue
        told = _tell(after, work.work_id, "pending_user_input" if count_pending(after, work.work_id) else None)
        return told.model_copy(update={"pending_approvals": await count_pending_holds(world, key) or None})


async def _stack_of(world: World, stream_id: StreamId, work_id: str, caller: Caller) -> ReadStack:
    """Return what waits to be resolved in a work; settled, if its workspace is one of this server's."""
    key = steered_workspace(stream_id)
    workspace = next((each for each in world.workspaces.values() if each.key == key), None)
    if workspace is None:
        return await read_stack(world, pending_stream(key, work_id))
    return await settled_stack(world, Session(workspace, work_id), caller)


def _tell(
    state: Steering, work_id: WorkId, reason: Literal["pending_user_input", "pending_actions"] | None
) -> FinishAnswer:
    work = find_work(state, work_id)
    return FinishAnswer(
        work_id=work_id,
        closed=not work.is_open,
        reason=reason,
        queued=count_pending(state, work_id),
        claimed=sum(each.phase == "claimed" for each in state.waiting(work_id)) or None,
        state=work.phase,
    )
