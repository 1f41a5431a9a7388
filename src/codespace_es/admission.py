"""The order of refusals, once, for every tool: workspace, profile, replay by key; then the lease.

A refusal here leaves no operation behind: nothing was minted for it. Source: contract B1.6, B2.2, B3.1; decision 4.
"""

from collections.abc import Mapping

from codespace_es import policy
from codespace_es.aggregates.claim import CLAIM, ClaimState, Taken, is_repeat
from codespace_es.aggregates.operation import OPERATION, Finished, Minted, Reverted, Unminted
from codespace_es.ports.locks import Held
from codespace_es.ports.log import EventLog
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Digest
from codespace_es.vocabulary.identifiers import OperationId, StreamId, claim_stream
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
            f"No workspace is called {workspace_id!r}; configured: {known}.",
            detail={"workspace_id": workspace_id},
        )
    policy.require(workspace, action)
    return workspace


def require_usable_key(operation_key: str | None) -> None:
    """Pass if `operation_key` can be stored inline.

    Raises:
        CodespaceError: INVALID_ARGUMENT.
    """
    if operation_key is not None and len(operation_key) > limits.OPERATION_KEY_CHARACTERS_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"operation_key has {len(operation_key)} characters; the limit is {limits.OPERATION_KEY_CHARACTERS_MAX}.",
            detail={"field": "operation_key"},
        )


async def read_key(log: EventLog, operation_key: str) -> ClaimState:
    """Return who holds `operation_key`."""
    return CLAIM.fold_recorded(await log.read_stream(claim_stream("operation_key", operation_key)))


async def find_holder(log: EventLog, operation_key: str | None, fingerprint: Digest) -> OperationId | None:
    """Return the operation that this request repeats, None if it is new.

    Raises:
        CodespaceError: OPERATION_KEY_CONFLICT if the key belongs to another request, or to another kind of one.
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
    return OperationId(claim.holder_id)


async def read_operation(log: EventLog, operation_id: str) -> Minted | Finished | Reverted:
    """Return the state of an operation.

    Raises:
        CodespaceError: OPERATION_NOT_FOUND.
    """
    state = OPERATION.fold_recorded(await log.read_stream(StreamId(operation_id)))
    if isinstance(state, Unminted):
        raise CodespaceError(
            ErrorCode.OPERATION_NOT_FOUND, f"No operation {operation_id[:100]!r} is recorded.",
        )
    return state


async def take_lease(world: World, workspace: Workspace, caller: Caller) -> Held:
    """Return the workspace's lease, after those who asked before.

    Raises:
        CodespaceError: WORKSPACE_BUSY at once if a process lives there; RESOURCE_QUEUE_FULL.
    """

    async def refuse_if_process_lives() -> CodespaceError | None:
        live = await world.log.open_items(kind="process", workspace_key=workspace.key)
        if not live:
            return None
        return CodespaceError(
            ErrorCode.WORKSPACE_BUSY,
            f"A process lives in workspace {workspace.workspace_id!r}.",
            detail={"process_id": live[0].stream_id},
        )

    return await world.leases.acquire(workspace.key, refuse=refuse_if_process_lives, on_wait=caller.report_wait)
