"""`log --follow`: what is recorded, page by page, on one connection after the other.

A connection that is cut, and a database that is away, are waited for, with a word on stderr. What is there afterwards
has to be the same log still: a newest event that was seen has to stand where it stood. A file that is removed or
replaced isn't, however long it can still be read.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from adapters.cli.output import clean
from adapters.cli.reading import open_log
from adapters.log.passing import is_passing
from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.projections.timeline import TimelineEntry
from replay.timeline import Timeline, Wanted

_LOOK_SECONDS = 0.25
"""Between two looks for something new."""
_PAUSE_SECONDS_MAX = 5.0
"""Between two tries to connect, at most."""
_ANSWER_SECONDS = 10.0
"""Who says nothing for so long is taken for gone."""


def follow(
    settings: Settings, wanted: Wanted, *, after: int, newest: tuple[int, bytes],
    show: Callable[[tuple[TimelineEntry, ...]], None],
) -> None:
    """Show what is wanted of all behind position `after`, until somebody interrupts, which is the way to end it.

    `newest` is position and hash of the newest event that was there before.

    Raises:
        StoreUnavailableError: it can't be read, and waiting wouldn't change that.
        StartupError: there is no log any more.
        UnknownTopicError: a newer version has written one of the events.
    """
    followed = _Followed(wanted, after, newest)
    is_away = False
    pause = _LOOK_SECONDS
    try:
        while True:
            try:
                with open_log(settings, answer_seconds=_ANSWER_SECONDS) as source:
                    for entries in followed.read_on(source, settings.log_place):
                        if is_away:
                            _tell("The event log can be read again.")
                        is_away, pause = False, _LOOK_SECONDS
                        show(entries)
            except StoreUnavailableError as error:
                if not is_passing(error):
                    raise
                if not is_away:
                    _tell(f"The event log can't be read now, so it is tried again and again: {str(error).rstrip('.')}.")
                is_away = True
                time.sleep(pause)
                pause = min(2 * pause, _PAUSE_SECONDS_MAX)
    except KeyboardInterrupt:
        return


class _Followed:
    """How far a log has been read."""

    def __init__(self, wanted: Wanted, after: int, newest: tuple[int, bytes]) -> None:
        self._wanted = wanted
        self._after = after
        self._newest = newest
        """Position and hash of the newest event that was seen."""

    def read_on(self, source: LogReader, place: LogPlace | None) -> Iterator[tuple[TimelineEntry, ...]]:
        """Yield page by page what comes, some of them empty, for as long as that is the log of this place."""
        identity = _identity(place)
        self._require_same(source)
        timeline = Timeline(source)
        while True:
            if _identity(place) != identity:
                raise StoreUnavailableError(f"{place} was removed or replaced while it was followed")
            newest = source.head()
            page = timeline.read(self._wanted, after=self._after)
            last = page.entries[-1].position if page.entries else self._after
            # What isn't wanted isn't looked at again.
            self._after = page.next_after if page.next_after is not None else max(last, newest[0])
            self._newest = newest
            yield page.entries
            if page.next_after is None:
                time.sleep(_LOOK_SECONDS)

    def _require_same(self, source: LogReader) -> None:
        """Do nothing if this is the log that was read before, as far as that. Raises StoreUnavailableError."""
        position, chained = self._newest
        if position and not any(row[5] == chained for row in source.raw_rows(after=position - 1, last=position)):
            msg = f"it is another than before, or was brought back from an earlier time: event {position} isn't there"
            raise StoreUnavailableError(msg)


def _identity(place: LogPlace | None) -> tuple[int, int] | None:
    """Return which file a log is; None for one that is gone, or that is no file."""
    if not isinstance(place, Path):
        return None
    try:
        status = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _tell(sentence: str) -> None:
    click.echo(f"codespace-es: {clean(' '.join(sentence.split()))}", err=True)
