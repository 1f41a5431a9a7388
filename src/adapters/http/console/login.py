"""Logging in and out: the operator's token once, then a session; and the files that pages ask for.

The page that follows the login is the only one that ever holds the session's key; its script keeps it (`sessions`).
"""

import hmac

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from adapters.http.console.acting import Acting, Form, one, read_form
from adapters.http.console.rendering import PAGE_HEADERS, page, static_files
from adapters.http.credentials import (
    CONSOLE_PATH,
    LOGIN_PATH,
    STATIC_PATH,
    lies_at,
    session_cookie,
    session_cookie_name,
)
from adapters.http.sessions import SESSION_SECONDS_MAX
from codespace_es.vocabulary.errors import CodespaceError


def login_routes(acting: Acting, operator_token: str) -> list[Route]:
    """Return the routes; they are all that the guard lets anybody reach, but for the way out."""

    async def ask(request: Request) -> Response:
        return page(request, "login.html", next=_usable(request.query_params.get("next", "")), is_wrong=False)

    async def log_in(request: Request) -> Response:
        try:
            form = await read_form(request)
        except CodespaceError:
            form = {}
        place = _usable(one(form, "next"))
        given = one(form, "token").strip().encode()
        if not hmac.compare_digest(given, operator_token.encode()):
            return page(request, "login.html", status=401, next=place, is_wrong=True)
        opened = acting.sessions.open()
        answer = page(request, "logged_in.html", next=place, key=opened.key)
        answer.set_cookie(
            session_cookie_name(request.scope), opened.cookie, max_age=SESSION_SECONDS_MAX, path="/", httponly=True,
            samesite="strict", secure=request.headers["origin"].startswith("https:"),
        )
        return answer

    async def log_out(request: Request, _form: Form) -> str:
        acting.sessions.close(session_cookie(request.scope))
        return LOGIN_PATH

    async def send_file(request: Request) -> Response:
        found = static_files().get(request.path_params["name"])
        if found is None:
            return Response(status_code=404)
        headers = {**PAGE_HEADERS, "cache-control": "public, max-age=86400"}  # its address changes with its content
        return Response(found[0], 200, headers, found[1])

    async def begin(_request: Request) -> Response:
        return RedirectResponse(CONSOLE_PATH, 303, PAGE_HEADERS)

    return [
        Route(LOGIN_PATH, ask, methods=["GET"]),
        Route(LOGIN_PATH, log_in, methods=["POST"]),
        acting.acts(f"{CONSOLE_PATH}/logout", log_out),
        Route(f"{STATIC_PATH}/{{name}}", send_file, methods=["GET"]),
        Route(f"{CONSOLE_PATH}/", begin, methods=["GET"]),
    ]


def _usable(place: str) -> str:
    """Return where to go after the login: a page of the console, whatever was asked for."""
    path = place.partition("?")[0]
    is_inside = lies_at(path, CONSOLE_PATH) and not lies_at(path, LOGIN_PATH) and ".." not in path
    return place if is_inside and place.isprintable() and "\\" not in place else CONSOLE_PATH
