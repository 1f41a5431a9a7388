"""The one door of everything that is served over HTTP: an ASGI app around the whole app, not around single routes.

In this order, each by exact comparison:

1. Host: the listener's own names and the configured ones; so a name that an attacker points at this machine is refused.
2. Origin, where there is one: the server's own and the configured ones; `null` is nobody's.
3. What its path asks for (`credentials`): tokens are compared as bytes in constant time, never echoed, never logged.
4. Body: read whole before the app sees any of it, up to a limit and within a time; JSON that holds half a character
   isn't text, and would end up in files.

Whoever is refused leaves no trace: nothing behind the guard has seen the request.
Source: contract B7.3; library facts on mcp 2.3.0 over HTTP.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import anyio
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters.http.credentials import LOGIN_BYTES_MAX, LOGIN_PATH, Credentials
from adapters.http.refusal import Refusal, refuse
from adapters.http.request_headers import declared_bytes, has, is_chunked, is_reading, only
from adapters.http.sessions import Sessions
from codespace_es.vocabulary import limits

_BODY_SECONDS_MAX = 60.0
"""How long a request's body may take to arrive."""

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

_DISCARDED_BYTES_MAX = 4 * limits.MESSAGE_BYTES_MAX
_DISCARDED_SECONDS_MAX = 5.0
"""What is read and thrown away of a refused body: a client that is still sending would miss the answer otherwise."""


@dataclass(frozen=True, slots=True)
class Admittance:
    """Who is let in."""

    hosts: frozenset[str]
    """Accepted Host headers, lower case."""
    origins: frozenset[str]
    """Accepted Origin headers, lower case."""
    token: str | None = field(default=None, repr=False)
    operator_token: str | None = field(default=None, repr=False)
    body_bytes_max: int = limits.MESSAGE_BYTES_MAX

    @classmethod
    def to_listener(
        cls,
        host: str,
        port: int,
        *,
        token: str | None = None,
        operator_token: str | None = None,
        allowed_hosts: Iterable[str] = (),
        allowed_origins: Iterable[str] = (),
    ) -> "Admittance":
        """Return what a server that listens on `host` and `port` admits.

        Its own names are those of loopback and the address that it is bound to; a wildcard address is no name.
        """
        names = {"localhost", "127.0.0.1", "[::1]"}
        if host not in ("0.0.0.0", "::"):  # noqa: S104 - recognised, not bound
            names.add(f"[{host}]" if ":" in host else host)
        own = {f"{name}:{port}" for name in names}
        if port == 80:
            own |= names
        hosts = {*own, "localhost", "127.0.0.1", "[::1]", *allowed_hosts}
        origins = {*(f"http://{authority}" for authority in own), *allowed_origins}
        return cls(frozenset(map(str.lower, hosts)), frozenset(map(str.lower, origins)), token, operator_token)


_WRONG_HOST = Refusal(
    421, "host_not_allowed", "This server doesn't answer to that Host; its operator lists others in http.allowed_hosts."
)
_WRONG_ORIGIN = Refusal(
    403, "origin_not_allowed", "Pages of that Origin may not call; the operator lists others in http.allowed_origins."
)
_NOT_TEXT = Refusal(400, "not_text", r"The body holds a \u escape that is half of a surrogate pair: that isn't text.")
_TOO_SLOW = Refusal(408, "body_too_slow", f"The body has to arrive within {_BODY_SECONDS_MAX:.0f} seconds.")


class _GoneError(Exception):
    """The client went away before its request was whole."""


class Guard:
    """Lets requests through to an ASGI app, or answers them itself."""

    def __init__(self, app: ASGIApp, admittance: Admittance, sessions: Sessions | None = None) -> None:
        self._app = app
        self._admittance = admittance
        self._credentials = Credentials(admittance.token, admittance.operator_token, sessions or Sessions())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection. Anything but HTTP and the lifespan is refused: there are no WebSockets here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._admit(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is not None:
            await _discard_body(scope, receive)
            await refuse(refusal, scope, send)
            return
        try:
            with anyio.fail_after(_BODY_SECONDS_MAX):
                body = await self._read_body(scope, receive)
        except TimeoutError:
            await refuse(_TOO_SLOW, scope, send)
        except _GoneError:
            return
        else:
            if body is None:
                await refuse(_too_large(self._largest(scope)), scope, send)
            elif _holds_half_a_character(body):
                await refuse(_NOT_TEXT, scope, send)
            else:
                await self._app(scope, _Replay(body, receive), send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is refused by its headers, None if it isn't."""
        if only(scope, b"host").lower() not in self._admittance.hosts:
            return _WRONG_HOST
        if has(scope, b"origin") and only(scope, b"origin").lower() not in self._admittance.origins:
            return _WRONG_ORIGIN
        refusal = self._credentials.refusal(scope)
        if refusal is None and declared_bytes(scope) > self._largest(scope):
            return _too_large(self._largest(scope))
        return refusal

    def _largest(self, scope: Scope) -> int:
        """Return how many bytes the body may have: few where nobody has shown anything yet."""
        return LOGIN_BYTES_MAX if scope["path"] == LOGIN_PATH else self._admittance.body_bytes_max

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body; None if it is too large, and what is left of it has been thrown away."""
        if is_reading(scope) and not (has(scope, b"content-length") or is_chunked(scope)):
            return b""  # what comes next may be long in coming: the end of the connection
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _GoneError
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
            if len(body) > self._largest(scope):
                if not is_whole:
                    await _discard(receive)
                return None
            if is_whole:
                return bytes(body)


class _Replay:
    """Gives the app the body that was read, then whatever the connection says."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _too_large(largest: int) -> Refusal:
    return Refusal(413, "body_too_large", f"A request's body may have {largest} bytes. Send a large patch as several.")


async def _discard_body(scope: Scope, receive: Receive) -> None:
    """Read a body that was never asked for; a client that asks first whether to send one is told by the answer."""
    if not has(scope, b"expect"):
        await _discard(receive)


async def _discard(receive: Receive) -> None:
    """Read what is still being sent, and keep none of it."""
    left_bytes = _DISCARDED_BYTES_MAX
    with anyio.move_on_after(_DISCARDED_SECONDS_MAX):
        while left_bytes > 0:
            message = await receive()
            left_bytes -= len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return


def _holds_half_a_character(body: bytes) -> bool:
    """Return whether `body` is JSON but for an escape of half a surrogate pair; other faults are left to the app."""
    if not _SURROGATE_ESCAPE.search(body):
        return False
    try:
        from_json(body)
    except ValueError as error:
        return "hex escape" in str(error)
    return False
