"""`diff A..B`: what changed between two moments."""

import click

from adapters.cli.moments import range_in
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import clean_lines, print_diff, print_heading, print_json, print_pairs, print_row
from adapters.cli.reading import open_log
from adapters.cli.watching import watched
from adapters.settings.load import Settings
from replay.difference import Difference, difference


@click.command()
@click.argument("moments", metavar="A..B")
@click.option("--files", "is_files", is_flag=True, help="Print only the files' diffs, as one patch.")
@as_json
@settings_of_log
def diff(settings: Settings, *, moments: str, is_files: bool, is_json: bool) -> int:
    """Tell what changed between two moments: events, streams and files.

    A and B are positions, times, ids, ID@VERSION or operation keys; A alone is left out for the beginning of the log,
    B for its end. What was recorded at A isn't part of it, what was recorded at B is. Exit codes: 0 told; 2 there are
    no such moments.
    """
    with open_log(settings) as source:
        moved = range_in(source, moments)
        with watched(source) as log:
            found = difference(log, *moved)
    if is_json:
        print_json(found)
        return 0
    if not is_files:
        _print_streams(found)
    for file in found.files:
        if not is_files:
            print_heading(f"{file.path} in {file.workspace_id}  {file.summary or ''}")
        print_diff(file.diff or "")
        for note in file.notes:
            click.echo(" ".join(clean_lines(note)), err=is_files)
    return 0


def _print_streams(found: Difference) -> None:
    print_pairs([
        ("from", found.begin), ("to", found.end), ("events", sum(found.topics.values())), ("files", len(found.files)),
        *found.topics.items(),
    ])
    if found.streams:
        print_heading("Streams")
    for stream in found.streams:
        print_row(stream.stream_id, f"{stream.before or 'nothing'} -> {stream.after}", f"{stream.events} events")
