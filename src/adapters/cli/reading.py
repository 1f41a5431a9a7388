"""Opening the log of these settings for a command that only reads, and the ids that people type."""

import re
from collections.abc import Sequence

import click

from adapters.cli.inbox_reading import ids_beginning
from adapters.log.places import connect_to_read
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from adapters.settings.problem import StartupError
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import LogMissingError

_BEGINNING = re.compile(r"[a-z]+-[0-9a-f]{4}[0-9a-f-]*")
"""What can be the beginning of an id: its kind and some of its UUID."""


def open_log(settings: Settings, *, answer_seconds: float | None = None) -> LogReader:
    """Return the log, opened for reading only; a context manager.

    Args:
        settings: They say where it is.
        answer_seconds: How long a database may take to answer one query; None: as long as it takes.

    Raises:
        StartupError: there is none yet.
        StoreUnavailableError: what is there can't be read.
    """
    place = settings.log_place
    assert place is not None, "only `serve` knows logs in memory"
    try:
        return LogReader(connect_to_read(place, answer_seconds=answer_seconds), CATALOGUE)
    except LogMissingError as error:
        if settings.store is not None:
            raise StartupError(f"{error}; make one, once: codespace-es store init") from error
        raise StartupError(
            f"There is no event log at {place} yet: the first server makes it. Name another place with --data-dir, or "
            "make a log to look at: codespace-es demo --keep"
        ) from error


def whole_id(source: LogReader, name: str) -> str:
    """Return the only id that begins with `name`, as timelines and the console show it; else `name` itself.

    Raises:
        click.UsageError: several begin like this.
    """
    found: Sequence[str] = source.streams_beginning(name) if _BEGINNING.fullmatch(name) else ()
    if name.startswith(("work-", "fb-")) and _BEGINNING.fullmatch(name):  # several share a stream
        found = ids_beginning(source, name)
    if not found or found[0] == name:
        return name
    if len(found) > 1:
        raise click.UsageError(f"several ids begin with {name!r}, such as {found[0]} and {found[1]}")
    return found[0]
