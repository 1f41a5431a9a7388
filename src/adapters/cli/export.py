"""`export`: the log as lines of JSON on stdout."""

import sys

import click

from adapters.cli.options import settings_of_log
from adapters.cli.output import is_terminal
from adapters.cli.reading import open_log
from adapters.settings.load import Settings
from codespace_es.vocabulary.visible_text import json_spelt_out
from replay.export import cloud_events, json_lines
from replay.spans import otlp_lines


@click.command()
@click.option("--format", "form", type=click.Choice(["jsonl", "cloudevents", "otlp"]), default="jsonl",
              show_default=True,
              help="Our own lines, from which the chain of hashes can be followed; CloudEvents 1.0; or OpenTelemetry "
                   "spans of works, holds, operations and commands.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="POSITION",
              help="Begin behind this position: that of the last line you have.")
@click.option("--bodies", "has_bodies", is_flag=True,
              help="With stored contents, in base64: patch texts, files before and after, answers, output.")
@settings_of_log
def export(settings: Settings, *, form: str, after: int, has_bodies: bool) -> None:
    """Write the event log to stdout, one JSON object a line.

    otlp: each line is a TracesData of the OpenTelemetry protocol, as collectors read it from files and take it at
    /v1/traces; a span is told once it has ended, and its codespace.position is where to go on.

    A content stands before the event that names it, so after an interruption the position of the last event's line is
    where to go on. Nothing is held in memory, and servers may write meanwhile. In a terminal, what it would obey or
    not draw is escaped: the same JSON, but not the bytes that the hashes are of.
    """
    if has_bodies and form == "otlp":
        raise click.UsageError("a span has no room for stored contents: leave out --bodies")
    with open_log(settings) as source:
        if form == "otlp":
            lines = otlp_lines(source, after=after)
        elif form == "cloudevents":
            lines = cloud_events(source, after=after, has_bodies=has_bodies)
        else:
            lines = json_lines(source, after=after, has_bodies=has_bodies)
        for line in map(_visible, lines) if is_terminal() else lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def _visible(line: bytes) -> bytes:
    """Return a line of JSON that says the same, with nothing in it that a terminal would obey."""
    return json_spelt_out(line.decode()).encode()
