"""Adding to an answer what its caller should know beside it. A hint that can't be made is left out.

Which workspace a call is about: the one it names, else that of the process it names.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from codespace_es.aggregates.process import Exited, Running
from codespace_es.command_handlers.choosing import Named, guess, placed
from codespace_es.command_handlers.orphaning import settled_stack
from codespace_es.command_handlers.processes import process_now
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.resuming import ResumeOperation, ResumeResult
from codespace_es.command_handlers.steering_streams import steering_now
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, UnknownTopicError
from codespace_es.ports.world import World
from codespace_es.projections import hints
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.answer import Answer, Command, Coordination, Notice, PendingHint
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import pending_stream, steering_stream
from codespace_es.vocabulary.workspace import Workspace

Call = Command | Mapping[str, Any]
"""What was asked, as a command or, where it couldn't be understood, as it came."""

_UNREADABLE = (StoreUnavailableError, UnknownTopicError, InstanceClosedError)


async def with_hints(world: World, command: Command, answer: Answer, caller: Caller) -> Answer:
    """Return `answer` with the hints that belong to it, if there are any.

    The command is done by now, so a log that can't be read costs the hints and never the answer.
    """
    try:
        workspace = await _workspace_of(world, command)
        more = {
            "coordination": await _coordination(world, command, workspace),
            "pending_actions": await _pending(world, command, workspace, caller, acted_on=_acted_on(answer)),
        }
    except _UNREADABLE:
        return answer
    remarks = _remarks(world, command, workspace)
    given: dict[str, Any] = {name: hint for name, hint in more.items() if hint is not None}
    if remarks:
        given["warnings"] = (*answer.warnings, *remarks)
    return answer.model_copy(update=given) if given else answer


async def add_pending(world: World, call: Call, error: CodespaceError, caller: Caller) -> None:
    """Have a refusal tell what is pending, too; of a call that couldn't be understood, by the names it has."""
    with suppress(*_UNREADABLE):
        workspace = await _workspace_of(world, call)
        acted_on = error.detail.get("id") if isinstance(call, ResolveAction | ResumeOperation) else None
        error.pending_actions = await _pending(world, call, workspace, caller, acted_on=acted_on)


async def _coordination(world: World, command: Command, workspace: Workspace | None) -> Coordination | None:
    if workspace is None:
        return None
    steered = await steering_now(world, steering_stream(workspace.key))
    return hints.coordination(steered.state, _work_of(command))


async def _pending(
    world: World, call: Call, workspace: Workspace | None, caller: Caller, *, acted_on: str | None
) -> PendingHint | None:
    """Return what is pending where the call belongs to; where it resolved an action, also that nothing is any more."""
    if caller.channel not in ("mcp", "elicitation"):
        return None
    session = None if acted_on is None else await placed(world, acted_on)
    is_resolve = session is not None
    if session is None:
        session = await guess(world, Named(workspace, _work_of(call)))
    if session is None:
        return None
    stack = await settled_stack(world, session, caller)
    return hints.pending(stack.state, session.workspace, is_told_when_empty=is_resolve)


def _acted_on(answer: Answer) -> str | None:
    """Return the action that a call has resolved."""
    if isinstance(answer, ResumeResult) and answer.resolve is not None:
        return str(answer.resolve["id"])
    return answer.id if isinstance(answer, ResolveResult) else None


def _remarks(world: World, command: Command, workspace: Workspace | None) -> tuple[Notice, ...]:
    """Return what is to be told once of the session's stack; with one client, of every stack that the call may mean."""
    key, work_id = None if workspace is None else workspace.key, _work_of(command)
    is_exact = key is not None and (world.is_shared or work_id is not None)
    if world.is_shared and not is_exact:
        return ()
    stream_id = pending_stream(key, work_id) if is_exact and key is not None else None
    return world.remarks.take(workspace_key=key, stream_id=stream_id)


def _work_of(call: Call) -> str | None:
    return _named(call, "work_id")


def _named(call: Call, name: str) -> str | None:
    value = call.get(name) if isinstance(call, Mapping) else getattr(call, name, None)
    return value if isinstance(value, str) else None


async def _workspace_of(world: World, call: Call) -> Workspace | None:
    workspace = world.workspaces.get(_named(call, "workspace_id") or "")
    if workspace is not None:
        return workspace
    process_id = _named(call, "process_id")
    if process_id is None or not process_id.startswith("proc-"):  # an invented one may name a stream of another kind
        return None
    state = (await process_now(world, process_id)).state
    key = state.spawned.request.workspace_key if isinstance(state, Running | Exited) else None
    return next((each for each in world.workspaces.values() if each.key == key), None)
