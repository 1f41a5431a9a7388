"""`operation_resume`: a granted hold runs exactly once, or its stored outcome is given again.

1. Queue it: a version conflict lets one resume win, in one process or in ten.
2. Run the held request by the ordinary way, against today's configuration; its effect consumes the hold in its appends.
3. Busy or queue full: parked, to be resumed again. Any other refusal consumes it, with the error to be given again.

Whatever was left half-way by a crash is settled with its operation; a command is never started twice, since its spawn
and the end of its hold are one append. Source: contract B4.4 to B4.6; decisions 19, 24 to 26.
"""

from typing import Any

from anyio import move_on_after, sleep
from pydantic import Field, ValidationError

from codespace_es import policy
from codespace_es.aggregates.approval import (
    APPROVAL,
    ApprovalCreated,
    Consumed,
    ParkApproval,
    QueueApproval,
    Queued,
    Resuming,
    Unheld,
)
from codespace_es.command_handlers.consuming import BLOCKED_CODES, Outcome, consumption
from codespace_es.command_handlers.executing import ExecResult, told_again
from codespace_es.command_handlers.gating import require_resumable
from codespace_es.command_handlers.holding import expire_if_due, find_workspace, read_arguments
from codespace_es.command_handlers.parking import is_left, park_if_left
from codespace_es.command_handlers.resumable import RESUMABLE, to_stored
from codespace_es.command_handlers.settling import settle_when_free
from codespace_es.command_handlers.writing import UnrecordedEndError
from codespace_es.folding import append_decided, fold
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.projections.approval_status import granted_by
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Fault
from codespace_es.vocabulary.identifiers import ApprovalId, StreamId

_PATIENCE_SECONDS = 2.0
_OTHER_RECOVERER_SECONDS = 0.5
_EFFECT_NAMES = {"op": "operation_id", "proc": "process_id"}


class ResumeOperation(Command):
    """Ask for a granted hold to run."""

    approval_id: str = Field(description="A hold that was granted.")


class ResumeResult(Answer):
    """The hold is consumed; its answer stands under the name of the held tool."""

    approval_id: str = Field(description="The hold.")
    state: str = Field(default="consumed", description="Always consumed.")
    apply_patch: dict[str, Any] | None = Field(default=None, description="What apply_patch answered.")
    exec_command: dict[str, Any] | None = Field(default=None, description="What exec_command answered.")
    operation_revert: dict[str, Any] | None = Field(default=None, description="What operation_revert answered.")
    resolve: dict[str, Any] | None = Field(default=None, description="What resolve answered.")


async def resume_operation(world: World, command: ResumeOperation, caller: Caller) -> ResumeResult:
    """Return what the held request came to. Raises APPROVAL_NOT_FOUND, -CONFLICT, -AMBIGUOUS and those of its tool."""
    approval_id = ApprovalId(command.approval_id)
    await require_hold(world, approval_id)
    return await world.effects.run(lambda: _resume(world, approval_id, caller))


async def require_hold(world: World, approval_id: ApprovalId) -> None:
    """Pass if there is such a hold. Raises APPROVAL_NOT_FOUND."""
    is_named_so = approval_id.startswith("appr-")
    if not is_named_so or not await world.log.read_stream(StreamId(approval_id)):
        raise CodespaceError(ErrorCode.APPROVAL_NOT_FOUND, f"No approval {approval_id[:100]!r} is recorded.")


async def _resume(world: World, approval_id: ApprovalId, caller: Caller) -> ResumeResult:
    await expire_if_due(world, approval_id, caller)
    await _settle_left_behind(world, approval_id, caller)
    approval = await fold(world.log, APPROVAL, approval_id)
    if isinstance(approval.state, Consumed):
        return await _stored(world, approval_id, approval.state)
    if isinstance(approval.state, Queued | Resuming):
        raise _conflict(approval_id, "its resume is in progress")
    assert not isinstance(approval.state, Unheld), "it was asked for before"
    try:
        queued = approval.decide(QueueApproval(world.clock.now()))
        await _require_resumable(world, approval.state.created, caller)
    except CodespaceError as error:
        raise error.with_detail(approval_id=approval_id) from error
    if not world.under_way.begin(approval_id):
        raise _conflict(approval_id, "its resume is in progress")
    try:
        try:
            await world.log.append(Append(queued), caller)
        except VersionConflictError:
            raise _conflict(approval_id, "another resume of it has begun") from None
        return await _run(world, approval_id, approval.state.created, caller)
    finally:
        world.under_way.end(approval_id)


async def _require_resumable(world: World, created: ApprovalCreated, caller: Caller) -> None:
    """Pass if nothing has to come before the held request, and it can run in this server."""
    workspace = find_workspace(world, created.workspace_key)
    if workspace is not None:
        await require_resumable(world, workspace, created, caller)


async def _run(world: World, approval_id: ApprovalId, created: ApprovalCreated, caller: Caller) -> ResumeResult:
    """Run the held request, and see to it that the hold ends, or waits for another resume."""
    try:
        command = await _as_allowed_today(world, approval_id, created)
        answer = await RESUMABLE[created.tool].run(world, command, caller, resumed=approval_id)
    except UnrecordedEndError as error:
        raise CodespaceError(
            ErrorCode.APPROVAL_AMBIGUOUS, str(error),
            detail={"approval_id": approval_id, "operation_id": error.operation_id},
        ) from error
    except CodespaceError as error:
        await _end_by(world, approval_id, error, caller)
        raise error.with_detail(approval_id=approval_id) from error
    if not await _is_consumed(world, approval_id):
        # A repeat of what its key had done already: nothing ran, and the answer is its own.
        await _consume(world, approval_id, Outcome(result=to_stored(answer)), caller)
    return _told(approval_id, created.tool, answer)


