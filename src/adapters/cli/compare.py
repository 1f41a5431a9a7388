"""`compare`: would today's code have decided as the log says?"""

import click

from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import print_json, print_pairs, print_row
from adapters.cli.reading import open_log
from adapters.cli.watching import watched
from adapters.settings.load import Settings
from replay.compare import Comparison
from replay.compare import compare as compare_log


@click.command()
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="POSITION", help="Begin behind this position.")
@as_json
@settings_of_log
def compare(settings: Settings, *, after: int, is_json: bool) -> int:
    """Decide again, with this version, what the log says was decided.

    Every event has to follow from the state before it, and every patch, planned again on the recorded files, has to
    give the recorded plan. Run it before an upgrade goes live, on a copy of the log. Exit codes: 0 the past would be
    the same; 1 it would differ; 2 the log can't be opened, or a newer version has written to it.
    """
    with open_log(settings) as source, watched(source) as log:
        comparison = compare_log(log, after=after)
    if is_json:
        print_json(comparison)
    else:
        _print(comparison)
    return 0 if comparison.is_same else 1


def _print(comparison: Comparison) -> None:
    print_pairs([
        ("verdict", "the past would be the same" if comparison.is_same else "THE PAST WOULD DIFFER"),
        ("events", f"{comparison.decided:,} of {comparison.events:,} decided again"),
        ("patches", f"{comparison.planned:,} planned again"),
        *((f"not again, {count:,}", reason) for reason, count in comparison.undecidable.items()),
        ("differences", comparison.differing),
    ])
    for each in comparison.differences:
        print_row(f"position {each.position}", each.stream_id, each.topic, each.today)
