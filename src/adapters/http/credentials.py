"""What a request has to show, by its path; two tokens that open nothing of each other's.

- `/operator` the operator's token; for reading, a browser's session does too, since event streams carry no header.
- `/console` a browser's session, but for the page on which it logs in. What isn't reading has to come from a page of
  this very server; that it may act is shown to the page's own handler (`sessions`).
- everything else: the agents' token, where one is configured. Without it a browser
  at `/` is refused by a page (`front`).

Without an operator's token there is no operator's side, and its paths are like any other that leads nowhere.
Source: contract A4, A6; decision 24.
"""

import hmac
from urllib.parse import quote

from starlette.types import Scope

from adapters.http import request_headers
from adapters.http.front import front_refusal, is_for_person
from adapters.http.refusal import UNAUTHORIZED, Refusal
from adapters.http.sessions import Sessions

OPERATOR_PATH = "/operator"
CONSOLE_PATH = "/console"
LOGIN_PATH = "/console/login"
STATIC_PATH = "/console/static"

LOGIN_BYTES_MAX = 16 * 1024
"""Body of a login, which anybody may send."""

_NOT_FROM_HERE = Refusal(
    403, "origin_not_allowed", "What changes something has to come from a page of this server, whatever else may call."
)


class Credentials:
    """Tells who is let in."""

    def __init__(self, token: str | None, operator_token: str | None, sessions: Sessions) -> None:
        self._agents = _bearer(token)
        self._operators = _bearer(operator_token)
        self._sessions = sessions
        self._front = front_refusal(None if operator_token is None else CONSOLE_PATH)

    def refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request isn't let in, None if it is."""
        path = scope["path"]
        if self._operators is not None and lies_at(path, OPERATOR_PATH):
            return self._of_operator(scope, self._operators)
        if self._operators is not None and lies_at(path, CONSOLE_PATH):
            return self._of_console(scope, path)
        if self._agents is None or _shows(scope, self._agents):
            return None
        return self._front if is_for_person(scope) else UNAUTHORIZED

    def _of_operator(self, scope: Scope, operators: bytes) -> Refusal | None:
        if request_headers.has(scope, b"authorization") or not request_headers.is_reading(scope):
            return None if _shows(scope, operators) else UNAUTHORIZED
        return None if self._sessions.may_look(session_cookie(scope)) else UNAUTHORIZED

    def _of_console(self, scope: Scope, path: str) -> Refusal | None:
        is_reading = request_headers.is_reading(scope)
        if not is_reading and not _is_from_here(scope):
            return _NOT_FROM_HERE
        is_open = path == LOGIN_PATH or lies_at(path, STATIC_PATH)
        if is_open or self._sessions.may_look(session_cookie(scope)):
            return None
        return _log_in_first(scope) if is_reading else UNAUTHORIZED


def lies_at(path: str, place: str) -> bool:
    """Return whether `path` is `place` or beneath it."""
    return path == place or path.startswith(f"{place}/")


def session_cookie(scope: Scope) -> str | None:
    """Return the cookie of this listener's sessions, None without one."""
    return request_headers.cookie(scope, session_cookie_name(scope))


def session_cookie_name(scope: Scope) -> str:
    """Return a name of its own for each port: browsers don't tell cookies of different ports apart."""
    _host, port = scope.get("server") or ("", None)
    return f"codespace_operator_{port or 0}"


def _bearer(token: str | None) -> bytes | None:
    return None if token is None else f"Bearer {token}".encode()


def _shows(scope: Scope, credential: bytes) -> bool:
    return hmac.compare_digest(request_headers.only(scope, b"authorization").encode("latin-1"), credential)


def _is_from_here(scope: Scope) -> bool:
    """Return whether the page that sent this was served under the very name that is being asked."""
    _scheme, _, authority = request_headers.only(scope, b"origin").partition("://")
    return authority != "" and authority.lower() == request_headers.only(scope, b"host").lower()


def _log_in_first(scope: Scope) -> Refusal:
    query = scope["query_string"].decode("latin-1")
    wanted = quote(scope["path"] + (f"?{query}" if query else ""), safe="/")
    location = f"{LOGIN_PATH}?next={wanted}".encode("latin-1")
    return Refusal(303, "log_in_first", headers=((b"location", location), (b"cache-control", b"no-store")))
