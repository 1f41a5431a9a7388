"""Steering from a browser: the works, and one work with its intents, to be written, queued, ordered, taken back."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.http.console.acting import Acting, Form, number, one
from adapters.http.console.rendering import page
from adapters.http.json_calls import read_command
from codespace_es.command_handlers.inbox import (
    CancelIntentCommand,
    EditIntentCommand,
    IntentList,
    ListIntents,
    ListWorks,
    LookAtWork,
    QueueIntentCommand,
    ReleaseIntentCommand,
    ReorderIntentsCommand,
    StopAnswer,
    StopWorkCommand,
    WorkList,
    WriteIntent,
)
from codespace_es.command_handlers.steering import IntentAnswer
from codespace_es.vocabulary.answer import Command

_PATH = "/console/works"
_WORK = f"{_PATH}/{{work_id}}"
_INTENT = f"{_WORK}/intents/{{intent_id}}"


def work_routes(acting: Acting) -> list[Route]:
    """Return the routes."""
    pages = _Pages(acting)
    return [
        acting.shows(_PATH, pages.show_all),
        acting.shows(_WORK, pages.show),
        acting.acts(f"{_WORK}/write", pages.write),
        acting.acts(f"{_WORK}/reorder", pages.reorder),
        acting.acts(f"{_WORK}/stop", pages.stop),
        acting.acts(f"{_INTENT}/edit", pages.edit),
        acting.acts(f"{_INTENT}/queue", pages.changing(
            lambda intent_id, form: QueueIntentCommand(intent_id=intent_id, revision=number(form, "revision"))
        )),
        acting.acts(f"{_INTENT}/cancel", pages.changing(
            lambda intent_id, _form: CancelIntentCommand(intent_id=intent_id)
        )),
        acting.acts(f"{_INTENT}/release", pages.changing(
            lambda intent_id, _form: ReleaseIntentCommand(intent_id=intent_id)
        )),
    ]


class _Pages:
    def __init__(self, acting: Acting) -> None:
        self._acting = acting

    async def show_all(self, request: Request) -> Response:
        works = await self._acting.ask(request, ListWorks())
        assert isinstance(works, WorkList)
        return page(request, "works.html", works=works.works)

    async def show(self, request: Request) -> Response:
        work_id = request.path_params["work_id"]
        work = await self._acting.ask(request, LookAtWork(work_id=work_id))
        listed = await self._acting.ask(request, ListIntents(work_id=work_id))
        assert isinstance(listed, IntentList)
        own = [each for each in listed.intents if each.work_id == work_id]
        waiting = [each for each in listed.intents if each.work_id is None and each.state in ("draft", "queued")]
        by_state: dict[str, Any] = {
            name: [each for each in own if each.state == name] for name in ("claimed", "queued", "draft")
        }
        return page(
            request, "work.html", work=work, **by_state, waiting=waiting,
            over=[each for each in own if each.state not in by_state], said=request.query_params.get("said"),
            ended=request.query_params.get("ended"), elsewhere=request.query_params.get("elsewhere"),
        )

    async def write(self, request: Request, form: Form) -> str:
        given: dict[str, Any] = {name: one(form, name) for name in ("body", "kind", "delivery")}
        given["work_id"] = request.path_params["work_id"]
        drafted = await self._acting.ask(request, read_command(WriteIntent, given))
        assert isinstance(drafted, IntentAnswer)
        if one(form, "queue") and drafted.state == "draft":
            await self._acting.ask(
                request, QueueIntentCommand(intent_id=drafted.intent_id, revision=drafted.revision)
            )
        return _back(request, "written", drafted.intent_id)

    async def edit(self, request: Request, form: Form) -> str:
        intent_id = request.path_params["intent_id"]
        given = {
            "intent_id": intent_id, "revision": number(form, "revision"), "body": one(form, "body"),
            "delivery": one(form, "delivery"),
        }
        await self._acting.ask(request, read_command(EditIntentCommand, given))
        return _back(request, "changed", intent_id)

    def changing(self, command: Callable[[str, Form], Command]) -> Callable[[Request, Form], Awaitable[str]]:
        """Return what makes one change of an intent."""

        async def change(request: Request, form: Form) -> str:
            intent_id = request.path_params["intent_id"]
            await self._acting.ask(request, command(intent_id, form))
            return _back(request, "changed", intent_id)

        return change

    async def reorder(self, request: Request, form: Form) -> str:
        order = list(form.get("intent_ids", ()))
        way, _, moved = one(form, "move").partition(":")
        if moved in order:
            place = order.index(moved)
            to = max(0, place - 1) if way == "up" else min(len(order) - 1, place + 1)
            order.insert(to, order.pop(place))
        command = ReorderIntentsCommand(work_id=request.path_params["work_id"], intent_ids=tuple(order))
        await self._acting.ask(request, command)
        return _back(request, "reordered", moved)

    async def stop(self, request: Request, form: Form) -> str:
        reason = one(form, "reason").strip() or None
        command = StopWorkCommand(work_id=request.path_params["work_id"], reason=reason)
        stopped = cast(StopAnswer, await self._acting.ask(request, command))
        place = _back(request, "stopped", "")
        return f"{place}&ended={stopped.killed}&elsewhere={stopped.elsewhere}"


def _back(request: Request, said: str, intent_id: str) -> str:
    """Return the path of the work's page, at an intent of it."""
    place = f"{_PATH}/{request.path_params['work_id']}?said={said}"
    return f"{place}#{intent_id}" if intent_id else place
