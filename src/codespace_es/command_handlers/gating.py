"""The gate: where the operator wants previews resolved first, nothing else changes the workspace meanwhile.

It looks at the call's own stack, so one session never stops another; `resolve(discard)` always frees it. Reads, and
what has to do with commands that run already, pass. Source: decision 29; the pending-actions paper, *bias*, 4.
"""

from codespace_es.aggregates.approval import ApprovalCreated
from codespace_es.command_handlers.choosing import own_session
from codespace_es.command_handlers.orphaning import require_appliable_here, settled_stack
from codespace_es.command_handlers.stacks import Session
from codespace_es.ports.world import World
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.workspace import Workspace


async def require_resolved(world: World, workspace: Workspace, work_id: str | None, caller: Caller) -> None:
    """Pass if nothing is pending in the call's session, or the workspace's operator doesn't mind.

    Raises:
        CodespaceError: PENDING_ACTION_UNRESOLVED, with the head and the call to make in its detail.
    """
    if workspace.pending_bias != "require":
        return
    session = await own_session(world, workspace, work_id)
    if session is None:
        return
    unresolved = (await settled_stack(world, session, caller)).state.unresolved
    if not unresolved:
        return
    head = unresolved[-1]
    raise CodespaceError(
        ErrorCode.PENDING_ACTION_UNRESOLVED,
        f'{head.action_id} ({head.label}) is pending, and nothing else may change workspace '
        f'{workspace.workspace_id!r} before it is resolved: call resolve with action "apply" or "discard" and this id.',
        detail={
            "head": {"id": head.action_id, "label": head.label, "source_tool_name": head.source_tool_name},
            "call": {"tool": "resolve", "arguments": {"action": "apply or discard", "id": head.action_id}},
        },
    )


async def require_resumable(world: World, workspace: Workspace, created: ApprovalCreated, caller: Caller) -> None:
    """Pass if a held request may run here and now; what is refused leaves its grant as it is.

    A preview may have to be resolved before it; a hold of `resolve` is what resolves one, where its callback is.

    Raises:
        CodespaceError: PENDING_ACTION_UNRESOLVED; APPLY_FAILED with the outcome `returned`.
    """
    if created.tool != "resolve":
        await require_resolved(world, workspace, created.work_id, caller)
    elif created.action_id is not None:
        await require_appliable_here(world, Session(workspace, created.work_id), created.action_id, caller)
