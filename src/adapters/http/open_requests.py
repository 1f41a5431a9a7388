"""The requests that are being served, so that none of them outlives the server and none holds up its end.

The end comes in two steps. First new requests get 503, and streams of events end with their last chunk. Later, when
every call has its answer (`Codespace.close`), a request has a short while to hand it on; then its waiting is cancelled
and its response is finished, by 503 if it hasn't begun.
"""

from collections.abc import Callable

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LAST_ANSWERS_SECONDS = 0.5
"""How long a request may take to end once every call has its answer."""

_LAST_BYTES_SECONDS = 0.2
"""How long the end of a response may take to be written; a client that reads nothing can't hold up the server."""

_ENDING = b'{"error":"server_ending","message":"The server is ending; what had begun is in its log."}'


class OpenRequests:
    """An ASGI app around another one that can end what is open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._scopes: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self._is_ending = False
        self._none_left = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, until the end comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        open_request = anyio.CancelScope()
        response = _Response(send, on_stream=lambda: self._note_stream(scope, open_request))
        self._scopes.add(open_request)
        if self._is_ending:
            open_request.cancel()
        try:
            with open_request:
                await self._app(scope, receive, response)
            if self._is_ending:
                await response.finish()
        finally:
            self._streams.discard(open_request)
            self._scopes.discard(open_request)
            if not self._scopes:
                self._none_left.set()

    def _note_stream(self, scope: Scope, request: anyio.CancelScope) -> None:
        """Note a stream of events that nobody's call waits for."""
        if scope["method"] == "GET":
            self._streams.add(request)
            if self._is_ending:
                request.cancel()

    def refuse(self) -> None:
        """Take no more requests, and end the streams."""
        self._is_ending = True
        for stream in tuple(self._streams):
            stream.cancel()

    async def end(self) -> None:
        """Return once the requests that are open have ended."""
        self.refuse()
        with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
            await self._wait_until_none()
        for request in tuple(self._scopes):
            request.cancel()
        await self._wait_until_none()

    async def _wait_until_none(self) -> None:
        while self._scopes:
            self._none_left = anyio.Event()
            await self._none_left.wait()


class _Response:
    """Passes a response on, and knows what is missing of it."""

    def __init__(self, send: Send, *, on_stream: Callable[[], None]) -> None:
        self._send = send
        self._on_stream = on_stream
        self._has_begun = False
        self._is_over = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_begun = True
            if _content_type(message).startswith(b"text/event-stream"):
                self._on_stream()
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self._is_over = True
        await self._send(message)

    async def finish(self) -> None:
        """Send what is missing: the last chunk, or the answer that there will be none."""
        if self._is_over:
            return
        with anyio.move_on_after(_LAST_BYTES_SECONDS, shield=True):
            if self._has_begun:
                await self._send({"type": "http.response.body", "body": b""})
                return
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(_ENDING)).encode())]
            await self._send({"type": "http.response.start", "status": 503, "headers": headers})
            await self._send({"type": "http.response.body", "body": _ENDING})


def _content_type(start: Message) -> bytes:
    return next((value for name, value in start.get("headers", ()) if name.lower() == b"content-type"), b"")
