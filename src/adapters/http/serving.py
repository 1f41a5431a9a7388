"""Serving many clients over HTTP, from the first connection to a clean end.

The end, at the first SIGTERM, SIGINT or SIGHUP, and when the log can't be written any more:

1. No request is taken any more, and streams end (`open_requests`).
2. Commands are ended, effects are waited for, and every call gets its answer (`Codespace.close`).
3. Requests and connections end; those that don't are cut off.
4. The instance says why it stops. Later signals change nothing.
"""

import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from anyio.abc import TaskGroup
from mcp.server.lowlevel import Server
from starlette.routing import BaseRoute

from adapters.http.app import MCP_PATH, build_app
from adapters.http.audit import Audit, OpenSource
from adapters.http.console.routes import console_routes
from adapters.http.credentials import CONSOLE_PATH
from adapters.http.front import front_route
from adapters.http.guard import Admittance
from adapters.http.inbox import inbox_routes
from adapters.http.json_calls import JsonSide
from adapters.http.listening import Listener
from adapters.http.open_requests import OpenRequests
from adapters.http.openapi import openapi_route
from adapters.http.operator import answerers_of, operator_routes
from adapters.http.sessions import Sessions
from adapters.settings.http import HttpSettings
from codespace_es.aggregates.instance import InstanceStopped
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.instance_life import InstanceLife, quiet_caller

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_KEEP_ALIVE_SECONDS = 75
"""How long an idle connection is kept: longer than proxies keep theirs, so that it is they who close."""

_END_SECONDS_MAX = 1
"""After open requests have ended, how long clients that read nothing can hold up the end of their connections."""

logger = logging.getLogger(__name__)


class _SignalsLeftAlone(uvicorn.Server):
    """A server that leaves signals to us: its own handling would raise them again once it has ended."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve_http(
    server: Server[Any],
    codespace: Codespace,
    life: InstanceLife,
    listener: Listener,
    settings: HttpSettings,
    *,
    open_source: OpenSource,
    is_stateless: bool = True,
) -> None:
    """Serve until a signal comes; effects that have begun are waited for.

    Args:
        server: Answers every MCP request.
        codespace: The door.
        life: Records why it ends.
        listener: The bound socket.
        settings: Who is let in, and whether the operator is.
        open_source: Opens the log for the operator to look at.
        is_stateless: See `build_app`.
    """
    admittance = Admittance.to_listener(
        listener.host,
        listener.port,
        token=settings.token,
        operator_token=settings.operator_token,
        allowed_hosts=settings.allowed_hosts,
        allowed_origins=settings.allowed_origins,
    )
    sessions = Sessions()
    routes = routes_beside_mcp(codespace, open_source, sessions, operator_token=settings.operator_token)
    app = build_app(server, admittance, routes=routes, sessions=sessions, is_stateless=is_stateless)
    serving = _SignalsLeftAlone(_configuration(app))
    tasks: TaskGroup
    with anyio.open_signal_receiver(*_ENDING_SIGNALS) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_on_signal, signals, serving, app, codespace)
            logger.warning("listening on %s%s", listener.url, MCP_PATH)
            if settings.operator_token is not None:
                logger.warning("the operator's console is at %s%s", listener.url, CONSOLE_PATH)
            with anyio.CancelScope(shield=True):
                await serving.serve(sockets=[listener.socket])
                await codespace.close(quiet_caller(codespace.world))
            tasks.cancel_scope.cancel()
    _ignore_later_signals()
    life.stop_because(InstanceStopped(reason="signal"))


def routes_beside_mcp(
    codespace: Codespace, open_source: OpenSource, sessions: Sessions, *, operator_token: str | None
) -> list[BaseRoute]:
    """Return what is served beside `/mcp`: the front page, the inbox, and, with a token for it, the operator's side."""
    front = front_route(None if operator_token is None else CONSOLE_PATH)
    routes: list[BaseRoute] = [front, *inbox_routes(codespace), openapi_route("/inbox")]
    if operator_token is not None:
        audit = Audit(open_source, codespace.world.clock)
        routes += [*operator_routes(codespace, audit), openapi_route("/operator")]
        routes += console_routes(
            JsonSide(codespace, channel="web", answerers=answerers_of(audit)), sessions, operator_token
        )
    return routes


def _configuration(app: OpenRequests) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        http="h11",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_END_SECONDS_MAX,
    )


async def _end_on_signal(
    signals: AsyncIterator[signal.Signals], serving: uvicorn.Server, requests: OpenRequests, codespace: Codespace
) -> None:
    """End at the first signal, or when this wait is cancelled: whoever is being answered still is, in good order."""
    try:
        async for _number in signals:
            break
    finally:
        requests.refuse()
        with anyio.CancelScope(shield=True):
            try:
                await codespace.close(quiet_caller(codespace.world))
            finally:
                await requests.end()
                serving.should_exit = True


def _ignore_later_signals() -> None:
    """Let nothing interrupt the last milliseconds: what is left is bounded, and the log says that it has stopped."""
    for number in _ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
