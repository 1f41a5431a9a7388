"""`serve`: one MCP client over stdio. Nothing that only other commands need is imported on this path."""

import logging
import os
import signal
import sys

import anyio
import click

from adapters.cli.options import settings_of_workspaces
from adapters.settings.load import Settings, require_workspaces
from codespace_es.ports.fault_points import FaultHook, FaultPoint, no_faults


@click.command()
@click.option("--ephemeral", "is_ephemeral", is_flag=True, help="Keep the log in memory: nothing survives the server.")
@click.option("--http", "http", is_flag=False, flag_value="127.0.0.1:8787", metavar="[HOST:PORT]",
              help="Serve over HTTP (not supported by this version).")
@click.option("--die-at", hidden=True, type=click.Choice([point.value for point in FaultPoint]))
@settings_of_workspaces
def serve(settings: Settings, *, http: str | None, die_at: str | None) -> None:
    """Serve workspaces to one MCP client over stdio.

    The client starts this command itself and talks to it over stdin and stdout; messages for you go to stderr. It
    ends when the client closes its end, and at SIGTERM, SIGINT or SIGHUP. The common case needs no configuration:
    codespace-es serve --workspace demo=/path/to/project
    """
    if http is not None:
        raise click.UsageError("--http is not supported by this version; serve over stdio.")
    require_workspaces(settings)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="codespace-es: %(message)s")
    anyio.run(_serve, settings, dying_at(die_at))


async def _serve(settings: Settings, faults: FaultHook) -> None:
    from adapters.bootstrap import open_codespace
    from adapters.mcp_server.serve import serve_stdio

    async with open_codespace(settings, transport="stdio", faults=faults) as opened:
        await serve_stdio(opened.codespace, opened.life)


def dying_at(point: str | None) -> FaultHook:
    """Return a hook that ends this process by SIGKILL at `point`: how the demo and the crash tests end a server.

    Safe in production: it hangs on a hidden flag alone, no environment variable or message can set it, and whoever
    writes the server's command line could end the server anyway.
    """
    if point is None:
        return no_faults
    chosen = FaultPoint(point)

    def die(reached: FaultPoint) -> None:
        if reached is chosen:
            os.kill(os.getpid(), signal.SIGKILL)

    return die
