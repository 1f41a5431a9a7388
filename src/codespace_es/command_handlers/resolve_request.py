"""What `resolve` is asked for, what it may be, and how an apply is held for approval.

A hold is recognised by the action's id: another reason for the same apply meets the same hold. Source: decision 25.
"""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from codespace_es.admission import require_usable_work
from codespace_es.aggregates.pending.events import PendingActionPushed
from codespace_es.aggregates.pending.rules import NOTHING_PENDING, require_top
from codespace_es.command_handlers.choosing import choose, named, placed
from codespace_es.command_handlers.holding import HeldRequest
from codespace_es.command_handlers.stacks import Session, read_stack
from codespace_es.command_handlers.staging import json_bytes
from codespace_es.policy import require
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ApprovalId, OperationId


class ResolveAction(Command):
    """Ask for the newest pending action to be applied or discarded."""

    action: Literal["apply", "discard"] = Field(description="What becomes of it.")
    reason: str = Field(default="", description="Recorded; changes nothing.")
    id: str | None = Field(default=None, description="The one you saw; it has to be on top.")
    workspace_id: str | None = Field(default=None, description="Whose stack, if several have something pending.")
    work_id: str | None = Field(default=None, description="The work whose stack it is.")
    extra: dict[str, Any] | None = Field(default=None, description="For its tool.")


@dataclass(frozen=True, slots=True)
class Resolve:
    """One resolve of one action, on its way."""

    session: Session
    action: PendingActionPushed
    command: ResolveAction
    caller: Caller
    since: int
    """Position of the action's push: where its history begins."""
    effect_id: OperationId | None
    """With apply, the id that its operation will have, should it write."""
    resumed: ApprovalId | None = None
    """The hold that allows it."""


def require_bounded(command: ResolveAction) -> None:
    """Pass if everything in the request can be recorded. Raises INVALID_ARGUMENT."""
    require_usable_work(command.work_id)
    try:
        size = len(command.reason.encode())
    except UnicodeEncodeError as error:
        raise _unusable("reason", "reason isn't valid Unicode.") from error
    if size > limits.REASON_BYTES_MAX:
        raise _unusable("reason", f"reason has {size} bytes; the limit is {limits.REASON_BYTES_MAX}.")
    if command.extra is not None:
        json_bytes("extra", command.extra)


def _unusable(field: str, message: str) -> CodespaceError:
    return CodespaceError(ErrorCode.INVALID_ARGUMENT, message, detail={"field": field})


async def find_session(world: World, command: ResolveAction) -> Session:
    """Return whose stack is meant.

    Raises:
        CodespaceError: NO_PENDING_ACTION, PENDING_ACTION_MISMATCH where several could be; WORKSPACE_NOT_FOUND.
    """
    given = named(world, command.workspace_id, command.work_id)
    own = None if command.id is None else await placed(world, command.id)
    if own is not None and given.workspace in (None, own.workspace) and given.work_id in (None, own.work_id):
        return own
    session = await choose(world, given)
    if session is None:
        raise CodespaceError(ErrorCode.NO_PENDING_ACTION, NOTHING_PENDING)
    return session


async def held_resolve(world: World, command: ResolveAction) -> HeldRequest:
    """Return the apply as it is held on purpose. Raises what `resolve` would be refused with."""
    require_bounded(command)
    session = await find_session(world, command)
    require(session.workspace, "write")
    return held_apply(session, require_top((await read_stack(world, session.stream_id)).state, command.id), command)


def held_apply(session: Session, action: PendingActionPushed, command: ResolveAction) -> HeldRequest:
    """Return the apply of an action as it is held: with its id, whether or not the caller named it."""
    return HeldRequest(
        workspace=session.workspace,
        tool="resolve",
        command=command.model_copy(update={
            "id": action.action_id, "workspace_id": session.workspace.workspace_id, "work_id": session.work_id,
        }),
        title=f"Apply: {action.label}",
        work_id=session.work_id,
        seen_versions={edit.path: edit.before for edit in action.edits},
        action_id=action.action_id,
        not_counted=frozenset({"reason"}),
    )
