"""What waits for a decision: the list, one hold with what it would do to the files as they are, and the decision."""

from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.http.console.acting import Act, Acting, Form, one
from adapters.http.console.rendering import page
from codespace_es.command_handlers.asking import AskApproval, ListHolds, OpenHolds
from codespace_es.command_handlers.deciding import ResolveHold
from codespace_es.projections.approval_status import ApprovalReport

_PATH = "/console/approvals"


def approval_routes(acting: Acting) -> list[Route]:
    """Return the routes."""

    async def show_all(request: Request) -> Response:
        holds = await acting.ask(request, ListHolds())
        assert isinstance(holds, OpenHolds)
        return page(request, "approvals.html", holds=holds.approvals)

    async def show(request: Request) -> Response:
        hold = await acting.ask(request, AskApproval(approval_id=request.path_params["approval_id"]))
        assert isinstance(hold, ApprovalReport)
        return page(request, "approval.html", hold=hold, said=request.query_params.get("said"))

    def decides(decision: Literal["grant", "deny"]) -> Act:
        async def decide(request: Request, form: Form) -> str:
            approval_id = request.path_params["approval_id"]
            reason = one(form, "reason").strip() or None
            await acting.ask(request, ResolveHold(approval_id=approval_id, decision=decision, reason=reason))
            return f"{_PATH}/{approval_id}?said={decision}"

        return decide

    return [
        acting.shows(_PATH, show_all),
        acting.shows(f"{_PATH}/{{approval_id}}", show),
        acting.acts(f"{_PATH}/{{approval_id}}/grant", decides("grant")),
        acting.acts(f"{_PATH}/{{approval_id}}/deny", decides("deny")),
    ]
