"""`verify`: is the log what this product wrote, whole and unchanged?"""

from importlib.metadata import version
from pathlib import Path

import click

from adapters.cli.checkpoints import key_path, make_key, read_checkpoint, read_key, write_checkpoint
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import clean, print_json, print_pairs, print_row
from adapters.cli.reading import open_log
from adapters.cli.watching import watched
from adapters.clock_and_ids import SystemClock
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from replay.checkpoint import Checkpoint, make_checkpoint, store_id_of
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
@click.option("--against", "earlier", type=click.Path(path_type=Path), metavar="FILE",
              help="A checkpoint that was written before: the same, with its signature.")
@click.option("--checkpoint", "target", type=click.Path(path_type=Path), metavar="FILE",
              help="If all is well, write a signed checkpoint of the head. Keep it elsewhere.")
@as_json
@settings_of_log
def verify(
    settings: Settings, *, anchor: Anchor | None, earlier: Path | None, target: Path | None, is_json: bool
) -> int:
    """Prove that the event log is whole and unchanged.

    Follows the chain of hashes, folds every stream, and checks every stored content and the list of what is open.
    Servers may write meanwhile. A checkpoint is signed with a key that is kept beside the log; where the key isn't, on
    a copy, the signature isn't checked and stderr says so. Exit codes: 0 all is well; 1 damage was found, or the
    checkpoint isn't this log's; 2 the log or a file can't be used.
    """
    if anchor is not None and earlier is not None:
        raise click.UsageError("--head and --against are two ways to say the same: give one")
    assert settings.log_path is not None
    with open_log(settings) as source:
        problem = None
        if earlier is not None:
            checkpoint = read_checkpoint(earlier)
            problem = _problem_of(checkpoint, source, settings.log_path)
            anchor = checkpoint.anchor
        with watched(source) as log:
            report = verify_log(log, anchor=anchor if problem is None else None)
        if problem is not None:
            click.echo(f"codespace-es: {earlier}: {problem}", err=True)
        is_ok = report.is_ok and problem is None
        if target is not None and is_ok:
            _write(source, report, settings.log_path, target)
    if is_json:
        print_json(report)
    else:
        _print(report)
    return 0 if is_ok else 1


def _problem_of(checkpoint: Checkpoint, source: LogReader, log_path: Path) -> str | None:
    """Return why a checkpoint proves nothing about a log; None if it can."""
    key = read_key(log_path)
    if key is None:
        click.echo(f"codespace-es: Its signature isn't checked: there is no {key_path(log_path)} here.", err=True)
    elif not checkpoint.is_signed_by(key):
        return "It wasn't signed with the key of this data directory, or was changed since."
    store_id = store_id_of(source)
    if checkpoint.store_id not in ("", store_id):
        return f"It is of another log: {checkpoint.store_id}, not {store_id or 'one without an event'}."
    return None


def _write(source: LogReader, report: VerifyReport, log_path: Path, target: Path) -> None:
    checkpoint = make_checkpoint(
        source, report, made_at=SystemClock().now(), software=f"codespace-es/{version('codespace-es')}",
        key=make_key(log_path),
    )
    write_checkpoint(target, checkpoint)


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
