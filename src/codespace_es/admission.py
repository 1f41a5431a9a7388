"""The order of refusals, once, for every tool: workspace, profile, replay by key; then the lease.

A refusal here leaves no operation behind: nothing was minted for it. Source: contract B1.6, B2.2, B3.1; decision 4.
"""

from collections.abc import Mapping

from codespace_es import policy
from codespace_es.aggregates.claim import CLAIM, ClaimState, Taken, is_repeat
from codespace_es.aggregates.instance import InstanceStarted
from codespace_es.aggregates.operation import OPERATION, Finished, Minted, OperationFinished, Reverted, Unminted
from codespace_es.ports.locks import Held
from codespace_es.ports.log import EventLog, OpenItem
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Digest
from codespace_es.vocabulary.identifiers import InstanceId, StreamId, claim_stream
from codespace_es.vocabulary.patch_result import PatchResult
from codespace_es.vocabulary.workspace import Workspace


def admit(workspaces: Mapping[str, Workspace], workspace_id: str, action: policy.Action) -> Workspace:
    """Return the workspace called `workspace_id`, if it permits `action`.

    Raises:
        CodespaceError: WORKSPACE_NOT_FOUND, UNAUTHORIZED.
    """
    workspace = workspaces.get(workspace_id)
    if workspace is None:
        known = ", ".join(workspaces) or "none"
        raise CodespaceError(
            ErrorCode.WORKSPACE_NOT_FOUND,
            f"No workspace is called {workspace_id[:100]!r}; configured: {known}.",
            detail={"workspace_id": workspace_id[: limits.LABEL_CHARACTERS_MAX]},
        )
    policy.require(workspace, action)
    return workspace


def require_usable_key(operation_key: str | None) -> None:
    """Pass if `operation_key` can be stored inline.

    Raises:
        CodespaceError: INVALID_ARGUMENT.
    """
    _require_short("operation_key", operation_key, limits.OPERATION_KEY_CHARACTERS_MAX)


def require_usable_work(work_id: str | None) -> None:
    """Pass if `work_id` can be stored inline, whether or not it names a work.

    Raises:
        CodespaceError: INVALID_ARGUMENT.
    """
    _require_short("work_id", work_id, limits.LABEL_CHARACTERS_MAX)


def _require_short(field: str, value: str | None, characters_max: int) -> None:
    if value is not None and len(value) > characters_max:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"{field} has {len(value)} characters; the limit is {characters_max}.",
            detail={"field": field},
        )


async def read_key(log: EventLog, operation_key: str) -> ClaimState:
    """Return who holds `operation_key`."""
    return CLAIM.fold_recorded(await log.read_stream(claim_stream("operation_key", operation_key)))


async def find_replay(
    log: EventLog, operation_key: str | None, fingerprint: Digest, *, work_id: str | None, is_leased: bool
) -> PatchResult | None:
    """Return the stored answer of the operation that a request repeats; None if it has to run, or to wait its turn.

    A finished key is answered without a lease, since that changes nothing. One that isn't finished is in somebody's
    hands: it waits for the lease, and with the lease it was settled just now, or its outcome isn't established.

    Raises:
        CodespaceError: the stored refusal again, with its `operation_id`; or OPERATION_KEY_CONFLICT if the key belongs
            to another request.
    """
    if operation_key is None:
        return None
    claim = await read_key(log, operation_key)
    if not isinstance(claim, Taken):
        return None
    if not is_repeat(claim, fingerprint) or not claim.holder_id.startswith("op-"):
        raise CodespaceError(
            ErrorCode.OPERATION_KEY_CONFLICT,
            f"operation_key {operation_key[:100]!r} was used for another request.",
            detail={"field": "operation_key"},
        )
    state = await read_operation(log, claim.holder_id)
    if isinstance(state, Minted):
        if not is_leased:
            return None
        return PatchResult(status="unknown", operation_id=claim.holder_id, replayed=True, work_id=work_id)
    return await _stored_answer(log, claim.holder_id, state.finished, work_id)


