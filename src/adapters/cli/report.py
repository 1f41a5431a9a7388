"""`report`: what happened, as one HTML page that stands by itself."""

from importlib.metadata import version
from pathlib import Path

import click

from adapters.cli.moments import range_in
from adapters.cli.options import settings_of_log
from adapters.cli.output import print_pairs
from adapters.cli.reading import open_log
from adapters.cli.watching import watched
from adapters.clock_and_ids import SystemClock
from adapters.settings.load import Settings
from adapters.settings.problem import StartupError
from replay.page import page
from replay.report import gather


@click.command()
@click.argument("moments", metavar="[A..B]", default="..")
@click.option("--session", metavar="ID", help="Only one server (inst-...), or clients whose name begins with this.")
@click.option("--output", "file", type=click.Path(path_type=Path), required=True, metavar="FILE",
              help="Where to write.")
@click.option("--force", "is_forced", is_flag=True, help="Replace a file that is there.")
@settings_of_log
def report(settings: Settings, *, moments: str, session: str | None, file: Path, is_forced: bool) -> int:
    """Write what happened as one HTML page: summary, files, patches, commands, approvals, timeline, verification.

    A..B as for `diff`; without it the whole log. The page needs no script and asks nothing of any server, so it can be
    attached to a pull request or an incident. Exit codes: 0 written; 1 written, and the log is damaged; 2 it can't be
    written, or there are no such moments.
    """
    with open_log(settings) as source:
        begin, end = range_in(source, moments)
        with watched(source) as log:
            told = gather(log, begin, end, session=session)
    parts = page(
        told, made_at=f"{SystemClock().now():%Y-%m-%d %H:%M:%S} UTC", software=f"codespace-es {version('codespace-es')}"
    )
    try:
        with file.open("w" if is_forced else "x", encoding="utf-8") as stream:
            stream.writelines(parts)
    except FileExistsError as error:
        raise StartupError(f"{file} is there already; --force replaces it.") from error
    except OSError as error:
        raise StartupError(f"{file} can't be written: {error.strerror or error}.") from error
    print_pairs([
        ("written", file), ("events", told.entry_count), ("operations", told.counts["operation"]),
        ("verdict", "whole and unchanged" if told.verification.is_ok else "DAMAGED"),
    ])
    return 0 if told.verification.is_ok else 1
