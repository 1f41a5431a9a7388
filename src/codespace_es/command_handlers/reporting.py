"""`operation_status`: the truth about an operation. What depends on a dead instance is settled before it is told."""

from anyio import move_on_after
from pydantic import Field

from codespace_es.admission import read_key, read_operation
from codespace_es.aggregates.claim import Taken
from codespace_es.aggregates.operation import Minted
from codespace_es.command_handlers.settling import settle_when_free
from codespace_es.ports.world import World
from codespace_es.projections.operation_status import OperationReport, project
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import StreamId

_PATIENCE_SECONDS = 2.0


class ReportOperation(Command):
    """Ask what became of an operation. Exactly one selector."""

    operation_id: str | None = Field(default=None, description="Its id.")
    operation_key: str | None = Field(default=None, description="Or your key.")


async def report_operation(world: World, command: ReportOperation, caller: Caller) -> OperationReport:
    """Return what is known. Raises INVALID_ARGUMENT, OPERATION_NOT_FOUND."""
    operation_id = await _selected(world, command)
    state = await read_operation(world.log, operation_id)
    if isinstance(state, Minted):
        await _settle_first(world, state, caller)
    return project(await world.log.read_stream(StreamId(operation_id)))


async def _selected(world: World, command: ReportOperation) -> str:
    if (command.operation_id is None) == (command.operation_key is None):
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            "Give exactly one of operation_id and operation_key.",
            detail={"field": "operation_id"},
        )
    if command.operation_id is not None:
        return command.operation_id
    assert command.operation_key is not None
    claim = await read_key(world.log, command.operation_key)
    if not isinstance(claim, Taken):
        raise CodespaceError(
            ErrorCode.OPERATION_NOT_FOUND,
            f"No operation is recorded for operation_key {command.operation_key[:100]!r}.",
        )
    if not claim.holder_id.startswith("op-"):
        raise CodespaceError(
            ErrorCode.OPERATION_NOT_FOUND,
            f"operation_key {command.operation_key[:100]!r} belongs to the command {claim.holder_id}: "
            "ask process_status for it.",
            detail={"process_id": claim.holder_id},
        )
    return claim.holder_id


async def _settle_first(world: World, state: Minted, caller: Caller) -> None:
    """Give an open operation the time to end: its owner writes just now, or is dead and has to be settled.

    Both are over when the workspace's lease is free. What takes longer than `_PATIENCE_SECONDS` is told as it is.
    """
    workspace = next((each for each in world.workspaces.values() if each.key == state.minted.workspace_key), None)
    if workspace is not None:
        with move_on_after(_PATIENCE_SECONDS):
            await settle_when_free(world, workspace, caller)
