"""`log`: the timeline in pages, filtered, and followed while servers write."""

from datetime import UTC, datetime
from functools import partial

import click

from adapters.cli.entries import print_entries
from adapters.cli.following import follow
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import print_json
from adapters.cli.reading import open_log, whole_id
from adapters.settings.load import Settings
from codespace_es.projections.timeline import TimelineEntry
from replay.timeline import Page, Timeline, Wanted


def _read_time(_context: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    """Return the time that a text names, UTC unless it says otherwise. Raises BadParameter."""
    if value is None:
        return None
    try:
        time_of = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter("write a time such as 2026-01-31T12:00:00Z") from error
    return time_of if time_of.tzinfo is not None else time_of.replace(tzinfo=UTC)


@click.command()
@click.option("--after", type=click.IntRange(min=0), metavar="POSITION",
              help="Begin behind this position. Without it: the newest events.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, metavar="NUMBER",
              help="Events on a page.")
@click.option("--follow", "is_following", is_flag=True, help="Go on with new events until interrupted.")
@click.option("--workspace", "workspace", metavar="ID", help="Only this workspace: its name or its key.")
@click.option("--work", metavar="ID", help="Only events of this work and of what was done in it.")
@click.option("--operation", metavar="ID", help="Only events of this operation, or that name it; any other id as well.")
@click.option("--process", metavar="ID", help="Only events of this command, or that name it.")
@click.option("--approval", metavar="ID", help="Only events of this hold, and of what it led to.")
@click.option("--kind", metavar="TOPIC", help="Only this topic or what begins with it, such as operation.finished.")
@click.option("--session", metavar="ID", help="Only one server (inst-...), or clients whose name begins with this.")
@click.option("--since", callback=_read_time, metavar="TIME", help="Only what was recorded at this time or later.")
@click.option("--until", callback=_read_time, metavar="TIME", help="Only what was recorded before this time.")
@click.option("--text", metavar="TEXT", help="Only events that hold this text.")
@as_json
@settings_of_log
def log(
    settings: Settings,
    *,
    after: int | None,
    limit: int,
    is_following: bool,
    workspace: str | None,
    work: str | None,
    operation: str | None,
    process: str | None,
    approval: str | None,
    kind: str | None,
    session: str | None,
    since: datetime | None,
    until: datetime | None,
    text: str | None,
    is_json: bool,
) -> None:
    """Read the event log, one sentence an event.

    Piped, each line has position, time, stream, topic, channel and sentence, separated by tabs; with --json one JSON
    object a line. Where more events follow, the next page's --after stands on stderr. The beginning of an id will do
    where no other begins like it. --follow waits for a database that is away, and says so on stderr.
    """
    is_instance = session is not None and session.startswith("inst-")
    with open_log(settings) as source:
        wanted = Wanted(
            workspace=workspace,
            things=tuple(whole_id(source, each) for each in (work, operation, process, approval) if each is not None),
            topic=kind,
            instance=whole_id(source, session) if session is not None and is_instance else None,
            client=None if is_instance else session,
            since=since,
            until=until,
            text=text,
        )
        timeline = Timeline(source)
        newest = source.head()
        if after is None:
            page = timeline.read_newest(wanted, limit=limit)
        else:
            page = timeline.read(wanted, after=after, limit=limit)
        _print(page.entries, is_json=is_json)
        if not is_following and after is not None and page.next_after is not None:
            click.echo(f"More follows: --after {page.next_after}", err=True)
    if is_following:
        shown = partial(_print, is_json=is_json)
        follow(settings, wanted, after=_end_of(page, after or 0), newest=newest, show=shown)


def _end_of(page: Page, otherwise: int) -> int:
    if page.next_after is not None:
        return page.next_after
    return page.entries[-1].position if page.entries else otherwise


def _print(entries: tuple[TimelineEntry, ...], *, is_json: bool) -> None:
    if is_json:
        for entry in entries:
            print_json(entry, is_line=True)
    else:
        print_entries(entries)
