"""`tools check`: load every custom tool as a server would, and tell what is there and what is wrong."""

import logging
from dataclasses import asdict

import anyio
import click

from adapters.cli.options import as_json, settings_of_workspaces
from adapters.cli.output import is_terminal, print_json, print_row
from adapters.settings.load import Settings
from codespace_es.ports.custom_tools import ToolCatalogue


@click.group()
def tools() -> None:
    """See to the custom tools."""


@tools.command("check")
@as_json
@settings_of_workspaces
def check(settings: Settings, *, is_json: bool) -> int:
    """Load every custom tool as a server would, and tell what is wrong.

    Looks at tools/*.py in the data directory, at what custom_tools of the configuration names and at installed
    packages. No tool is called. What the files print goes to stderr. Piped, each line has ok or bad, the source, and
    the tool's name or the fault, separated by tabs. Exit codes: 0 nothing bad; 1 something is.
    """
    logging.getLogger("adapters").setLevel(logging.ERROR)  # what it would warn of is printed here
    catalogue = anyio.run(_load, settings)
    if is_json:
        print_json({
            "tools": [
                {"name": tool.name, "label": tool.label, "source": tool.source, "read_only": tool.is_read_only}
                for tool in catalogue.tools
            ],
            "errors": [asdict(fault) for fault in catalogue.faults],
        })
    elif is_terminal() and not catalogue.tools and not catalogue.faults:
        click.echo(f"There are no custom tools: put a file into {settings.data_directory / 'tools'}.")
    else:
        for tool in catalogue.tools:
            print_row("ok", tool.source, tool.name)
        for fault in catalogue.faults:
            print_row("bad", fault.source, fault.message)
    return 1 if catalogue.faults else 0


async def _load(settings: Settings) -> ToolCatalogue:
    from adapters.bootstrap.tools import tools_of
    from adapters.tool_host.custom_tools import open_custom_tools

    async with open_custom_tools(tools_of(settings)) as custom_tools:
        await custom_tools.load()
        return await custom_tools.catalogue()
