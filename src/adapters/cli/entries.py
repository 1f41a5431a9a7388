"""Printing events of the timeline, the same in `log`, `show` and `demo`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from adapters.cli.output import clean, console, is_terminal, print_row, short_id

if TYPE_CHECKING:
    from rich.table import Table

    from codespace_es.projections.timeline import TimelineEntry

_STYLES = {
    "operation": "green", "approval": "green", "instance": "blue", "workspace": "cyan", "claim": "magenta",
    "store": "yellow",
}
_BAD_SIGNS = ("refused", "failed", "unknown", "dead")


def print_entries(entries: Iterable["TimelineEntry"]) -> None:
    """Print one event a line: position, time, stream, topic, who spoke, sentence; shorter in a terminal."""
    if not is_terminal():
        for entry in entries:
            print_row(entry.position, moment(entry), entry.stream_id, entry.topic, entry.channel, entry.summary)
        return
    table = entry_table(entries)
    if table.row_count:
        console().print(table)


def entry_table(entries: Iterable["TimelineEntry"]) -> "Table":
    """Return the events as a table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2), expand=False)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for entry in entries:
        kind = entry.topic.partition(".")[0]
        is_bad = any(sign in entry.summary for sign in _BAD_SIGNS)
        topic = entry.topic.rpartition(".")[0]
        table.add_row(
            str(entry.position),
            f"{entry.recorded_at:%H:%M:%S}",
            Text.assemble((topic, "red" if is_bad else _STYLES.get(kind, "white")), "\n",
                          (short_id(entry.stream_id), "dim")),
            clean(entry.summary),
        )
    return table


def moment(entry: "TimelineEntry") -> str:
    """Return when an event was recorded, RFC 3339 in UTC."""
    return entry.recorded_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
