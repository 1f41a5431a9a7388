"""Applying an action: its staged edits as a patch, or its callback and then, as one operation, what that has staged.

Either way the operation is like any other: planned against the files as they are, written all or nothing, recorded,
undone by operation_revert. Source: decisions 15, 31; event catalogue, sections 4 and 5.
"""

from collections.abc import Callable

from codespace_es.aggregates.operation import OperationSource
from codespace_es.aggregates.pending.events import EDITS_HANDLER, PendingActionPushed
from codespace_es.command_handlers.calling_back import answer_from_log, begin_effect, call_back, end_resolve, said_by
from codespace_es.command_handlers.concluding import Applied, NotApplied, ResolvedAction, Said, apply_failed
from codespace_es.command_handlers.consuming import BLOCKED_CODES
from codespace_es.command_handlers.editing import plan_staged
from codespace_es.command_handlers.patching import preview_patches
from codespace_es.command_handlers.resolve_request import Resolve
from codespace_es.command_handlers.staging import extra_body
from codespace_es.command_handlers.writing import PatchRequest, PreparedPatch, write_patch
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.tool_host import ActionCall, CallbackLostError, CallbackRaisedError
from codespace_es.ports.world import World
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.fingerprint import canonical_json, fingerprint


async def apply(world: World, resolve: Resolve) -> ResolveResult:
    """Return what applying the action came to.

    Raises:
        CodespaceError: STALE_PREVIEW, APPLY_FAILED with its `outcome`; WORKSPACE_BUSY, RESOURCE_QUEUE_FULL with nothing
            done; NO_PENDING_ACTION, PENDING_ACTION_MISMATCH if it is on top no more.
    """
    if resolve.action.handler == EDITS_HANDLER:
        session, action = resolve.session, resolve.action
        return await _write(world, resolve, lambda: plan_staged(world, session, action), {}, is_begun=False)
    return await call_back(world, resolve, lambda call: _apply_by_callback(world, resolve, call))


async def _write(
    world: World, resolve: Resolve, prepare: Callable[[], PreparedPatch], more: dict[str, object], *,
    is_begun: bool, said: Said | None = None,
) -> ResolveResult:
    """Write as one operation, which ends the resolve in its own append, and return what the log says then."""
    session, action, command = resolve.session, resolve.action, resolve.command
    assert resolve.effect_id is not None, "an apply has the id of its operation"
    source = _source_of(action)
    request = PatchRequest(
        workspace=session.workspace,
        source=source,
        source_tool_name=action.source_tool_name if source == "custom_tool" else None,
        fingerprint=fingerprint(workspace=session.workspace.key, action_id=action.action_id, **more),
        request=canonical_json({"action_id": action.action_id, "label": action.label, **more}),
        prepare=prepare,
        work_id=session.work_id,
        resumed=resolve.resumed,
        resolves=ResolvedAction(
            session.stream_id, action.action_id, resolve.effect_id, command.reason,
            None if command.extra is None else extra_body(session.stream_id, command.extra), is_begun, said,
        ),
    )
    try:
        await write_patch(world, request, resolve.caller)
    except CodespaceError as error:
        return await answer_from_log(world, resolve, otherwise=error)
    return await answer_from_log(world, resolve)


def _source_of(action: PendingActionPushed) -> OperationSource:
    """Return what the operation comes from; a callback is a custom tool's, whatever name it gives itself."""
    is_own = action.handler == EDITS_HANDLER and action.source_tool_name == "ast_edit"
    return "ast_edit" if is_own else "custom_tool"


# By a callback


async def _apply_by_callback(world: World, resolve: Resolve, call: ActionCall) -> ResolveResult:
    """Return what the callback, and writing what it has staged, came to."""
    try:
        returned = await world.tool_host.apply(call)
    except CallbackRaisedError as error:
        return await end_resolve(world, resolve, _end_of_raise(call, error))
    world.faults(FaultPoint.CALLBACK_RETURNED)
    said = said_by(returned)
    if returned.is_error:
        return await end_resolve(world, resolve, NotApplied(apply_failed(returned.text), "failed"))
    if not returned.patches:
        return await end_resolve(world, resolve, Applied(said))
    if returned.is_external:
        await begin_effect(world, resolve.session, call.action_id, resolve.caller)
    try:
        return await _write(
            world, resolve,
            lambda: preview_patches(
                world, resolve.session.workspace, returned.patches, returned.expected_versions
            ),
            {"patches": list(returned.patches)}, is_begun=True, said=said,
        )
    except CodespaceError as error:
        if error.code not in BLOCKED_CODES:
            raise
        return await end_resolve(world, resolve, NotApplied(error, "returned"))


def _end_of_raise(call: ActionCall, error: CallbackRaisedError) -> NotApplied:
    if isinstance(error, CallbackLostError) and call.handler is None:
        return NotApplied(apply_failed(error.message), "orphaned")
    return NotApplied(apply_failed(error.message), "failed" if error.is_external else "returned")
