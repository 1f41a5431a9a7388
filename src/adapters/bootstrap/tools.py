"""The operator's tools: what they have around them, and what becomes of what they staged once their process is gone."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from adapters.bootstrap.instance import Transport
from adapters.settings.load import Settings
from adapters.tool_host.custom_tools import HostedTools, Surroundings, open_custom_tools
from adapters.tool_host.sources import find_sources
from codespace_es.command_handlers.instance_life import quiet_caller
from codespace_es.command_handlers.orphaning import orphan_actions
from codespace_es.command_handlers.stacks import Session
from codespace_es.ports.custom_tools import OrphanedAction
from codespace_es.ports.world import World
from codespace_es.vocabulary.identifiers import ActionId


@asynccontextmanager
async def open_tools(settings: Settings, transport: Transport) -> AsyncIterator[HostedTools | None]:
    """Have the operator's tools, for a server; a command line calls none."""
    if transport == "cli":
        yield None
        return
    async with open_custom_tools(tools_of(settings)) as tools:
        yield tools


def tools_of(settings: Settings) -> Surroundings:
    """Return what the operator's tools have around them."""
    from adapters.mcp_server.tool_catalogue import TOOLS

    return Surroundings(
        find_sources=lambda: find_sources(settings.data_directory, settings.custom_tools),
        roots=tuple(workspace.root for workspace in settings.workspaces.values()),
        reserved=frozenset(TOOLS),
    )


async def orphan(world: World, orphans: Sequence[OrphanedAction]) -> None:
    """Pop the pending actions whose callbacks are gone with their process."""
    for orphan in orphans:
        session = Session(world.workspaces[orphan.workspace_id], orphan.work_id)
        await orphan_actions(world, session, [ActionId(orphan.action_id)], quiet_caller(world))
