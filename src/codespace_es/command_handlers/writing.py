"""The story of every patch, whoever asks for it: lease, settle, plan, mint, write, finish.

1. Waiting for the lease is the caller's own waiting: dropped while it waits, the call leaves no trace.
2. With the lease, the rest runs as an effect: what dead instances left in this workspace is settled first.
3. The plan is made against the files as they are; a refusal is minted and finished in one append.
4. `operation.minted` with the plan, the key's claim, the request and both images of every file: one commit.
5. The patch writer acts; what the disk says then is appended as `operation.finished`. Only now is it answered.

Source: reliability paper section 3; event catalogue section 4.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from anyio import to_thread

from codespace_es.admission import find_holder, read_operation, take_lease
from codespace_es.aggregates.claim import CLAIM, TakeClaim
from codespace_es.aggregates.operation import (
    OPERATION,
    FinishOperation,
    MarkReverted,
    MintFinishedOperation,
    MintOperation,
    OperationFinished,
    OperationMinted,
    OperationSource,
)
from codespace_es.aggregates.operation import Minted as MintedState
from codespace_es.aggregates.workspace import WORKSPACE, BindWorkspace, WorkspaceBound
from codespace_es.command_handlers.settling import close_operation, settle_workspace
from codespace_es.folding import fold, fresh
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.log import Append, NewBody, NewEvent, StoreUnavailableError, VersionConflictError
from codespace_es.ports.patch_writer import PatchOrder, WriteOutcome
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller, Digest, Fault, Version
from codespace_es.vocabulary.file_change import PlannedFile, change_of
from codespace_es.vocabulary.identifiers import OperationId, StreamId, WorkId, claim_stream
from codespace_es.vocabulary.patch_result import PatchResult, ResultError
from codespace_es.vocabulary.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PreparedPatch:
    """A plan with all that is needed to carry it out and to tell of it."""

    plan: tuple[PlannedFile, ...]
    images: Mapping[Digest, bytes]
    made_directories: tuple[str, ...] = ()
    removed_directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    summaries: Mapping[str, str] = field(default_factory=dict)
    """`+n -m` by path."""
    summary: str | None = None
    diff: str | None = None
    is_diff_truncated: bool = False
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """What somebody wants to write, before it is known whether that is possible."""

    workspace: Workspace
    source: OperationSource
    fingerprint: Digest
    request: bytes
    prepare: Callable[[], PreparedPatch]
    """Makes the plan against the files as they are; runs in a worker thread; raises CodespaceError."""
    operation_key: str | None = None
    check_only: bool = False
    work_id: str | None = None
    reverts: OperationId | None = None
    expected_versions: Mapping[str, Version] = field(default_factory=dict)


async def write_patch(world: World, request: PatchRequest, caller: Caller) -> PatchResult:
    """Return what came of `request`, now or when the same key was used for it before.

    Raises:
        CodespaceError: OPERATION_KEY_CONFLICT, WORKSPACE_BUSY, RESOURCE_QUEUE_FULL, and with `operation_id` in the
            detail every refusal of planning.
    """
    replay = await _find_replay(world, request)
    if replay is not None:
        return replay
    lease = await take_lease(world, request.workspace, caller)

    async def carry_out() -> PatchResult:
        try:
            world.faults(FaultPoint.PATCH_LEASED)
            await settle_workspace(world, request.workspace, caller)
            return await _carry_out(world, request, caller)
        finally:
            lease.release()

    return await world.effects.run(carry_out)


async def _carry_out(world: World, request: PatchRequest, caller: Caller) -> PatchResult:
    """Plan, mint, write, finish; decide again whenever another server was quicker."""
    while True:
        replay = await _find_replay(world, request, is_leased=True)
        if replay is not None:
            return replay
        operation_id = OperationId(f"op-{world.ids.uuid()}")
        try:
            prepared = await to_thread.run_sync(request.prepare)
        except CodespaceError as refusal:
            if await _record_refusal(world, request, operation_id, refusal, caller):
                raise refusal.with_detail(operation_id=operation_id) from refusal
            continue
        world.faults(FaultPoint.PATCH_PLANNED)
        if request.check_only:
            result = _told(request, operation_id, prepared, "checked")
            if await _record_check(world, request, operation_id, prepared, result, caller):
                return result.model_copy(update={"work_id": request.work_id})
            continue
        minted = await _mint(world, request, operation_id, prepared, caller)
        if minted is not None:
            return await _act(world, request, operation_id, prepared, minted, caller)


async def _find_replay(world: World, request: PatchRequest, *, is_leased: bool = False) -> PatchResult | None:
    """Return the stored answer of the operation that `request` repeats, None if it has to run or to wait.

    Raises:
        CodespaceError: the stored refusal, or OPERATION_KEY_CONFLICT.
    """
    holder = await find_holder(world.log, request.operation_key, request.fingerprint)
    if holder is None:
        return None
    state = await read_operation(world.log, holder)
    if isinstance(state, MintedState):
        if not is_leased:
            return None
        return PatchResult(status="unknown", operation_id=holder, replayed=True, work_id=request.work_id)
    finished = state.finished
    if finished.result is None:
        assert finished.fault is not None, "an end is a result or a fault"
        raise finished.fault.to_error().with_detail(operation_id=holder)
    stored = await world.log.read_body(StreamId(holder), finished.result.digest)
    if stored is None:
        return PatchResult(
            status=finished.status, operation_id=holder, replayed=True, work_id=request.work_id,
            warnings=(Notice(kind="result_pruned", message="The stored answer was pruned: see operation_status."),),
        )
    return PatchResult.from_stored(stored, work_id=request.work_id)


async def _opening(
    world: World, request: PatchRequest, operation_id: OperationId
) -> tuple[tuple[NewEvent, ...], OperationMinted]:
    """Return the claim of the key, and the minted event of a patch without a plan."""
    claim: tuple[NewEvent, ...] = ()
    if request.operation_key is not None:
        folded = await fold(world.log, CLAIM, claim_stream("operation_key", request.operation_key))
        claim = folded.decide(TakeClaim("operation_key", operation_id, request.fingerprint))
    minted = OperationMinted(
        workspace_key=request.workspace.key,
        workspace_id=request.workspace.workspace_id,
        source=request.source,
        check_only=request.check_only,
        fingerprint=request.fingerprint,
        operation_key=request.operation_key,
        work_id=WorkId(request.work_id) if request.work_id else None,
        reverts=request.reverts,
        request=_request_body(request, operation_id).body,
        expected_versions=dict(request.expected_versions),
    )
    return claim, minted


def _request_body(request: PatchRequest, operation_id: OperationId) -> NewBody:
    return NewBody(StreamId(operation_id), "request", request.request)


async def _record_refusal(
    world: World, request: PatchRequest, operation_id: OperationId, refusal: CodespaceError, caller: Caller
) -> bool:
    """Mint and finish a refusal; return False if another server took the key meanwhile."""
    claim, minted = await _opening(world, request, operation_id)
    finished = OperationFinished(status="rejected", fault=Fault.of(refusal))
    events = fresh(OPERATION, operation_id).decide(MintFinishedOperation(minted, finished))
    append = Append(claim + events, bodies=(_request_body(request, operation_id),))
    return await _try_append(world, append, caller)


async def _record_check(
    world: World, request: PatchRequest, operation_id: OperationId, prepared: PreparedPatch, result: PatchResult,
    caller: Caller,
) -> bool:
    """Mint and finish a preview; return False if another server took the key meanwhile."""
    claim, minted = await _opening(world, request, operation_id)
    minted = minted.model_copy(update={"plan": prepared.plan, "made_directories": prepared.made_directories})
    stored = NewBody(StreamId(operation_id), "result", result.to_stored())
    finished = OperationFinished(status="checked", result=stored.body)
    events = fresh(OPERATION, operation_id).decide(MintFinishedOperation(minted, finished))
    append = Append(claim + events, bodies=(_request_body(request, operation_id), stored))
    return await _try_append(world, append, caller)


async def _mint(
    world: World, request: PatchRequest, operation_id: OperationId, prepared: PreparedPatch, caller: Caller
) -> OperationMinted | None:
    """Make the decision durable, with all that recovery needs; None if another server was quicker."""
    claim, minted = await _opening(world, request, operation_id)
    minted = minted.model_copy(update={
        "plan": prepared.plan,
        "made_directories": prepared.made_directories,
        "removed_directories": prepared.removed_directories,
    })
    events = (
        *await _bind(world, request.workspace),
        *claim,
        *fresh(OPERATION, operation_id).decide(MintOperation(minted)),
    )
    images = (NewBody(StreamId(operation_id), "image", content) for content in prepared.images.values())
    append = Append(events, bodies=(_request_body(request, operation_id), *images))
    return minted if await _try_append(world, append, caller) else None


async def _bind(world: World, workspace: Workspace) -> tuple[NewEvent, ...]:
    """Return a `workspace.bound` if its directory isn't on record as it is now."""
    identity = await to_thread.run_sync(world.files.open(workspace.root).identity)
    binding = WorkspaceBound(
        workspace_id=workspace.workspace_id,
        root=workspace.root,
        machine_id=world.machine_id,
        device=identity.device,
        inode=identity.inode,
    )
    return (await fold(world.log, WORKSPACE, workspace.key)).decide(BindWorkspace(binding))


