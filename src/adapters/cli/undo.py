"""`undo ID`: the operator undoes an operation, through the same door as everybody else."""

from functools import partial

import anyio
import click

from adapters.cli.options import as_json, settings_of_workspaces
from adapters.cli.output import clean_lines, print_json, print_pairs
from adapters.cli.reading import open_log
from adapters.cli.recorded import with_recorded_workspace
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from codespace_es.aggregates.claim import ClaimTaken
from codespace_es.aggregates.operation import OperationMinted
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId, StreamId, WorkspaceKey, claim_stream
from codespace_es.vocabulary.patch_result import PatchResult


@click.command()
@click.argument("identifier", metavar="ID")
@click.option("--check", "is_check", is_flag=True, help="Tell what would change and write nothing.")
@as_json
@settings_of_workspaces
def undo(settings: Settings, *, identifier: str, is_check: bool, is_json: bool) -> int:
    """Undo an applied operation; ID is its id or the key that its caller chose.

    It works while every file is still as the operation left it, and is an operation of its own, so it can be undone
    too. Without a configured workspace the directory on record is used: whoever may read the log may undo. Exit codes:
    0 undone (or checked); 1 refused or failed.
    """
    with open_log(settings) as source:
        operation_id = _named_operation(source, identifier)
        key = _workspace_of(source, operation_id)
        if key is not None and not settings.workspaces:
            settings = with_recorded_workspace(settings, source, key)
    command = RevertOperation(operation_id=operation_id, check_only=is_check)
    result = anyio.run(partial(_undo, settings, command))
    if is_json:
        print_json(result.to_wire())
    else:
        _print(result)
    return 0 if result.status in ("applied", "checked") else 1


async def _undo(settings: Settings, command: RevertOperation) -> PatchResult:
    from adapters.bootstrap import open_codespace

    async with open_codespace(settings, transport="cli") as opened:
        caller = Caller("cli", RequestId(f"req-{opened.world.ids.uuid()}"), "codespace-es undo")
        answer = await opened.codespace.handle(command, caller)
    assert isinstance(answer, PatchResult)
    return answer


def _named_operation(source: LogReader, identifier: str) -> str:
    """Return the operation that `identifier` is or, as an operation key, belongs to; else `identifier` itself."""
    for recorded in source.read_stream(claim_stream("operation_key", identifier)):
        if isinstance(recorded.event, ClaimTaken):
            return recorded.event.holder_id
    return identifier


def _workspace_of(source: LogReader, operation_id: str) -> WorkspaceKey | None:
    """Return the workspace that an operation changed; None if the log doesn't know it."""
    opening = source.read_stream(StreamId(operation_id))[:1]
    minted = opening[0].event if opening else None
    return minted.workspace_key if isinstance(minted, OperationMinted) else None


def _print(result: PatchResult) -> None:
    pairs: list[tuple[str, object]] = [("status", result.status), ("operation", result.operation_id)]
    pairs += [(change.kind, change.path) for change in result.changes]
    if result.error is not None:
        pairs.append(("error", f"{result.error.code}: {result.error.message}"))
    pairs += [("warning", notice.message) for notice in result.warnings]
    print_pairs(pairs)
    for line in clean_lines(result.diff.rstrip("\n")) if result.diff else ():
        click.echo(line)
