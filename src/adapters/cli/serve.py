"""`serve`: MCP over stdio or HTTP. What one of them doesn't need isn't imported on its path."""

import logging
import os
import signal
import sys

import anyio
import click

from adapters.cli.options import settings_of_workspaces
from adapters.settings.http import HttpSettings, listening_at
from adapters.settings.load import Settings, require_workspaces
from codespace_es.ports.fault_points import FaultHook, FaultPoint, no_faults


@click.command()
@click.option("--ephemeral", "is_ephemeral", is_flag=True, help="Keep the log in memory: nothing survives the server.")
@click.option("--http", "http", is_flag=False, flag_value="", metavar="[HOST:PORT]",
              help="Serve any number of clients over HTTP, at /mcp; 127.0.0.1:8787 unless said otherwise.")
@click.option("--die-at", hidden=True, type=click.Choice([point.value for point in FaultPoint]))
@settings_of_workspaces
def serve(settings: Settings, *, http: str | None, die_at: str | None) -> None:
    """Serve workspaces over MCP, on stdio or over HTTP.

    Over stdio, the client starts this command itself and talks to it over stdin and stdout; messages for you go to
    stderr. It ends when the client closes its end, and at SIGTERM, SIGINT or SIGHUP. The common case needs no
    configuration: codespace-es serve --workspace demo=/path/to/project

    With --http it listens until a signal comes. Beyond this machine it needs a token in CODESPACE_HTTP_TOKEN.
    """
    address = None if http is None else listening_at(settings.http, http)
    require_workspaces(settings)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="codespace-es: %(message)s")
    faults = dying_at(die_at)
    if address is None:
        anyio.run(_serve_stdio, settings, faults)
    else:
        anyio.run(_serve_http, settings, address, faults)


async def _serve_stdio(settings: Settings, faults: FaultHook) -> None:
    from adapters.bootstrap import open_codespace
    from adapters.mcp_server.serve import serve_stdio

    async with open_codespace(settings, transport="stdio", faults=faults) as opened:
        await serve_stdio(opened.codespace, opened.life, resolve_listing=settings.resolve_listing)


async def _serve_http(settings: Settings, address: HttpSettings, faults: FaultHook) -> None:
    from adapters.bootstrap import open_codespace
    from adapters.http.listening import listen
    from adapters.http.serving import serve_http
    from adapters.mcp_server.server import build_server

    with listen(address) as listener:
        async with open_codespace(settings, transport="http", faults=faults) as opened:
            server = build_server(opened.codespace, opened.life, resolve_listing=settings.resolve_listing)
            await serve_http(
                server, opened.codespace, opened.life, listener, address, open_source=opened.log.open_reader
            )


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
