"""The operator's browsers that have logged in: kept in memory, so a restart logs everybody out.

A session has two secrets. The cookie comes with every request, but browsers share cookies among all ports of a host: a
page that an agent serves on another port gets it too. So it only lets look. Whoever acts also shows the key, which the
browser keeps for this scheme, host and port alone, and which is in no page after the one that follows the login.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

SESSION_SECONDS_MAX = 12 * 60 * 60
_SESSIONS_MAX = 64
"""With one more, the oldest ends."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a browser is given at its login."""

    cookie: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is remembered of a session: digests, so that neither secret can be had from memory or found by timing."""

    key_digest: bytes
    ends_at: float


class Sessions:
    """Who is logged in. Belongs to one event loop."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: dict[bytes, _Kept] = {}

    def open(self) -> Opened:
        """Return the secrets of a new session."""
        opened = Opened(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        now = self._monotonic()
        self._kept = {name: each for name, each in self._kept.items() if each.ends_at > now}
        while len(self._kept) >= _SESSIONS_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[_digest(opened.cookie)] = _Kept(_digest(opened.key), now + SESSION_SECONDS_MAX)
        return opened

    def may_look(self, cookie: str | None) -> bool:
        """Return whether the cookie is that of a session."""
        return self._find(cookie) is not None

    def may_act(self, cookie: str | None, key: str) -> bool:
        """Return whether cookie and key belong to one session."""
        kept = self._find(cookie)
        return kept is not None and hmac.compare_digest(kept.key_digest, _digest(key))

    def close(self, cookie: str | None) -> None:
        """End a session, if there is one."""
        if cookie is not None:
            self._kept.pop(_digest(cookie), None)

    def _find(self, cookie: str | None) -> _Kept | None:
        kept = None if cookie is None else self._kept.get(_digest(cookie))
        return kept if kept is not None and kept.ends_at > self._monotonic() else None


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
