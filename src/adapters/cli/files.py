"""`files`: a workspace's files as the log knows them at a moment, listed or written into a directory of their own."""

from pathlib import Path

import click

from adapters.cli.moments import moment_in
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import clean, print_json, print_row
from adapters.cli.reading import open_log
from adapters.cli.restoring import UnusablePathError, make_target, write_file
from adapters.cli.watching import watched
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from codespace_es.vocabulary.event import ABSENT
from replay.files_at import KnownFile, KnownWorkspace, content_of, files_at


@click.command()
@click.option("--at", "at", default="head", metavar="MOMENT",
              help="A position, a time (2026-01-31T12:00:00Z), an id, ID@VERSION or an operation key. Without it: now.")
@click.option("--workspace", "wanted", metavar="ID", help="Only this workspace: its name or its key.")
@click.option("--restore", "target", type=click.Path(path_type=Path), metavar="DIR",
              help="Write them into this empty or new directory, outside of every workspace.")
@as_json
@settings_of_log
def files(settings: Settings, *, at: str, wanted: str | None, target: Path | None, is_json: bool) -> int:
    """List the files that operations have touched, as the log knows them at a moment.

    Piped, each line has path, version, permission bits, operation and what makes it uncertain, separated by tabs. Files
    that no operation has touched aren't in the log. Exit codes: 0 told; 1 something couldn't be restored; 2 there is no
    such moment or workspace, or DIR can't be used.
    """
    with open_log(settings) as source:
        position = moment_in(source, at)
        with watched(source) as log:
            known = files_at(log, position)
        if wanted is not None:
            known = tuple(each for each in known if wanted in (each.workspace_id, each.workspace_key))
            if not known:
                raise click.UsageError(f"the log knew no workspace {wanted!r} then")
        if target is not None:
            return _restore(settings, source, known, target)
        if is_json:
            print_json([each.model_dump(mode="json", exclude_none=True) for each in known])
        else:
            for each in known:
                for file in each.files:
                    mode = "" if file.mode is None else f"{file.mode:04o}"
                    print_row(file.path, file.version, mode, file.operation_id, file.note or "")
    return 0


def _restore(settings: Settings, source: LogReader, known: tuple[KnownWorkspace, ...], target: Path) -> int:
    """Write what is known beneath `target`, a directory a workspace if there are several; return the exit code."""
    roots = [Path(each.root) for each in files_at(source, source.head()[0]) if each.root is not None]
    assert settings.log_path is not None
    real = make_target(target, [*roots, settings.log_path.parent])
    written = failed = 0
    for each in known:
        prefix = f"{each.workspace_key}/" if len(known) > 1 else ""
        for file in each.files:
            if file.version == ABSENT:
                continue
            problem = _write(source, real, prefix, file)
            if problem is None:
                written += 1
            else:
                failed += 1
                click.echo(f"codespace-es: {clean(file.path)}: {problem}.", err=True)
            if file.note is not None:
                click.echo(f"codespace-es: {clean(file.path)}: {clean(file.note)}.", err=True)
    click.echo(f"restored\t{written} of {written + failed} files to {clean(str(target))}")
    return 1 if failed else 0


def _write(source: LogReader, target: Path, prefix: str, file: KnownFile) -> str | None:
    """Write one file; return why that can't be."""
    content = content_of(source, file)
    if content is None:
        return "the log doesn't hold its content"
    try:
        write_file(target, prefix + file.path, content, file.mode)
    except UnusablePathError as error:
        return str(error)
    return None
