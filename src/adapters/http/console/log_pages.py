"""What happened: the overview, the timeline with the state of any moment, an operation and its undo, verification."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.http.audit import (
    AskOperation,
    AskState,
    AskTimeline,
    AskVerification,
    LogState,
    OperationStory,
    Page,
    Verify,
)
from adapters.http.console.acting import Acting, Form
from adapters.http.console.rendering import page
from adapters.http.json_calls import read_command
from codespace_es.command_handlers.asking import ListHolds, OpenHolds
from codespace_es.command_handlers.inbox import ListWorks, WorkList
from codespace_es.command_handlers.observing import ListProcesses, ProcessList
from codespace_es.command_handlers.previewing import ListPending, PendingList
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.patch_result import PatchResult

_FILTERS = ("text", "topic", "operation", "workspace", "session")
_OVERVIEW_ENTRIES = 12
_OVERVIEW_OPERATIONS = 8
_PAGE_ENTRIES = 50
_OPERATION = "/console/operations/{operation_id}"


def log_routes(acting: Acting) -> list[Route]:
    """Return the routes."""
    pages = _Pages(acting)
    return [
        acting.shows("/console", pages.show_overview),
        acting.shows("/console/timeline", pages.show_timeline),
        acting.shows(_OPERATION, pages.show_operation),
        acting.acts(f"{_OPERATION}/preview", pages.preview_undo),
        acting.acts(f"{_OPERATION}/undo", pages.undo),
        acting.shows("/console/verification", pages.show_verification),
        acting.acts("/console/verification", pages.verify),
    ]


class _Pages:
    def __init__(self, acting: Acting) -> None:
        self._acting = acting

    async def show_overview(self, request: Request) -> Response:
        ask = self._acting.ask
        holds, works = await ask(request, ListHolds()), await ask(request, ListWorks())
        processes, pending = await ask(request, ListProcesses()), await ask(request, ListPending())
        assert isinstance(pending, PendingList)
        assert isinstance(holds, OpenHolds)
        assert isinstance(works, WorkList)
        assert isinstance(processes, ProcessList)
        newest = await self._timeline(request, AskTimeline(limit=_OVERVIEW_ENTRIES))
        begun = await self._timeline(request, AskTimeline(limit=_OVERVIEW_OPERATIONS, topic="operation.minted"))
        operations = [
            await ask(request, ReportOperation(operation_id=each.stream_id))
            for each in reversed(begun.entries)
        ]
        return page(
            request, "overview.html", holds=holds.approvals, processes=processes.processes,
            pending=pending.actions, works=[each for each in works.works if each.state != "closed"],
            newest=newest, operations=operations,
            verification=await ask(request, AskVerification()),
            workspaces=list(self._acting.side.codespace.world.workspaces.values()),
        )

    async def _timeline(self, request: Request, asked: AskTimeline) -> Page:
        answer = await self._acting.ask(request, asked)
        assert isinstance(answer, Page)
        return answer

    async def show_timeline(self, request: Request) -> Response:
        query: dict[str, Any] = {name: value for name, value in request.query_params.items() if value}
        wanted = {name: query[name] for name in _FILTERS if name in query}
        places: dict[str, Any] = {name: query[name] for name in ("before", "after") if name in query}
        asked = read_command(AskTimeline, {**wanted, **places, "limit": _PAGE_ENTRIES}, is_text=True)
        entries = await self._acting.ask(request, asked)
        moment = {"position": query["position"]} if "position" in query else {}
        state, note = None, None
        try:
            state = await self._acting.ask(request, read_command(AskState, moment, is_text=True))
            assert isinstance(state, LogState)
        except CodespaceError as error:
            if error.code is not ErrorCode.INVALID_ARGUMENT:
                raise
            note = error.message
        return page(
            request, "timeline.html", entries=entries, wanted=wanted, state=state, note=note, is_newest=not places,
            written={name: wanted.get(name, "") for name in _FILTERS},
        )

    async def show_operation(self, request: Request) -> Response:
        story = await self._acting.ask(request, AskOperation(operation_id=request.path_params["operation_id"]))
        assert isinstance(story, OperationStory)
        return page(request, "operation.html", story=story, said=request.query_params.get("said"))

    async def preview_undo(self, request: Request, _form: Form) -> Response:
        operation_id = request.path_params["operation_id"]
        command = RevertOperation(operation_id=operation_id, check_only=True)
        return page(
            request, "undo.html", operation_id=operation_id, preview=await self._acting.ask(request, command)
        )

    async def undo(self, request: Request, _form: Form) -> str:
        done = await self._acting.ask(request, RevertOperation(operation_id=request.path_params["operation_id"]))
        assert isinstance(done, PatchResult)
        return f"/console/operations/{done.operation_id}?said=undone"

    async def show_verification(self, request: Request) -> Response:
        return page(request, "verification.html", found=await self._acting.ask(request, AskVerification()))

    async def verify(self, request: Request, _form: Form) -> str:
        await self._acting.ask(request, Verify())
        return "/console/verification"
