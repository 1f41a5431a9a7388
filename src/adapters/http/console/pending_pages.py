"""Previews that tools have staged and nobody has resolved: the list, what one would change now, applying, discarding.

The next one of each stack may be resolved, by the agent that was shown it or here. What the operator applies is never
held. Source: contract A4; the pending-actions paper, *resolve*.
"""

from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.http.console.acting import Act, Acting, Form, one
from adapters.http.console.rendering import page
from codespace_es.command_handlers.previewing import AskPending, ListPending, PendingList, PendingPreview
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_PATH = "/console/pending"


def pending_routes(acting: Acting) -> list[Route]:
    """Return the routes."""

    async def show_all(request: Request) -> Response:
        pending = await acting.ask(request, ListPending())
        assert isinstance(pending, PendingList)
        return page(request, "previews.html", actions=pending.actions, said=request.query_params.get("said"))

    async def show(request: Request) -> Response:
        action_id = request.path_params["action_id"]
        try:
            found = await acting.ask(request, AskPending(id=action_id))
        except CodespaceError as refusal:
            if refusal.code is not ErrorCode.NO_PENDING_ACTION:
                raise
            return page(request, "preview_over.html", refusal=refusal, action_id=action_id)
        assert isinstance(found, PendingPreview)
        return page(request, "preview.html", found=found, action=found.action)

    def resolves(action: Literal["apply", "discard"]) -> Act:
        async def resolve(request: Request, form: Form) -> str:
            reason = one(form, "reason").strip()
            asked = ResolveAction(action=action, id=request.path_params["action_id"], reason=reason)
            done = await acting.ask(request, asked)
            assert isinstance(done, ResolveResult)
            if done.operation_id is not None:
                return f"/console/operations/{done.operation_id}?said=applied"
            return f"{_PATH}?said={done.outcome}"

        return resolve

    return [
        acting.shows(_PATH, show_all),
        acting.shows(f"{_PATH}/{{action_id}}", show),
        acting.acts(f"{_PATH}/{{action_id}}/apply", resolves("apply")),
        acting.acts(f"{_PATH}/{{action_id}}/discard", resolves("discard")),
    ]
