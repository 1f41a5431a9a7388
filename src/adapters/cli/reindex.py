"""`store reindex`: the list of what is open, made anew from the events, or only compared with them."""

from collections.abc import Sequence
from functools import partial

import anyio
import click

from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import print_json, print_pairs, print_row
from adapters.cli.reading import open_log
from adapters.log.open_rows import OpenIndexDifference
from adapters.settings.load import Settings
from codespace_es.open_index import open_change
from codespace_es.ports.log import OpenItem


@click.command()
@click.option("--check", "is_check", is_flag=True, help="Tell what is wrong and change nothing.")
@as_json
@settings_of_log
def reindex(settings: Settings, *, is_check: bool, is_json: bool) -> int:
    """Make the list of what is open anew, from the events.

    Servers keep that list with each append; only damage from elsewhere can make it wrong, and `verify` says so then.
    It is folded again from the whole log, in one transaction: servers that write meanwhile wait for its end. No event
    is touched. What a newer version wrote is left as it is. Exit codes: 0 it is right now; 1 it is wrong (--check).
    """
    with open_log(settings) as source:  # refuses what is no log, or isn't there, before anything is opened for writing
        found: Sequence[OpenIndexDifference] = source.compare_open_index(open_change) if is_check else ()
    if not is_check:
        found = anyio.run(partial(_make_anew, settings))
    if is_json:
        print_json({"is_changed": bool(found) and not is_check, "differences": [_told(each) for each in found]})
    else:
        _print(found, is_check=is_check)
    return 1 if is_check and found else 0


async def _make_anew(settings: Settings) -> Sequence[OpenIndexDifference]:
    from adapters.bootstrap.log import open_event_log

    async with open_event_log(settings) as log:
        return await log.reindex()


def _told(difference: OpenIndexDifference) -> dict[str, object]:
    """Return a difference as JSON: what the list has, and what the events say."""
    sides = {"listed": difference.stored, "folded": difference.folded}
    return {name: item and {
        "stream_id": item.stream_id, "kind": item.kind, "workspace_key": item.workspace_key,
        "instance_id": item.instance_id, "position": item.position,
    } for name, item in sides.items()}


def _print(found: Sequence[OpenIndexDifference], *, is_check: bool) -> None:
    for each in found:
        item = each.folded or each.stored
        assert item is not None, "a difference has a side"
        print_row(_problem_of(each), item.kind, item.stream_id, f"opened at {item.position}")
    verdict = "right" if not found else f"{len(found)} rows are wrong" if is_check else f"{len(found)} rows mended"
    print_pairs([("open index", verdict)])


def _problem_of(difference: OpenIndexDifference) -> str:
    stored: OpenItem | None = difference.stored
    if stored is None:
        return "was not listed"
    return "was listed, and isn't open" if difference.folded is None else "was listed otherwise"
