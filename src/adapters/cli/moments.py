"""Reading a moment, or a range of two, from the command line."""

import click

from adapters.cli.reading import whole_id
from adapters.log.reader import LogReader
from replay.moments import NoSuchMomentError, position_of


def moment_in(source: LogReader, moment: str) -> int:
    """Return the position that `moment` names. Raises click.UsageError where there is none."""
    try:
        return position_of(source, moment)
    except NoSuchMomentError as error:
        whole = whole_id(source, moment)
        if whole != moment:
            return position_of(source, whole)
        raise click.UsageError(str(error)) from error


def range_in(source: LogReader, text: str) -> tuple[int, int]:
    """Return the positions of `A..B`; without A the beginning, without B the end. Raises click.UsageError."""
    begin, dots, end = text.partition("..")
    if not dots:
        raise click.UsageError(f"write a range as A..B, not {text!r}")
    first = moment_in(source, begin or "0")
    last = moment_in(source, end or "head")
    if first > last:
        raise click.UsageError(f"the range ends at {last}, before it begins at {first}")
    return first, last
