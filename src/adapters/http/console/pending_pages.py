"""Previews that tools have staged and nobody has resolved: what they would change, and discarding the next one.

Applying is left to the agent that was shown the preview, and to the operator's API.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.http.console.acting import Acting, Form, one
from adapters.http.console.rendering import page
from codespace_es.command_handlers.previewing import ListPending, PendingList
from codespace_es.command_handlers.resolve_request import ResolveAction

_PATH = "/console/pending"


def pending_routes(acting: Acting) -> list[Route]:
    """Return the routes."""

    async def show_all(request: Request) -> Response:
        pending = await acting.ask(request, ListPending())
        assert isinstance(pending, PendingList)
        return page(request, "pending.html", actions=pending.actions, said=request.query_params.get("said"))

    async def discard(request: Request, form: Form) -> str:
        reason = one(form, "reason").strip()
        await acting.ask(request, ResolveAction(action="discard", id=request.path_params["action_id"], reason=reason))
        return f"{_PATH}?said=discarded"

    return [acting.shows(_PATH, show_all), acting.acts(f"{_PATH}/{{action_id}}/discard", discard)]
