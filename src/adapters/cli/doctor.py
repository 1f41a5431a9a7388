"""`doctor`: does this machine give what the product needs, and what waits to be settled?"""

from dataclasses import asdict

import click

from adapters.cli.options import as_json, settings_of_workspaces
from adapters.cli.output import clean, console, is_terminal, print_json, print_row
from adapters.settings.load import Settings

_SIGNS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}


@click.command()
@as_json
@settings_of_workspaces
def doctor(settings: Settings, *, is_json: bool) -> int:
    """Check this machine, the workspaces and what is open.

    Looks at Python, SQLite, the kernel, the directories for log and locks, and at what a dead server has left. For a
    workspace that may be written, a file is replaced in a temporary directory beneath its root. Of a PostgreSQL it
    tells the version, whether what it acknowledges outlives a crash (fsync, full_page_writes, synchronous_commit),
    whether the tables are whole, and whether this user could change events. Exit codes: 0 nothing bad; 1 something is.
    """
    from adapters.cli.checks import examine

    checks = list(examine(settings))
    if is_json:
        print_json([asdict(check) for check in checks])
    elif is_terminal():
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for check in checks:
            table.add_row(Text(*_SIGNS[check.verdict]), check.name, Text(clean(check.told), overflow="fold"))
        console().print(table)
    else:
        for check in checks:
            print_row(check.verdict, check.name, check.told)
    return 1 if any(check.verdict == "bad" for check in checks) else 0
