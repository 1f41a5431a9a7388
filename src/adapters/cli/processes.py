"""`processes`: the commands that live, or all that ever ran."""

from datetime import UTC, datetime

import click

from adapters.cli.living import as_it_is
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import clean, console, is_terminal, print_json, print_row, short_id
from adapters.cli.reading import open_log
from adapters.settings.load import Settings
from codespace_es.projections.process_status import ProcessReport
from replay.process_story import list_processes


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Also those that have ended.")
@as_json
@settings_of_log
def processes(settings: Settings, *, is_all: bool, is_json: bool) -> None:
    """List the commands that run.

    Read from the log and changing nothing; one whose server was killed is told as unknown until a server has recorded
    that. Piped, each line has id, how it is, when it began, workspace and command line, separated by tabs.
    """
    with open_log(settings) as source:
        listed = [as_it_is(settings, source, each) for each in list_processes(source, is_all=is_all)]
    if is_json:
        print_json([each.model_dump(mode="json", exclude_none=True) for each in listed])
    elif not is_terminal():
        for each in listed:
            print_row(each.process_id, ending(each), _began(each), each.workspace_id, each.command)
    elif not listed:
        click.echo("No command runs." if not is_all else "No command was ever run.")
    else:
        _print_table(listed)


def ending(report: ProcessReport) -> str:
    """Return how a command is or ended, in a few words."""
    if report.termination == "exited":
        return f"exited {report.exit_code}"
    if report.signal is not None:
        return f"signaled {report.signal.name or report.signal.number}"
    return report.termination or "running"


def _began(report: ProcessReport) -> str:
    return datetime.fromtimestamp(report.created_at or 0, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _print_table(listed: list[ProcessReport]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("id", "", "began", "workspace", "command"):
        table.add_column(title, overflow="fold")
    for each in listed:
        table.add_row(short_id(each.process_id), ending(each), _began(each), each.workspace_id or "",
                      clean(each.command or ""))
    console().print(table)
