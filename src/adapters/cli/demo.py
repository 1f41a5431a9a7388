"""`demo`: the product's promise, shown on a scratch project through a real server and the official MCP client."""

import shutil
import tempfile
from pathlib import Path

import anyio
import click

from adapters.cli.output import as_shell_words


@click.command()
@click.option("--keep", "is_kept", is_flag=True, help="Keep the scratch project and its log to look around in.")
def demo(*, is_kept: bool) -> int:
    """Watch patches and commands go right, go wrong and survive a crash.

    Works in a temporary directory, with a log of its own; your files and your log aren't touched. Exit codes: 0 all
    went as told; 1 something didn't.
    """
    from adapters.cli.demo_stage import Stage
    from adapters.cli.demo_story import play_to_the_end

    scratch = Path(tempfile.mkdtemp(prefix="codespace-es-demo-")).resolve()
    try:
        stage = Stage(scratch)
        anyio.run(play_to_the_end, stage)
        stage.tell_verdict()
        _tell_next(scratch if is_kept else None)
        return 0 if stage.is_as_told else 1
    finally:
        if not is_kept:
            shutil.rmtree(scratch)


def _tell_next(kept: Path | None) -> None:
    """Say where to go from here."""
    click.echo("\nWhere to go next")
    if kept is not None:
        for words in (["log"], ["verify"]):
            click.echo(f"  codespace-es {as_shell_words([*words, '--data-dir', str(kept / 'data')])}")
        click.echo(f"  The scratch project is {kept / 'project'}; remove {kept} when you are done.")
    else:
        click.echo("  codespace-es demo --keep            the same, and its log stays for log, show and verify")
    click.echo("  codespace-es init /path/to/project  a configuration, and what your MCP client needs")
    click.echo("  codespace-es doctor                 does this machine give what is needed?")
