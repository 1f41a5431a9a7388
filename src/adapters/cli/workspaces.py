"""`workspaces`: what these settings serve."""

import os

import click

from adapters.cli.options import as_json, settings_of_workspaces
from adapters.cli.output import clean, console, is_terminal, print_json, print_row
from adapters.settings.load import Settings


@click.command()
@as_json
@settings_of_workspaces
def workspaces(settings: Settings, *, is_json: bool) -> None:
    """List the configured workspaces.

    Piped, each line has name, profile, root and key, separated by tabs.
    """
    listed = list(settings.workspaces.values())
    if is_json:
        print_json([each.model_dump(mode="json", exclude_none=True) for each in listed])
    elif not is_terminal():
        for each in listed:
            print_row(each.workspace_id, each.profile, each.root, each.key)
    elif not listed:
        click.echo("No workspace is configured: name one with --workspace or --config.")
    else:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="dim")
        for title in ("name", "profile", "root"):
            table.add_column(title, overflow="fold")
        for each in listed:
            is_there = os.path.isdir(each.root)
            table.add_row(each.workspace_id, each.profile, clean(each.root) + ("" if is_there else "  (missing)"))
        console().print(table)
