"""What waits to be resolved: the list of all stacks, and what one action would do to the files as they are now.

Source: the pending-actions paper, *bias*, 5; contract A4.
"""

from collections.abc import Callable
from typing import Any

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.pending.events import EDITS_HANDLER
from codespace_es.aggregates.pending.state import Resolving, find
from codespace_es.command_handlers.choosing import placed, waiting_stacks
from codespace_es.command_handlers.editing import plan_staged
from codespace_es.command_handlers.orphaning import settled_stack
from codespace_es.command_handlers.outcomes import read_json
from codespace_es.command_handlers.stacks import ReadStack, Session, read_stack
from codespace_es.command_handlers.writing import PreparedPatch
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Answer, Command, PendingHead
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ActionId
from codespace_es.vocabulary.workspace import Workspace


async def preview_resolve(
    world: World, workspace: Workspace, action_id: ActionId | None
) -> Callable[[], PreparedPatch] | None:
    """Return what tells, in a worker thread, what applying an action would do now; None where nobody can say."""
    session = None if action_id is None else await placed(world, action_id)
    if session is None or action_id is None:
        return None
    own = Session(workspace, session.work_id)
    action = find((await read_stack(world, own.stream_id)).state, action_id)
    if action is None or action.handler != EDITS_HANDLER:
        return None
    return lambda: plan_staged(world, own, action)


# The stacks


class ListPending(Command):
    """Ask for everything that waits to be resolved."""


class PendingFile(BaseModel):
    """A file that an action would change."""

    model_config = ConfigDict(frozen=True)

    path: str = Field(description="Relative path.")
    before: str = Field(description="Version that the preview has seen.")
    after: str = Field(description="Version that it would get.")


class PendingReport(PendingHead):
    """An action that isn't over."""

    workspace_id: str = Field(description="Where.")
    work_id: str | None = Field(default=None, description="The work whose stack it is on.")
    created_at: int = Field(description="Unix seconds.")
    is_next: bool = Field(description="It is on top: resolve takes it first.")
    is_resolving: bool = Field(description="Its resolve is under way.")
    is_durable: bool = Field(description="It outlives this server.")
    details: Any = Field(default=None, description="What its tool had pushed with it.")
    files: tuple[PendingFile, ...] = Field(default=(), description="Files that it would change.")


class PendingList(Answer):
    """Every action that isn't over, stack by stack, the next one of each first."""

    actions: tuple[PendingReport, ...] = Field(description="One an action.")


async def list_pending(world: World, _command: ListPending, caller: Caller) -> PendingList:
    """Return what waits in this server's workspaces; what the dead have left is settled on the way."""
    reports: list[PendingReport] = []
    for each in await waiting_stacks(world):
        stack = await settled_stack(world, each.session, caller, is_passing=True)
        reports += [await _report(world, each.session, stack, action_id) for action_id in _newest_first(stack)]
    return PendingList(actions=tuple(reports))


def _newest_first(stack: ReadStack) -> list[ActionId]:
    return [each.action_id for each in reversed(stack.state.unresolved)]


async def _report(world: World, session: Session, stack: ReadStack, action_id: ActionId) -> PendingReport:
    action = find(stack.state, action_id)
    assert action is not None, "it was just read there"
    is_resolving = isinstance(stack.state, Resolving) and stack.state.action.action_id == action_id
    return PendingReport(
        id=action_id,
        label=action.label,
        source_tool_name=action.source_tool_name,
        workspace_id=session.workspace.workspace_id,
        work_id=action.work_id,
        created_at=int(stack.push_of(action_id).envelope.recorded_at.timestamp()),
        is_next=stack.state.actions[-1:] == (action,) and not isinstance(stack.state, Resolving),
        is_resolving=is_resolving,
        is_durable=action.handler is not None,
        details=await read_json(world.log, session.stream_id, action.details),
        files=tuple(PendingFile(path=each.path, before=each.before, after=each.after) for each in action.edits),
    )


# One of them


class AskPending(Command):
    """Ask what an action that isn't over would do."""

    id: str = Field(description="The action.")


class PendingPreview(Answer):
    """An action that isn't over, and what applying it would do to the files as they are now."""

    action: PendingReport = Field(description="The action.")
    shown: Any = Field(default=None, description="What its caller was shown.")
    diff: str | None = Field(default=None, description="What it would change now; absent where only its tool knows.")
    diff_truncated: bool | None = Field(default=None, description="The diff is cut.")
    preview_error: dict[str, Any] | None = Field(default=None, description="Why applying it now would be refused.")


async def ask_pending(world: World, command: AskPending, caller: Caller) -> PendingPreview:
    """Return the action with its preview. Raises NO_PENDING_ACTION, WORKSPACE_NOT_FOUND."""
    session = await placed(world, command.id)
    stack = None if session is None else await settled_stack(world, session, caller)
    action = None if stack is None else find(stack.state, command.id)
    if session is None or stack is None or action is None:
        raise CodespaceError(ErrorCode.NO_PENDING_ACTION, f"No action {command.id[:100]!r} waits to be resolved.")
    told = PendingPreview(
        action=await _report(world, session, stack, action.action_id),
        shown=await read_json(world.log, session.stream_id, action.preview),
    )
    if action.handler != EDITS_HANDLER:
        return told
    try:
        prepared = await to_thread.run_sync(plan_staged, world, session, action)
    except CodespaceError as error:
        return told.model_copy(update={"preview_error": error.to_wire()})
    return told.model_copy(update={"diff": prepared.diff, "diff_truncated": prepared.is_diff_truncated})
