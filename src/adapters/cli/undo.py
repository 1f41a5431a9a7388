"""`undo ID...`: the operator undoes operations, through the same door as everybody else.

One id is undone at once. Several, or those of a work, are one operation, all or nothing, and are told first.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import partial

import anyio
import click

from adapters.cli.entries import moment
from adapters.cli.options import as_json, settings_of_workspaces
from adapters.cli.output import clean, is_terminal, print_diff, print_json, print_pairs, print_row
from adapters.cli.reading import open_log, whole_id
from adapters.cli.recorded import with_recorded_workspace
from adapters.cli.watching import watched
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from codespace_es.aggregates.claim import ClaimTaken
from codespace_es.aggregates.operation import OperationMinted
from codespace_es.command_handlers.reverting import RevertOperation, RevertOperations
from codespace_es.projections.timeline import project
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import OperationId, RequestId, StreamId, WorkspaceKey, claim_stream
from codespace_es.vocabulary.patch_result import PatchResult
from replay.in_force import WorkDone, work_done

_PATHS_SHOWN_MAX = 8


@click.command()
@click.argument("identifiers", metavar="[ID]...", nargs=-1)
@click.option("--work", "work_id", metavar="WORK", help="All operations of this work that are in force.")
@click.option("--check", "is_check", is_flag=True, help="Tell what would change and write nothing.")
@click.option("--yes", "is_meant", is_flag=True, help="Undo several without asking.")
@as_json
@settings_of_workspaces
def undo(
    settings: Settings, *, identifiers: tuple[str, ...], work_id: str | None, is_check: bool, is_meant: bool,
    is_json: bool,
) -> int:
    """Undo applied operations, several at one blow.

    ID is an operation's id, the beginning of one, or the key that its caller chose. It works while every file is
    still as the operations left it, and is an operation of its own, so it can be undone too. Several are undone
    newest first, all or none of them: what would change is told, and done once that is confirmed, in a terminal by an
    answer, else by --yes. Without a configured workspace the directory on record is used: whoever may read the log
    may undo. Exit codes: 0 undone, or told; 1 refused or failed.
    """
    if bool(identifiers) == (work_id is not None):
        raise click.UsageError("name operations, or a work with --work")
    with open_log(settings) as source:
        work_id = None if work_id is None else whole_id(source, work_id)
        named = tuple(dict.fromkeys(_named_operation(source, each) for each in identifiers))
        with watched(source) as log:
            done = WorkDone(named) if work_id is None else work_done(log, work_id)
        if not done.in_force:
            click.echo(f"codespace-es: Nothing to undo: no operation of work {work_id!r} is in force.", err=True)
            return 1
        told = [row for name in done.in_force for row in _row_of(source, name)]
        key = _workspace_of(source, done.in_force[0])
        if key is not None and not settings.workspaces:
            settings = with_recorded_workspace(settings, source, key)
    if work_id is None and len(named) == 1:
        return _tell(_run(settings, RevertOperation(operation_id=named[0], check_only=is_check)), is_json=is_json)
    command = RevertOperations(operation_id=done.in_force[0], also=done.in_force[1:], check_only=True)
    if not is_meant or is_check:
        preview = _run(settings, command)
        if not is_json:
            _tell_first(told, done)
        is_asked = sys.stdin.isatty() and is_terminal() and not (is_check or is_json)
        exit_code = _tell(preview, is_json=is_json, hint=None if is_check or is_asked else "the same with --yes")
        if not is_asked or not click.confirm("Undo them?"):
            return exit_code
    return _tell(_run(settings, command.model_copy(update={"check_only": False})), is_json=is_json)


def _run(settings: Settings, command: RevertOperation) -> PatchResult:
    return anyio.run(partial(_undo, settings, command))


async def _undo(settings: Settings, command: RevertOperation) -> PatchResult:
    from adapters.bootstrap import open_codespace

    async with open_codespace(settings, transport="cli") as opened:
        caller = Caller("cli", RequestId(f"req-{opened.world.ids.uuid()}"), "codespace-es undo")
        answer = await opened.codespace.handle(command, caller)
    assert isinstance(answer, PatchResult)
    return answer


def _named_operation(source: LogReader, identifier: str) -> OperationId:
    """Return the operation that `identifier` is or, as an operation key, belongs to; else that begins with it."""
    for recorded in source.read_stream(claim_stream("operation_key", identifier)):
        if isinstance(recorded.event, ClaimTaken):
            return OperationId(recorded.event.holder_id)
    return OperationId(whole_id(source, identifier))


def _row_of(source: LogReader, operation_id: OperationId) -> Iterator[tuple[int, OperationId, str, str]]:
    """Yield an operation's position, id, time and what it did, in short; nothing for one that isn't there."""
    for recorded in source.read_stream(StreamId(operation_id))[:1]:
        if isinstance(minted := recorded.event, OperationMinted):
            paths = [row.path for row in minted.plan]
            more = f" and {len(paths) - _PATHS_SHOWN_MAX} more" if len(paths) > _PATHS_SHOWN_MAX else ""
            what = f"{minted.told_source}: {', '.join(paths[:_PATHS_SHOWN_MAX])}{more}"
            yield recorded.position, operation_id, moment(project(recorded)), what


def _workspace_of(source: LogReader, operation_id: str) -> WorkspaceKey | None:
    """Return the workspace that an operation changed; None if the log doesn't know it."""
    opening = source.read_stream(StreamId(operation_id))[:1]
    minted = opening[0].event if opening else None
    return minted.workspace_key if isinstance(minted, OperationMinted) else None


def _tell_first(rows: Iterable[tuple[int, OperationId, str, str]], done: WorkDone) -> None:
    """Print what is to be undone, newest first, and what isn't."""
    for _, operation_id, at, what in sorted(rows, reverse=True):
        print_row("undo", operation_id, at, what)
    for each in done.left_out:
        print_row("left out", each, "undone already, together with operations of other works")
    if done.command_count:
        print_row("left out", f"{done.command_count} commands", "what they changed isn't known, so it stays")


def _tell(result: PatchResult, *, is_json: bool, hint: str | None = None) -> int:
    """Print what came of it; return the exit code."""
    if is_json:
        print_json(result.to_wire())
    else:
        pairs: list[tuple[str, object]] = [("status", result.status), ("operation", result.operation_id)]
        pairs += [(change.kind, change.path) for change in result.changes]
        if result.error is not None:
            pairs.append(("error", f"{result.error.code}: {result.error.message}"))
        pairs += [("warning", clean(notice.message)) for notice in result.warnings]
        pairs += [] if hint is None else [("to do it", hint)]
        print_pairs(pairs)
        print_diff(result.diff or "")
    return 0 if result.status in ("applied", "checked") else 1
