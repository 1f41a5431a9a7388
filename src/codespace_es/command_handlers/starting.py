"""Settling at start: every workspace of this server that has something open, then the dead who left nothing else.

Beside the serving, not before it: an answer that depends on something open settles that itself. Source: decision 2;
event catalogue, section 5.
"""

from anyio import sleep, to_thread

from codespace_es.admission import take_dead
from codespace_es.aggregates.instance import InstanceRecovered
from codespace_es.command_handlers.choosing import waiting_stacks
from codespace_es.command_handlers.orphaning import settled_stack
from codespace_es.command_handlers.parking import tidy_holds
from codespace_es.command_handlers.settling import recover_instance, settle_when_free
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.workspace import Workspace

_ENDING_SECONDS = 1.0
"""How long the commands of a dead server may take to end."""

_NOTHING_CLOSED = InstanceRecovered(operations_closed=0, processes_closed=0, resolves_closed=0)


async def settle_at_start(world: World, caller: Caller) -> None:
    """Settle every workspace of this server that has something open, and the dead who left nothing else behind."""
    for workspace in world.workspaces.values():
        if await world.log.open_items(workspace_key=workspace.key, limit=1):
            await tidy_holds(world, workspace.key, caller)
            await settle_when_free(world, workspace, caller)
            await _settle_ending_commands(world, workspace, caller)
            for waiting in await waiting_stacks(world, workspace):
                await settled_stack(world, waiting.session, caller, is_passing=True)
    for item in await world.log.open_items(kind="instance"):
        if item.instance_id == world.instance_id:
            continue
        proof_of_death = await take_dead(world, item.instance_id)
        if proof_of_death is None:
            continue
        try:
            await recover_instance(world, item.instance_id, _NOTHING_CLOSED, caller)
        finally:
            proof_of_death.release()
    # Servers of other logs died here as well, maybe of logs that are gone: nobody will ever ask for their locks.
    await to_thread.run_sync(world.instance_locks.tidy)


async def _settle_ending_commands(world: World, workspace: Workspace, caller: Caller) -> None:
    """Settle again while commands of other servers are open here, a short time: a dead one's may just be ending."""
    started = world.clock.monotonic()
    while world.clock.monotonic() - started < _ENDING_SECONDS:
        items = await world.log.open_items(kind="process", workspace_key=workspace.key)
        if all(item.instance_id == world.instance_id for item in items):
            return
        await sleep(limits.LEASE_POLL_MS_MAX / 1000)
        await settle_when_free(world, workspace, caller)
