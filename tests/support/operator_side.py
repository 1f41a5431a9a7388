"""The operator's side of HTTP in this process: real guard, routes and door over a real log, without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from adapters.http.app import build_app
from adapters.http.guard import Admittance
from adapters.http.serving import routes_beside_mcp
from adapters.http.sessions import Sessions
from adapters.mcp_server.server import build_server
from support.server import Server

AGENT = "the-agents-token"
OPERATOR = "the-operators-token"
HERE = "http://127.0.0.1:8787"


@asynccontextmanager
async def operator_side(
    server: Server, *, token: str = OPERATOR, allowed: tuple[str, str] | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client that shows `token`; `allowed` is one more host, and one more origin."""
    sessions = Sessions()
    app = build_app(
        build_server(server.codespace, server._life),
        Admittance.to_listener(
            "127.0.0.1", 8787, token=AGENT, operator_token=OPERATOR,
            allowed_hosts=allowed[:1] if allowed else (), allowed_origins=allowed[1:] if allowed else (),
        ),
        routes=routes_beside_mcp(server.codespace, server.log.open_reader, sessions, operator_token=OPERATOR),
        sessions=sessions,
    )
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url=HERE,
        headers={"Authorization": f"Bearer {token}"} if token else {},
    ) as client:
        yield client
