"""Binding: putting on record which directory a workspace's key stands for, with the first thing done in it."""

from codespace_es.aggregates.workspace import WORKSPACE, BindWorkspace, WorkspaceBound
from codespace_es.folding import fold
from codespace_es.ports.log import NewEvent
from codespace_es.ports.world import World
from codespace_es.vocabulary.workspace import Workspace


async def bind(world: World, workspace: Workspace) -> tuple[NewEvent, ...]:
    """Return a `workspace.bound` if its directory isn't on record as it is now. Raises FILE_OPERATION_FAILED."""
    identity = world.files.open(workspace.root).identity()
    binding = WorkspaceBound(
        workspace_id=workspace.workspace_id,
        root=workspace.root,
        machine_id=world.machine_id,
        device=identity.device,
        inode=identity.inode,
    )
    return (await fold(world.log, WORKSPACE, workspace.key)).decide(BindWorkspace(binding))
