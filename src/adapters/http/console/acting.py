"""What every page of the console does: ask as the operator in a browser, act when the key is shown, tell refusals.

An act is a form; after it the browser is sent to a page that shows what came of it, so reloading never acts again.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qs

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from adapters.http.console.rendering import PAGE_HEADERS, page
from adapters.http.credentials import session_cookie
from adapters.http.json_calls import STATUSES, JsonSide, caller_of, incident_of
from adapters.http.sessions import Sessions
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_FIELDS_MAX = 10_000
_CLIENT = "console"
"""By this name the log knows it; what browsers call themselves tells nobody who acted."""

Show = Callable[[Request], Awaitable[Response]]
Form = Mapping[str, list[str]]
Act = Callable[[Request, Form], Awaitable[str | Response]]
"""Does what a form asks for, and returns the path of the page that shows it, or that page if it is shown once."""


@dataclass(frozen=True, slots=True)
class Acting:
    """The operator in a browser."""

    side: JsonSide
    sessions: Sessions

    async def ask(self, request: Request, command: Command) -> BaseModel:
        """Return the answer to the operator. Raises CodespaceError."""
        return await self.side.handle(command, replace(caller_of(self.side.codespace, request, "web"), client=_CLIENT))

    def shows(self, path: str, show: Show) -> Route:
        """Return the route of a page; what it is refused is a page too."""

        async def answer(request: Request) -> Response:
            try:
                # Before what is shown is read, so that no event falls between the page and its stream of events.
                head, _hash = await self.side.codespace.world.log.head()
                request.state.position = head
                return await show(request)
            except StoreUnavailableError as error:
                told = f"The event log is unavailable: {str(error).rstrip('.')}."
                return _refusal_page(request, CodespaceError(ErrorCode.STORE_UNAVAILABLE, told))
            except CodespaceError as refusal:
                return _refusal_page(request, refusal)
            except Exception:
                return _refusal_page(request, incident_of(self.side.codespace, request))

        return Route(path, answer, methods=["GET"])

    def acts(self, path: str, act: Act) -> Route:
        """Return the route of a form, which has to show the session's key."""

        async def answer(request: Request) -> Response:
            try:
                form = await read_form(request)
                if not self.sessions.may_act(session_cookie(request.scope), one(form, "key")):
                    return page(request, "no_key.html", status=403)
                shown = await act(request, form)
                return RedirectResponse(shown, 303, PAGE_HEADERS) if isinstance(shown, str) else shown
            except CodespaceError as refusal:
                return _refusal_page(request, refusal)
            except Exception:
                return _refusal_page(request, incident_of(self.side.codespace, request))

        return Route(path, answer, methods=["POST"])


async def read_form(request: Request) -> Form:
    """Return the fields of a form, with line ends as they are elsewhere. Raises INVALID_ARGUMENT."""
    body = await request.body()
    try:
        read = parse_qs(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX
        )
    except ValueError as error:
        raise CodespaceError(ErrorCode.INVALID_ARGUMENT, "The form can't be read: it isn't text.") from error
    return {name: [value.replace("\r\n", "\n") for value in values] for name, values in read.items()}


def one(form: Form, name: str) -> str:
    """Return a field that is there once, else an empty text."""
    values = form.get(name, [])
    return values[0] if len(values) == 1 else ""


def number(form: Form, name: str) -> int:
    """Return a field as a number. Raises INVALID_ARGUMENT."""
    text = one(form, name)
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise CodespaceError(ErrorCode.INVALID_ARGUMENT, f"{name}: it isn't a number.", detail={"field": name})
    return int(text)


def _refusal_page(request: Request, refusal: CodespaceError) -> Response:
    return page(request, "refusal.html", status=STATUSES[refusal.code], refusal=refusal.to_wire())
