"""`verify`: is the log what this product wrote, whole and unchanged?"""

import click

from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import clean, print_json, print_pairs, print_row
from adapters.cli.reading import open_log
from adapters.settings.load import Settings
from replay.verify import Anchor, VerifyReport
from replay.verify import verify as verify_log


def _read_head(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Anchor | None:
    """Return the head that `POSITION:HASH` names. Raises BadParameter for anything else."""
    if value is None:
        return None
    position, _, digest = value.partition(":")
    if not position.isdecimal() or len(digest) != 64:
        raise click.BadParameter("write POSITION:HASH, as an earlier verify told them")
    return Anchor(int(position), digest)


@click.command()
@click.option("--head", "anchor", callback=_read_head, metavar="POSITION:HASH",
              help="A head that was told before: the log must still have it. Proves that no end was cut off.")
@as_json
@settings_of_log
def verify(settings: Settings, *, anchor: Anchor | None, is_json: bool) -> int:
    """Prove that the event log is whole and unchanged.

    Follows the chain of hashes, folds every stream, and checks every stored content and the list of what is open.
    Servers may write meanwhile. Exit codes: 0 all is well; 1 damage was found; 2 the log can't be opened.
    """
    with open_log(settings) as source:
        report = verify_log(source, anchor=anchor)
    if is_json:
        print_json(report)
    else:
        _print(report)
    return 0 if report.is_ok else 1


def _print(report: VerifyReport) -> None:
    print_pairs([
        ("verdict", "whole and unchanged" if report.is_ok else "DAMAGED"),
        ("events", f"{report.events:,}"),
        ("contents", f"{report.bodies:,} ({report.body_bytes:,} bytes)"),
        ("open", report.open_items),
        ("head", f"{report.head_position}:{report.head_hash}"),
        ("time", f"{report.duration_ms:,} ms"),
    ])
    for finding in report.findings:
        stream = f" in {finding.stream_id}" if finding.stream_id else ""
        print_row(f"law {finding.law}", f"position {finding.position}{stream}", finding.problem, clean(finding.meaning),
                  f"{finding.count} in all")
