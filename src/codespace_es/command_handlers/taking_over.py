"""Taking over a lost host: an operator's word stands where no lock can be asked.

1. Its servers are shut out, one append each: from then on none of them can append, wherever it may still run.
2. What they left open is closed unseen: patches and commands as unknown, since nobody can look at their host; holds
   that were queued wait again; then whoever asks for a stack settles it as with any dead server.

A second call goes on where an interrupted one stopped. What the host's files hold is not touched. Source: decision 5a.
"""

from pydantic import Field

from codespace_es.admission import host_of, host_of_world
from codespace_es.aggregates.instance import (
    INSTANCE,
    InstanceStarted,
    InstanceTakenOver,
    TakeOverInstance,
)
from codespace_es.aggregates.operation import OPERATION, Minted
from codespace_es.command_handlers.ending import as_recovery, close_unseen
from codespace_es.command_handlers.parking import park_if_left
from codespace_es.command_handlers.watching import record_exit
from codespace_es.folding import fold
from codespace_es.ports.log import Append, OpenItem, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ApprovalId, InstanceId, OperationId, ProcessId, StreamId


class TakeOverHost(Command):
    """Declare a host lost."""

    machine_id: str = Field(description="Its machine, as `codespace-es hosts list` names it.")
    reason: str = Field(description="Why it is known to be lost.")


class HostTakenOver(Answer):
    """What was shut out and closed."""

    instances: tuple[str, ...] = Field(description="Servers that can't append any more.")
    operations: tuple[str, ...] = Field(description="Patches that are unknown now.")
    processes: tuple[str, ...] = Field(description="Commands whose end is unknown now.")


async def take_over_host(world: World, command: TakeOverHost, caller: Caller) -> HostTakenOver:
    """Shut out the servers of a lost host and close what they left open.

    Raises:
        CodespaceError: UNAUTHORIZED but for the operator; INVALID_ARGUMENT for a host that has nothing open, or only
            what this very server settles, since the locks can be asked.
    """
    if caller.channel not in ("cli", "web"):
        raise CodespaceError(ErrorCode.UNAUTHORIZED, "Only the operator may declare a host lost.")
    items = await world.log.open_items()
    lost = [each for each in dict.fromkeys(item.instance_id for item in items)
            if await _is_lost(world, each, command.machine_id)]
    if not lost:
        message = f"Nothing is open of a host {command.machine_id[:100]!r}."
        if command.machine_id == world.machine_id:
            message = "This is that host: its servers settle what a dead one of them left."
        raise CodespaceError(ErrorCode.INVALID_ARGUMENT, message, detail={"field": "machine_id"})
    shut_out = [each for each in lost if await _shut_out(world, each, command.reason[:4096], caller)]
    left = [item for item in items if item.instance_id in lost]
    operations = [item.stream_id for item in left if item.kind == "operation" and await _closed(world, item, caller)]
    processes = [item.stream_id for item in left if item.kind == "process"]
    for process_id in processes:
        await record_exit(world, ProcessId(process_id), None, as_recovery(caller))
    for item in await world.log.open_items(kind="approval"):
        await park_if_left(world, ApprovalId(item.stream_id), caller)
    return HostTakenOver(instances=tuple(shut_out), operations=tuple(operations), processes=tuple(processes))


async def _is_lost(world: World, instance_id: InstanceId, machine_id: str) -> bool:
    """Return whether an instance ran on that machine, and no lock that can be asked from here tells of it.

    On this very machine that is one whose directory of locks was deleted, or is another user's.
    """
    recorded = await world.log.read_stream(StreamId(instance_id))
    started = recorded[0].event if recorded else None
    if not isinstance(started, InstanceStarted) or started.machine_id != machine_id:
        return False
    return host_of(started) != host_of_world(world, started)


async def _shut_out(world: World, instance_id: InstanceId, reason: str, caller: Caller) -> bool:
    """End its stream; return whether it was open."""
    while True:
        events = (await fold(world.log, INSTANCE, instance_id)).decide(
            TakeOverInstance(InstanceTakenOver(reason=reason)))
        if not events:
            return False
        try:
            await world.log.append(Append(events), caller)
        except VersionConflictError:
            continue  # it has just recorded a refusal: it lives, and is shut out all the same
        return True


async def _closed(world: World, item: OpenItem, caller: Caller) -> bool:
    operation_id = OperationId(item.stream_id)
    state = (await fold(world.log, OPERATION, operation_id)).state
    if not isinstance(state, Minted):
        return False
    await close_unseen(world, operation_id, state.minted, caller)
    return True
