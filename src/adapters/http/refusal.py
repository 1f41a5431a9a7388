"""Answers of the guard itself: a status, a word for programs, a sentence for people."""

import json
from dataclasses import dataclass

from starlette.types import Scope, Send


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    error: str
    message: str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    page: str | None = None
    """HTML that is sent instead, to a browser."""

    def body(self) -> bytes:
        """Return what is sent: JSON, or the page."""
        if self.page is not None:
            return self.page.encode()
        told = {"error": self.error} if self.message is None else {"error": self.error, "message": self.message}
        return json.dumps(told, separators=(",", ":")).encode()


UNAUTHORIZED = Refusal(401, "unauthorized", headers=((b"www-authenticate", b"Bearer"),))


async def refuse(refusal: Refusal, scope: Scope, send: Send) -> None:
    """Send `refusal`, after which the connection is closed."""
    body = refusal.body()
    headers = [
        (b"content-type", b"application/json" if refusal.page is None else b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
