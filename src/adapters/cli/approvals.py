"""`approvals`: the operator sees what is held, and decides."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

import anyio
import click

from adapters.cli.hold_facts import facts_of_hold, moment
from adapters.cli.options import as_json, settings_of_log, settings_of_workspaces
from adapters.cli.output import (
    as_shell_words,
    clean,
    console,
    is_terminal,
    print_diff,
    print_heading,
    print_json,
    print_pairs,
    print_row,
    short_id,
)
from adapters.cli.reading import open_log
from adapters.cli.recorded import with_recorded_workspace
from adapters.clock_and_ids import SystemClock
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from codespace_es.aggregates.approval import APPROVAL, ApprovalCreated, Unheld, is_due
from codespace_es.command_handlers.asking import AskApproval
from codespace_es.command_handlers.deciding import HoldState, ResolveHold
from codespace_es.projections.approval_status import ApprovalReport, arguments_of, project
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId, StreamId


@click.group()
def approvals() -> None:
    """See what waits for a decision, and decide.

    A grant lets a request run once, by its client's operation_resume, if today's configuration still allows it. It
    covers the arguments, not what files say later: `show` tells which have moved on. ID may be the beginning of an id.
    """


@approvals.command("list")
@as_json
@settings_of_log
def list_open(settings: Settings, *, is_json: bool) -> None:
    """List the holds that aren't over.

    Piped, each line has id, state, tool, workspace, when and by whom it was asked for, and what it is, separated by
    tabs.
    """
    with open_log(settings) as source:
        listed = list(_open_holds(source))
    if is_json:
        print_json([each.to_wire() for each in listed])
    elif not is_terminal():
        for each in listed:
            print_row(each.approval_id, each.state, each.tool, each.workspace_id, moment(each.created_at),
                      each.requested_by or "", _purpose(each))
    elif not listed:
        click.echo("Nothing is held.")
    else:
        _print_table(listed)


@approvals.command("show")
@click.argument("identifier", metavar="ID")
@as_json
@settings_of_workspaces
def show_one(settings: Settings, *, identifier: str, is_json: bool) -> None:
    """Tell how a hold stands and what it would do to the files as they are now.

    Exit codes: 0; 1 if there is no such hold.
    """
    settings, approval_id = _located(settings, identifier)
    report = anyio.run(partial(_ask, settings, AskApproval(approval_id=approval_id)))
    assert isinstance(report, ApprovalReport)
    if is_json:
        print_json(report.to_wire())
    else:
        _print_report(report)


@approvals.command("grant")
@click.argument("identifier", metavar="ID")
@click.option("--reason", metavar="TEXT", help="Kept, and shown to whoever asked.")
@as_json
@settings_of_workspaces
def grant_one(settings: Settings, *, identifier: str, reason: str | None, is_json: bool) -> None:
    """Let a held request run, once.

    Nothing runs yet: its client resumes it. Exit codes: 0 granted; 1 it isn't pending any more.
    """
    _decide(settings, identifier, "grant", reason, is_json=is_json)


@approvals.command("deny")
@click.argument("identifier", metavar="ID")
@click.option("--reason", metavar="TEXT", help="Kept, and shown to whoever asked.")
@as_json
@settings_of_workspaces
def deny_one(settings: Settings, *, identifier: str, reason: str | None, is_json: bool) -> None:
    """Refuse a held request, for ever.

    Exit codes: 0 denied; 1 it isn't pending any more.
    """
    _decide(settings, identifier, "deny", reason, is_json=is_json)


def _decide(
    settings: Settings, identifier: str, decision: Literal["grant", "deny"], reason: str | None, *, is_json: bool
) -> None:
    settings, approval_id = _located(settings, identifier)
    command = ResolveHold(approval_id=approval_id, decision=decision, reason=reason)
    state = anyio.run(partial(_ask, settings, command))
    assert isinstance(state, HoldState)
    if is_json:
        print_json(state.to_wire())
    else:
        print_pairs([("approval", state.approval_id), ("state", state.state)])


async def _ask(settings: Settings, command: Command) -> Answer:
    from adapters.bootstrap import open_codespace

    async with open_codespace(settings, transport="cli") as opened:
        caller = Caller("cli", RequestId(f"req-{opened.world.ids.uuid()}"), "codespace-es approvals")
        return await opened.codespace.handle(command, caller)


def _located(settings: Settings, identifier: str) -> tuple[Settings, str]:
    """Return the one hold that `identifier` names or begins, and settings that know its directory, if it is on record.

    Raises:
        CodespaceError: APPROVAL_NOT_FOUND, also if several open holds begin like this.
    """
    with open_log(settings) as source:
        approval_id = _full_name(source, identifier)
        recorded = source.read_stream(StreamId(approval_id))
        created = recorded[0].event if recorded else None
        if isinstance(created, ApprovalCreated) and not settings.workspaces:
            settings = with_recorded_workspace(settings, source, created.workspace_key)
    return settings, approval_id


def _full_name(source: LogReader, identifier: str) -> str:
    if source.read_stream(StreamId(identifier)):
        return identifier
    fitting = [
        item.stream_id for item in source.open_items(kind="approval")
        if item.stream_id.removeprefix("appr-").startswith(identifier.removeprefix("appr-"))
    ]
    if len(fitting) == 1:
        return fitting[0]
    found = f"{len(fitting)} open holds begin with" if fitting else "No hold is called"
    raise CodespaceError(ErrorCode.APPROVAL_NOT_FOUND, f"{found} {identifier[:100]!r}.")


def _open_holds(source: LogReader) -> Iterator[ApprovalReport]:
    """Yield what the log says of each hold that isn't over; one whose time is over is told as expired already."""
    now = SystemClock().now()
    for item in source.open_items(kind="approval"):
        recorded = source.read_stream(item.stream_id)
        report, state = project(recorded), APPROVAL.fold_recorded(recorded)
        assert not isinstance(state, Unheld), "what is open was created"
        if is_due(state, now):
            report = report.model_copy(update={"state": "expired"})
        stored = source.read_body(item.stream_id, state.created.arguments.digest)
        if state.created.tool == "exec_command" and stored is not None:
            report = report.model_copy(update={"command": tuple(arguments_of(stored)["command"])})
        yield report


def _purpose(report: ApprovalReport) -> str:
    """Return what it is about, one line."""
    return report.title if report.command is None else "Run " + as_shell_words(report.command)


def _print_table(listed: list[ApprovalReport]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("id", "", "workspace", "asked", "by", "what"):
        table.add_column(title, overflow="fold")
    colours = {"pending": "yellow", "granted": "green"}
    for each in listed:
        table.add_row(
            short_id(each.approval_id), each.state, clean(each.workspace_id), moment(each.created_at),
            clean(each.requested_by or ""), clean(_purpose(each)), style=colours.get(each.state, "dim"),
        )
    console().print(table)


def _print_report(report: ApprovalReport) -> None:
    moved = [("moved on", path) for path in report.moved_on or ()]
    print_pairs([("approval", report.approval_id), *facts_of_hold(report), *moved])
    if report.preview_error is not None:
        print_pairs([("now", f"{report.preview_error['code']}: {report.preview_error['message']}")])
    if report.diff is not None:
        print_heading("What it would do now")
        print_diff(report.diff)
        if report.diff_truncated:
            click.echo("The diff is cut here.")
    elif report.preview_error is None and report.command is None and report.state in ("pending", "granted", "queued"):
        click.echo("Name its directory by --config or --workspace to see what it would do now.", err=True)
