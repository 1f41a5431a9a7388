"""`prune`: make room by removing stored contents; the events stay."""

import re
from collections import deque
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from itertools import chain

import anyio
import click

from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import print_json, print_pairs
from adapters.cli.pruning import KINDS_BY_DEFAULT, KINDS_THAT_MAY_GO, Rule, Tally, choose, remove
from adapters.cli.reading import open_log
from adapters.clock_and_ids import SystemClock
from adapters.log.bodies import StoredBody
from adapters.settings.load import Settings
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId

_AGE = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SIZE = re.compile(r"([0-9]{1,12})(|KiB|MiB|GiB)")
_BYTES = {"": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def _read_age(_context: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    """Return the time that `30d` means. Raises BadParameter."""
    if value is None:
        return None
    match = _AGE.fullmatch(value)
    if match is None:
        raise click.BadParameter("write a number and m, h, d or w, such as 30d")
    return int(match[1]) * _UNITS[match[2]]


def _read_size(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Return the bytes that `1MiB` means. Raises BadParameter."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value)
    if match is None:
        raise click.BadParameter("write a number of bytes, or one with KiB, MiB or GiB")
    return int(match[1]) * _BYTES[match[2]]


@click.command()
@click.option("--older-than", "age", callback=_read_age, metavar="AGE",
              help="Only what was stored longer ago than this: a number and m, h, d or w.")
@click.option("--larger-than", "size_bytes", callback=_read_size, metavar="SIZE",
              help="Only what has at least so many bytes; KiB, MiB and GiB are known.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS_THAT_MAY_GO),
              help="Only this kind; repeatable. Without it: image, request, output, text. A result goes only when it "
                   "is named: a repeated call can't be answered as before without it.")
@click.option("--yes", "is_meant", is_flag=True, help="Remove them. Without it nothing is changed.")
@as_json
@settings_of_log
def prune(
    settings: Settings, *, age: timedelta | None, size_bytes: int | None, kinds: tuple[str, ...], is_meant: bool,
    is_json: bool,
) -> int:
    """Remove stored contents by age and size; a dry run unless --yes.

    Events are never removed: the log still verifies, and `show` says what was pruned. An operation whose files were
    pruned can't be undone any more. Contents of anything that is open stay. The file keeps its size; the room is used
    for what comes. Exit codes: 0 done, or told; 2 wrong usage, or the log can't be used.
    """
    if age is None and size_bytes is None:
        raise click.UsageError("say what is to go: --older-than, --larger-than or both")
    now = SystemClock().now()
    rule = Rule(frozenset(kinds or KINDS_BY_DEFAULT), None if age is None else now - age, size_bytes or 0)
    tally = Tally()
    with open_log(settings) as source:
        chosen = tally.passing(choose(source, rule))
        first = next(chosen, None)
        if is_meant and first is not None:
            removed = anyio.run(partial(_remove, settings, chain((first,), chosen)))
        else:
            removed = 0
            deque(chosen, maxlen=0)
    _tell(tally, removed, is_meant=is_meant, is_json=is_json)
    return 0


async def _remove(settings: Settings, chosen: Iterable[StoredBody]) -> int:
    from adapters.bootstrap import open_codespace

    async with open_codespace(settings, transport="cli") as opened:
        caller = Caller("cli", RequestId(f"req-{opened.world.ids.uuid()}"), "codespace-es prune")
        return await remove(opened.world.log, chosen, caller)


def _tell(tally: Tally, removed: int, *, is_meant: bool, is_json: bool) -> None:
    kinds = sorted(tally.kinds.items())
    if is_json:
        print_json({
            "is_dry_run": not is_meant, "chosen": tally.count, "total_bytes": tally.total_bytes,
            "streams": tally.streams, "removed": removed,
            "kinds": {kind: {"count": count, "bytes": size_bytes} for kind, (count, size_bytes) in kinds},
        })
        return
    whole = f"{tally.count:,} contents of {tally.streams:,} streams, {tally.total_bytes:,} bytes"
    print_pairs([
        ("would go" if not is_meant else "chosen", whole),
        *((kind, f"{count:,}, {size_bytes:,} bytes") for kind, (count, size_bytes) in kinds),
        *([("removed", f"{removed:,}")] if is_meant else [("to do it", "the same with --yes")] if tally.count else []),
    ])
