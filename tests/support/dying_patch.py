"""Patch a scratch project and be killed on the way: `python -m support.dying_patch ROOT DATA POINT`."""

import sys

import anyio

from adapters.bootstrap import open_codespace
from adapters.cli.options import effective_settings
from adapters.cli.serve import dying_at
from adapters.settings.load import Flags
from support.cli_project import patch


async def main(root: str, data: str, point: str) -> None:
    """Begin a patch under the key `cut`; at `point` this process kills itself."""
    settings = effective_settings(Flags(data_dir=data, workspaces=(f"demo={root}",)), {})
    async with open_codespace(settings, transport="stdio", faults=dying_at(point)) as opened:
        await patch(opened, key="cut")


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
