"""Finding a command by its id: what the log says, its handle if it lives here, and who runs it if that is another.

A command whose server is dead is settled on the way, so nobody is told that it runs. Where that can't be done (its
workspace isn't this server's, is busy, or isn't the directory on record) it is told as it will be: ended, nobody knows
how. Nothing is written for that. Source: decisions 2, 5, 10, 22; contract A5.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anyio import move_on_after
from anyio.lowlevel import checkpoint

from codespace_es.admission import take_dead
from codespace_es.aggregates.process import Exited, NotStarted, Running, Unspawned
from codespace_es.command_handlers.processes import process_now
from codespace_es.command_handlers.settling import settle_when_free
from codespace_es.command_handlers.watching import unknown_exit
from codespace_es.ports.live_processes import Living
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.ports.world import World
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, RecordedEvent
from codespace_es.vocabulary.identifiers import InstanceId, ProcessId

_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Located:
    """A command as it stands now."""

    process_id: ProcessId
    recorded: Sequence[RecordedEvent]
    """Those that tell of it."""
    state: Running | Exited
    living: Living | None
    owner: InstanceId | None
    """Another, living server that runs it; a dead one, if its end isn't on record."""
    is_settled: bool = True
    """False: its server is dead and its end isn't on record, so `state` tells what will be."""

    def require_here(self) -> None:
        """Pass if it has ended, or lives in this server. Raises PROCESS_NOT_FOUND that names its server."""
        if isinstance(self.state, Running) and self.living is None:
            where = f"it belongs to the server {self.owner}" if self.owner else "its start isn't confirmed"
            raise CodespaceError(
                ErrorCode.PROCESS_NOT_FOUND, f"{self.process_id} can't be reached from here: {where}.",
                detail={"process_id": self.process_id},
            )

    def require_running(self) -> Living:
        """Return the way to it. Raises PROCESS_NOT_FOUND, PROCESS_NOT_RUNNING."""
        self.require_here()
        if self.living is None:
            raise CodespaceError(
                ErrorCode.PROCESS_NOT_RUNNING, f"{self.process_id} has ended.", detail={"process_id": self.process_id}
            )
        return self.living


async def locate(world: World, process_id: str, caller: Caller) -> Located:
    """Return the command.

    Raises:
        CodespaceError: PROCESS_NOT_FOUND for one that was never started.
        StoreUnavailableError: it was ended with this server, which couldn't put that on record.
    """
    await checkpoint()  # whoever asks again and again without a pause doesn't hold up what they ask about
    located = await _look(world, process_id)
    is_reachable = located.living is not None or located.owner is not None
    if isinstance(located.state, Running) and not is_reachable and world.live.is_closing:
        raise StoreUnavailableError(f"the end of {located.process_id} can't be put on record")
    if isinstance(located.state, Running) and located.owner is not None:
        is_dead = await _settle_if_dead(world, located, caller)
        located = await _look(world, process_id)
        if is_dead and isinstance(located.state, Running) and located.owner is not None:
            ended = Exited(located.state.spawned, unknown_exit())
            located = replace(located, state=ended, is_settled=False)
    return located


async def _look(world: World, process_id: str) -> Located:
    # First what lives here, then the log: whatever is no longer the one is on record in the other by then.
    living = world.live.find(process_id)
    process = await process_now(world, process_id)
    state, recorded = process.state, process.recorded
    if isinstance(state, NotStarted):
        reason = state.refused.fault.message
        raise CodespaceError(ErrorCode.PROCESS_NOT_FOUND, f"{process_id} was never started: {reason}")
    if isinstance(state, Unspawned):
        raise CodespaceError(ErrorCode.PROCESS_NOT_FOUND, f"No process {process_id[:100]!r} was started.")
    if not isinstance(state, Running):
        return Located(ProcessId(process_id), recorded, state, None, None)
    owner = await _owner(world, state, process_id) if living is None else None
    return Located(ProcessId(process_id), recorded, state, living, owner)


async def _owner(world: World, state: Running, process_id: str) -> InstanceId | None:
    """Return the other server that the log says runs it."""
    items = await world.log.open_items(kind="process", workspace_key=state.spawned.request.workspace_key)
    owners = [item.instance_id for item in items if item.stream_id == process_id]
    return owners[0] if owners and owners[0] != world.instance_id else None


async def _settle_if_dead(world: World, located: Located, caller: Caller) -> bool:
    """Return whether its server is dead; then it was settled if it could be."""
    assert located.owner is not None
    proof_of_death = await take_dead(world, located.owner)
    if proof_of_death is None:
        return False
    proof_of_death.release()
    key = located.state.spawned.request.workspace_key
    workspace = next((each for each in world.workspaces.values() if each.key == key), None)
    if workspace is not None:
        with move_on_after(_PATIENCE_SECONDS):
            await settle_when_free(world, workspace, caller)
    return True
