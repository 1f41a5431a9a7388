"""The app: the SDK's Streamable HTTP transport at `/mcp`, behind the guard, with requests that can be ended.

Stateless, so that no session id can go stale: what a call needs is in the call, and handles belong to the server. SSE
is kept, so that progress arrives. Both protocol eras are served: the 2025 revisions by `initialize`, 2026-07-28 by
`server/discover`. Source: decision 39.
"""

from collections.abc import Sequence
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import BaseRoute

from adapters.http.guard import Admittance, Guard
from adapters.http.open_requests import OpenRequests
from adapters.http.sessions import Sessions

MCP_PATH = "/mcp"

_CHECKED_BY_THE_GUARD = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""The SDK's own check of Host and Origin is a prefix test, and covers its own route alone."""


def build_app(
    server: Server[Any],
    admittance: Admittance,
    *,
    routes: Sequence[BaseRoute] = (),
    sessions: Sessions | None = None,
    is_stateless: bool = True,
) -> OpenRequests:
    """Return the app; it knows which requests are open in it, and can end them.

    Args:
        server: Answers every MCP request.
        admittance: Who is let in.
        routes: What stands beside `/mcp`.
        sessions: The operator's browsers, where `routes` let them log in.
        is_stateless: False is for the conformance suite alone, which tests sessions.
    """
    served = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        stateless_http=is_stateless,
        max_request_body_size=admittance.body_bytes_max,
        transport_security=_CHECKED_BY_THE_GUARD,
        custom_starlette_routes=list(routes),  # type: ignore[arg-type]  # the list goes to Starlette, which takes any
    )
    return OpenRequests(Guard(served, admittance, sessions))
