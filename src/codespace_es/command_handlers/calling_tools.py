"""A call of a custom tool: admitted as what it says of itself, run apart, and answered with what it returned.

A tool that doesn't call itself read-only may do anything, also what nobody sees: it needs a workspace that may be
written, and waits behind an unresolved preview where the operator wants that. What it asks of the server is judged
again, each by itself (`serving_tools`). Source: decisions 30 to 33.
"""

from typing import Any

from pydantic import Field

from codespace_es.admission import admit, require_usable_work
from codespace_es.command_handlers.gating import require_resolved
from codespace_es.command_handlers.serving_tools import CallServices
from codespace_es.command_handlers.waiting import wait_aloud
from codespace_es.ports.custom_tools import CallSubject
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller


class CallCustomTool(Command):
    """Ask for a custom tool to be run."""

    tool: str = Field(description="Its name.")
    workspace_id: str = Field(description="Workspace to work in.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="As its own schema says.")
    work_id: str | None = Field(default=None, description="The work this belongs to.")


class CustomToolAnswer(Answer):
    """What a custom tool returned."""

    content: str = Field(description="What it says.")
    details: Any = Field(default=None, description="JSON of its own.")
    action_id: str | None = Field(default=None, description="The pending action that it staged last.")
    work_id: str | None = Field(default=None, description="Echo of the call's work_id.")


async def call_custom_tool(world: World, command: CallCustomTool, caller: Caller) -> CustomToolAnswer:
    """Return what the tool returned.

    Raises:
        CodespaceError: WORKSPACE_NOT_FOUND, UNAUTHORIZED, PENDING_ACTION_UNRESOLVED, INVALID_ARGUMENT; TIMEOUT;
            TOOL_FAILED if it raised, said so itself or lost its process; and whatever its code was refused and let
            through.
    """
    require_usable_work(command.work_id)
    catalogue = await world.custom_tools.catalogue()
    found = next((tool for tool in catalogue.tools if tool.name == command.tool), None)
    is_read_only = found is not None and found.is_read_only
    workspace = admit(world.workspaces, command.workspace_id, "read" if is_read_only else "write")
    if not is_read_only:
        await require_resolved(world, workspace, command.work_id, caller)
    subject = CallSubject(
        caller.request_id, command.workspace_id, command.work_id, command.tool, "execute", caller
    )
    services = CallServices(world, subject)
    outcome = await wait_aloud(
        world, caller, command.tool, lambda: world.custom_tools.execute(subject, command.arguments, services)
    )
    if outcome.is_error:
        details = {} if outcome.details is None else {"details": outcome.details}
        raise CodespaceError(ErrorCode.TOOL_FAILED, outcome.content or f"{command.tool} says that it failed.",
                             detail=details)
    lines = [pushed.how_to_resolve for pushed in reversed(services.pushed)]
    notices = tuple(notice for pushed in services.pushed for notice in pushed.notices)
    return CustomToolAnswer(
        content="\n".join([*lines, outcome.content]),
        details=outcome.details,
        action_id=services.pushed[-1].action_id if services.pushed else None,
        work_id=command.work_id,
        warnings=notices[: limits.PATCH_WARNINGS_MAX],
    )
