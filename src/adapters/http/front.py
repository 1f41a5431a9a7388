"""The page at `/`, for a person who opens the server's address in a browser: what this is, and the way in.

It holds nothing that a secret has to be shown for, and asks nobody for anything. Whoever shows no token is refused
there as anywhere else; a browser is told so in words.
"""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from adapters.http.refusal import UNAUTHORIZED, Refusal
from adapters.http.request_headers import is_reading, values

FRONT_PATH = "/"

_STYLE = (
    ":root{color-scheme:light dark;background:Canvas;color:CanvasText}"
    "body{max-width:34rem;margin:16vh auto 0;padding:0 1.2rem;"
    "font:1rem/1.55 system-ui,sans-serif}h1{font-size:1.5rem}code{font-size:.95em}"
)
_HEADERS: Mapping[str, str] = MappingProxyType({
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
})

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>CodeSpace ES</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>CodeSpace ES</h1>
<p>This server carries out what coding agents ask for, on real files and processes. Agents connect to <code>/mcp</code>
with the token that it was started with.</p>
<p>{way_in}</p>
</main>
</body>
</html>
"""


def is_for_person(scope: Scope) -> bool:
    """Return whether a browser asks for the page."""
    accepted = b",".join(values(scope, b"accept"))
    return scope["path"] == FRONT_PATH and is_reading(scope) and b"text/html" in accepted


def front_refusal(console_path: str | None) -> Refusal:
    """Return how a browser is told that it has shown no token; `console_path` None: there is no console."""
    headers = tuple((name.encode(), value.encode()) for name, value in _HEADERS.items())
    return Refusal(
        UNAUTHORIZED.status, UNAUTHORIZED.error, headers=(*UNAUTHORIZED.headers, *headers), page=_page(console_path)
    )


def front_route(console_path: str | None) -> Route:
    """Return the route of the page, for where no token is asked for, or one was shown."""

    async def show(_request: Request) -> Response:
        return Response(_page(console_path), 200, _HEADERS, "text/html")

    return Route(FRONT_PATH, show, methods=["GET"])


def _page(console_path: str | None) -> str:
    way_in = f'People go to the <a href="{console_path}">operator\'s console</a>, which asks for the operator\'s token.'
    if console_path is None:
        way_in = "It has no console for people: whoever starts it with an operator's token gets one."
    return _PAGE.format(style=_STYLE, way_in=way_in)
