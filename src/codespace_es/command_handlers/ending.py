"""How an operation ends: what the disk says is appended, together with all that ends with it.

Two ways lead here. The patch writer has come back and says what it did; or a minted operation was found open, its
owner dead or its effect escaped, and its files are first brought to one side by their hashes. Nothing is ever applied
by the second. Source: event catalogue, sections 4 and 5; the recovery table of the reliability paper.
"""

from anyio import from_thread, to_thread

from codespace_es.aggregates.operation import (
    OPERATION,
    FinishOperation,
    MarkReverted,
    OperationFinished,
    OperationMinted,
)
from codespace_es.command_handlers.concluding import Said, resolve_ending
from codespace_es.command_handlers.consuming import NOTHING, Outcome, consumption
from codespace_es.folding import fold
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.log import Append, NewBody
from codespace_es.ports.patch_writer import PatchOrder, SettleImpossibleError
from codespace_es.ports.world import World
from codespace_es.projections.operation_status import changes_told
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Digest, Fault
from codespace_es.vocabulary.identifiers import OperationId, StreamId
from codespace_es.vocabulary.patch_result import PatchResult, ResultError
from codespace_es.vocabulary.workspace import Workspace

_UNSEEN = "Its host was declared lost before it was finished; what its files hold has to be looked at there."


def order_of(operation_id: OperationId, minted: OperationMinted, root: str, world: World) -> PatchOrder:
    """Return what the patch writer needs to know of a minted operation; images come from the body store."""
    images: dict[Digest, bytes] = {}

    def image(digest: Digest) -> bytes:
        if digest not in images:
            content = from_thread.run(world.log.read_body, StreamId(operation_id), digest)
            if content is None:
                raise LookupError(f"The image {digest} was pruned.")
            images[digest] = content
        return images[digest]

    return PatchOrder(
        operation_id=operation_id,
        root=root,
        plan=minted.plan,
        made_directories=minted.made_directories,
        image=image,
        removed_directories=minted.removed_directories,
    )


async def append_end(
    world: World, minted: OperationMinted, finished: OperationFinished, result: PatchResult, caller: Caller,
    *, said: Said | None = None,
) -> None:
    """Append the end of the operation that `result` tells of, with the answer that every repeat will get.

    An undo that was applied marks what it has undone, a pending action is resolved and a hold is consumed, in the same
    append. `said` is what the callback of the action returned.
    """
    operation_id = OperationId(result.operation_id)
    stored = NewBody(StreamId(operation_id), "result", result.to_stored())
    finished = finished.model_copy(update={"result": stored.body})
    events = (await fold(world.log, OPERATION, operation_id)).decide(FinishOperation(finished))
    for undone in minted.undone if finished.status == "applied" else ():
        events += (await fold(world.log, OPERATION, undone)).decide(MarkReverted(operation_id))
    resolve = await resolve_ending(world, minted, finished, result, said)
    action = NOTHING if resolve is None else resolve.part
    outcome = Outcome(operation_id, result=stored.content) if resolve is None else resolve.outcome
    hold = await consumption(world.log, minted.approval_id, outcome)
    append = Append(
        (*events, *action.events, *hold.events), (stored, *action.bodies, *hold.bodies), hold.scrubbed
    )
    await world.log.append(append, caller)


async def close_operation(
    world: World, operation_id: OperationId, minted: OperationMinted, workspace: Workspace, caller: Caller
) -> None:
    """Bring the files of an open operation to one side or the other, then append what the disk says.

    The workspace's lease is in hand, and the owner is dead or is this instance.

    Raises:
        CodespaceError: WORKSPACE_BUSY if the files can't be brought back now; it stays open, to be tried again.
    """
    order = order_of(operation_id, minted, workspace.root, world)
    try:
        outcome = await to_thread.run_sync(world.patch_writer.settle, order)
    except SettleImpossibleError as error:
        raise unsettled(operation_id, workspace, str(error)) from error
    world.faults(FaultPoint.SETTLE_FILES_DONE)
    finished = OperationFinished(
        status=outcome.status,
        reason="recovered" if outcome.status in ("applied", "failed_rolled_back") else "unknown",
        fault=outcome.fault,
        findings=outcome.findings,
        is_swap_atomic=outcome.is_swap_atomic,
    )
    await append_end(world, minted, finished, _told(operation_id, minted, finished), as_recovery(caller))
    world.faults(FaultPoint.SETTLE_CLOSED)


async def close_unseen(
    world: World, operation_id: OperationId, minted: OperationMinted, caller: Caller
) -> None:
    """Close an open operation of a host that is lost. Its server is shut out.

    Nobody can look at its files, so there are no findings, only the fault that says so.
    """
    fault = Fault(code=ErrorCode.FILE_OPERATION_FAILED, message=_UNSEEN)
    finished = OperationFinished(status="unknown", reason="unknown", fault=fault, is_swap_atomic=False)
    await append_end(world, minted, finished, _told(operation_id, minted, finished), as_recovery(caller))


def unsettled(operation_id: OperationId, workspace: Workspace, reason: str) -> CodespaceError:
    """Return the refusal of whatever would build on files that an open operation may have left half-way."""
    return CodespaceError(
        ErrorCode.WORKSPACE_BUSY,
        f"Operation {operation_id} in workspace {workspace.workspace_id!r} has to be settled first: {reason}.",
        detail={"open_operation_id": operation_id},  # not of this call: for that nothing was minted
    )


def _told(operation_id: OperationId, minted: OperationMinted, finished: OperationFinished) -> PatchResult:
    """Return how the end of a settled operation is told."""
    fault = finished.fault
    return PatchResult(
        status=finished.status,
        operation_id=operation_id,
        reason=finished.reason,
        files=tuple(planned.path for planned in minted.plan),
        changes=changes_told(minted, finished),
        error=ResultError(code=fault.code.value, message=fault.message) if fault else None,
        findings=finished.findings,
        reverts=minted.reverts,
        also_reverts=minted.also_reverts,
    )


def as_recovery(caller: Caller) -> Caller:
    """Return who speaks when something is settled on the way to answering `caller`."""
    return Caller("recovery", caller.request_id, caller.client)