async def _act(
    world: World, request: PatchRequest, operation_id: OperationId, prepared: PreparedPatch, minted: OperationMinted,
    caller: Caller,
) -> PatchResult:
    """Write, then append what the disk says. Whatever escapes from here is settled here and now."""
    order = PatchOrder(
        operation_id=operation_id,
        root=request.workspace.root,
        plan=minted.plan,
        made_directories=minted.made_directories,
        removed_directories=minted.removed_directories,
        image=prepared.images.__getitem__,
    )
    try:
        world.faults(FaultPoint.PATCH_MINTED)
        outcome = await to_thread.run_sync(world.patch_writer.write, order)
        world.faults(FaultPoint.PATCH_WRITTEN)
        result = _told(request, operation_id, prepared, outcome.status, outcome=outcome)
        await _finish(world, operation_id, minted, outcome, result, caller)
    except StoreUnavailableError as error:
        raise StoreUnavailableError(
            f"{error} Operation {operation_id} was begun: its outcome will be settled from the files; "
            "ask operation_status."
        ) from error
    except Exception:
        await close_operation(world, operation_id, minted, request.workspace, caller)
        raise
    world.faults(FaultPoint.PATCH_FINISHED)
    return result.model_copy(update={"work_id": request.work_id})


async def _finish(
    world: World, operation_id: OperationId, minted: OperationMinted, outcome: WriteOutcome, result: PatchResult,
    caller: Caller,
) -> None:
    """Append the end of an operation, with what ends together with it."""
    stored = NewBody(StreamId(operation_id), "result", result.to_stored())
    finished = OperationFinished(
        status=outcome.status,
        reason="unknown" if outcome.status in ("unknown", "failed_partial") else None,
        fault=outcome.fault,
        result=stored.body,
        findings=outcome.findings,
        is_swap_atomic=outcome.is_swap_atomic,
    )
    events = (await fold(world.log, OPERATION, operation_id)).decide(FinishOperation(finished))
    if minted.reverts is not None and outcome.status == "applied":
        events += (await fold(world.log, OPERATION, minted.reverts)).decide(MarkReverted(operation_id))
    await world.log.append(Append(events, bodies=(stored,)), caller)


def _told(
    request: PatchRequest, operation_id: OperationId, prepared: PreparedPatch, status: str,
    *, outcome: WriteOutcome | None = None,
) -> PatchResult:
    """Return the answer: the whole plan where it came about or would, before-versions where it failed."""
    is_after_known = status in ("applied", "checked")
    fault = outcome.fault if outcome else None
    changes = tuple(
        change_of(planned, summary=prepared.summaries.get(planned.path), is_after_known=is_after_known)
        for planned in prepared.plan
    )
    return PatchResult(
        status=status,
        operation_id=operation_id,
        files=prepared.files,
        changes=() if status == "unknown" else changes,
        summary=prepared.summary,
        diff=prepared.diff if request.check_only else None,
        diff_truncated=prepared.is_diff_truncated if request.check_only else None,
        warnings=prepared.notices,
        error=ResultError(code=fault.code.value, message=fault.message) if fault else None,
        findings=outcome.findings if outcome else (),
        reverts=request.reverts,
    )


async def _try_append(world: World, append: Append, caller: Caller) -> bool:
    """Append; return False on a version conflict, when the story has to be decided again."""
    try:
        await world.log.append(append, caller)
    except VersionConflictError:
        return False
    return True