async def _stored_answer(
    log: EventLog, operation_id: str, finished: OperationFinished, work_id: str | None
) -> PatchResult:
    """Return the answer that was given. Raises the error that was given."""
    if finished.result is None:
        assert finished.fault is not None, "an end is a result or a fault"
        raise finished.fault.to_error().with_detail(operation_id=operation_id)
    stored = await log.read_body(StreamId(operation_id), finished.result.digest)
    if stored is not None:
        return PatchResult.from_stored(stored, work_id=work_id)
    pruned = Notice(kind="result_pruned", message="The stored answer was pruned: operation_status says what is left.")
    return PatchResult(
        status=finished.status, operation_id=operation_id, replayed=True, work_id=work_id, warnings=(pruned,)
    )


async def read_operation(log: EventLog, operation_id: str) -> Minted | Finished | Reverted:
    """Return the state of an operation.

    Raises:
        CodespaceError: OPERATION_NOT_FOUND.
    """
    is_operation = operation_id.startswith("op-")  # every other id may name a stream of another kind
    state = OPERATION.fold_recorded(await log.read_stream(StreamId(operation_id)) if is_operation else ())
    if isinstance(state, Unminted):
        raise CodespaceError(
            ErrorCode.OPERATION_NOT_FOUND, f"No operation {operation_id[:100]!r} is recorded.",
        )
    return state


async def take_lease(world: World, workspace: Workspace, caller: Caller) -> Held:
    """Return the workspace's lease, after those who asked before.

    Raises:
        CodespaceError: WORKSPACE_BUSY at once if a process lives there; RESOURCE_QUEUE_FULL; SERVER_SHUTTING_DOWN.
    """

    async def refuse_if_process_lives() -> CodespaceError | None:
        if world.live.is_closing:
            return ending_refusal()
        if workspace.live_process == "shared":
            return None
        for item in await world.log.open_items(kind="process", workspace_key=workspace.key):
            if await _holds(world, item):
                return CodespaceError(
                    ErrorCode.WORKSPACE_BUSY,
                    f"{item.stream_id} lives in workspace {workspace.workspace_id!r}.",
                    detail={"process_id": item.stream_id},
                )
        return None

    lease = await world.leases.acquire(
        workspace.key, refuse=refuse_if_process_lives,
        on_wait=lambda seconds: caller.report_wait(seconds, "the workspace"),
    )
    if world.live.is_closing:  # the end of a command has let the next in the queue have it
        lease.release()
        raise ending_refusal()
    return lease


def ending_refusal() -> CodespaceError:
    """Return how a server that is ending refuses what hasn't begun."""
    return CodespaceError(ErrorCode.SERVER_SHUTTING_DOWN, "The server is ending: nothing was done.")


async def _holds(world: World, item: OpenItem) -> bool:
    """Return whether a process keeps its workspace for longer than a moment.

    One of ours whose leader has exited doesn't: what is left of its tree is given a second, and `process_status` says
    `exited` already, so whoever comes now waits that out instead of being refused.
    """
    if item.instance_id != world.instance_id:
        return await lives(world, item.instance_id)
    living = world.live.find(item.stream_id)
    return living is None or living.handle.leader_status is None


async def take_dead(world: World, instance_id: InstanceId) -> Held | None:
    """Return the lock of a dead instance, the proof of its death; None while it lives, or may live on another host.

    Only the host that has its lock can tell. One that was declared dead can't append any more, wherever it is.
    """
    started = await started_of(world.log, instance_id)
    if started is not None and host_of(started) != host_of_world(world, started):
        return None
    return world.instance_locks.try_take(instance_id)


async def lives(world: World, instance_id: InstanceId) -> bool:
    """Return whether another instance lives, or may. What a dead one has left is settled once the lease is in hand."""
    proof_of_death = await take_dead(world, instance_id)
    if proof_of_death is None:
        return True
    proof_of_death.release()
    return False


async def started_of(log: EventLog, instance_id: InstanceId) -> InstanceStarted | None:
    """Return how an instance that may append has begun; None for any other."""
    for item in await log.open_items(kind="instance", instance_id=instance_id):
        async for recorded in log.read_log(after=item.position - 1, limit=1):
            if isinstance(recorded.event, InstanceStarted):
                return recorded.event
    return None


def host_of(started: InstanceStarted) -> tuple[str, str | None]:
    """Return what names the host of an instance: its machine and the directory of its lock."""
    return started.machine_id, started.lock_directory


def host_of_world(world: World, started: InstanceStarted) -> tuple[str, str | None]:
    """Return what would name this host, had `started` been written here: older events don't tell the directory."""
    return world.machine_id, None if started.lock_directory is None else world.instance_locks.directory_id()