async def _as_allowed_today(world: World, approval_id: ApprovalId, created: ApprovalCreated) -> Command:
    """Return the held request under the name that its directory has here; its tool asks for the rest of the policy.

    Raises:
        CodespaceError: WORKSPACE_NOT_FOUND; UNAUTHORIZED if whoever granted it may grant no more; APPROVAL_AMBIGUOUS if
            its arguments are gone.
    """
    workspace = find_workspace(world, created.workspace_key)
    if workspace is None:
        raise CodespaceError(
            ErrorCode.WORKSPACE_NOT_FOUND,
            f"The hold's directory, recorded as workspace {created.workspace_id!r}, isn't configured here.",
            detail={"workspace_id": created.workspace_id},
        )
    channel = granted_by(await world.log.read_stream(StreamId(approval_id)))
    if channel is None or not policy.may_grant(workspace, channel):
        raise CodespaceError(
            ErrorCode.UNAUTHORIZED,
            f"It was granted by {channel}, and only the operator grants in workspace {workspace.workspace_id!r} now.",
            detail={"workspace_id": workspace.workspace_id},
        )
    arguments = await read_arguments(world, approval_id, created)
    if arguments is None:
        raise CodespaceError(ErrorCode.APPROVAL_AMBIGUOUS, "Its arguments are gone, so it can't be run.")
    command = RESUMABLE[created.tool].held.model_validate(arguments, strict=False)
    is_named = "workspace_id" in type(command).model_fields
    return command.model_copy(update={"workspace_id": workspace.workspace_id}) if is_named else command


async def _end_by(world: World, approval_id: ApprovalId, error: CodespaceError, caller: Caller) -> None:
    """Park the hold where the way was only blocked, consume it with the error where it was refused for good."""
    if await _is_consumed(world, approval_id):
        return
    if error.code in BLOCKED_CODES:
        await append_decided(world.log, APPROVAL, approval_id, ParkApproval(Fault.of(error)), caller)
    else:
        told = error.with_detail(approval_id=approval_id)
        await _consume(world, approval_id, Outcome(fault=Fault.of(told)), caller)


async def _is_consumed(world: World, approval_id: ApprovalId) -> bool:
    return isinstance((await fold(world.log, APPROVAL, approval_id)).state, Consumed)


async def _consume(world: World, approval_id: ApprovalId, outcome: Outcome, caller: Caller) -> None:
    part = await consumption(world.log, approval_id, outcome)
    await world.log.append(Append(part.events, part.bodies, part.scrubbed), caller)


async def _stored(world: World, approval_id: ApprovalId, state: Consumed) -> ResumeResult:
    """Return the stored answer again. Raises the stored error, or APPROVAL_AMBIGUOUS where it can't be read."""
    consumed = state.consumed
    if consumed.fault is not None:
        raise consumed.fault.to_error().with_detail(approval_id=approval_id)
    assert consumed.result is not None, "a result or a fault"
    stored = await world.log.read_body(StreamId(approval_id), consumed.result.digest)
    try:
        answer = RESUMABLE[state.created.tool].answer.model_validate_json(stored or b"")
    except ValidationError as error:
        effect = {_EFFECT_NAMES[consumed.effect_id.partition("-")[0]]: consumed.effect_id} if consumed.effect_id else {}
        raise CodespaceError(
            ErrorCode.APPROVAL_AMBIGUOUS,
            "It was consumed, and its stored answer is gone: look at what it led to.",
            detail={"approval_id": approval_id, **effect},
        ) from error
    if isinstance(answer, ExecResult):
        answer = await told_again(world, answer)
    return _told(approval_id, state.created.tool, answer.model_copy(update={"replayed": True}))


def _told(approval_id: ApprovalId, tool: str, answer: Answer) -> ResumeResult:
    return ResumeResult.model_validate({"approval_id": approval_id, tool: answer.to_wire()})


def _conflict(approval_id: ApprovalId, reason: str) -> CodespaceError:
    return CodespaceError(
        ErrorCode.APPROVAL_CONFLICT, f"The approval can't be resumed now: {reason}.",
        detail={"approval_id": approval_id},
    )


async def _settle_left_behind(world: World, approval_id: ApprovalId, caller: Caller) -> None:
    """Close what an earlier resume left: by its operation where it has one, else by parking the hold.

    Somebody else may be doing just that, and holds the dead one's lock meanwhile: look again for a moment.
    """
    with move_on_after(_OTHER_RECOVERER_SECONDS):
        while True:
            if await _is_settled(world, approval_id, caller):
                return
            await sleep(limits.LEASE_POLL_MS_MAX / 1000)


async def _is_settled(world: World, approval_id: ApprovalId, caller: Caller) -> bool:
    """Settle the hold if it was left; return False if its resume is in somebody else's hands."""
    await park_if_left(world, approval_id, caller)
    recorded = await world.log.read_stream(StreamId(approval_id))
    state = APPROVAL.fold_recorded(recorded)
    if not isinstance(state, Queued | Resuming) or approval_id in world.under_way:
        return True
    workspace = find_workspace(world, state.created.workspace_key)
    is_closable = isinstance(state, Resuming) and await is_left(world, approval_id, recorded[-1].envelope.instance_id)
    if not is_closable or workspace is None:
        return False
    with move_on_after(_PATIENCE_SECONDS):
        await settle_when_free(world, workspace, caller)
    return True
