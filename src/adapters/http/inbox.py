"""`/inbox`: people's side of steering as plain JSON, each route one command through the door.

It stands behind the guard like everything else here. No route opens a work or touches a hold: what is written is text,
never authority. Source: contract B6.5.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from codespace_es.codespace import Codespace
from codespace_es.command_handlers.inbox import (
    CancelIntentCommand,
    EditIntentCommand,
    IntentList,
    ListIntents,
    ListWorks,
    LookAtWork,
    QueueIntentCommand,
    ReorderIntentsCommand,
    StopWorkCommand,
    WorkList,
    WriteIntent,
)
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import ERROR_SPECS, CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId

Endpoint = Callable[[Request], Awaitable[Response]]

_STATUSES: Mapping[ErrorCode, int] = MappingProxyType({
    ErrorCode.WORK_NOT_FOUND: 404,
    ErrorCode.INTENT_NOT_FOUND: 404,
    ErrorCode.INTENT_ALREADY_CLAIMED: 409,
    ErrorCode.INTENT_REVISION_CONFLICT: 409,
    ErrorCode.WORK_CLOSED: 409,
    ErrorCode.UNAUTHORIZED: 403,
})

logger = logging.getLogger(__name__)


def inbox_routes(codespace: Codespace) -> list[Route]:
    """Return the routes; what the path names wins over a field of the body."""

    def route(method: str, path: str, command: type[Command], *, status: int = 200) -> Route:
        return Route(f"/inbox{path}", _endpoint(codespace, command, status), methods=[method])

    return [
        route("GET", "/works", ListWorks),
        route("GET", "/works/{work_id}", LookAtWork),
        route("GET", "/works/{work_id}/intents", ListIntents),
        route("POST", "/works/{work_id}/intents", WriteIntent, status=201),
        route("POST", "/works/{work_id}/reorder", ReorderIntentsCommand),
        route("POST", "/works/{work_id}/stop", StopWorkCommand),
        route("PATCH", "/intents/{intent_id}", EditIntentCommand),
        route("POST", "/intents/{intent_id}/queue", QueueIntentCommand),
        route("POST", "/intents/{intent_id}/cancel", CancelIntentCommand),
    ]


def _endpoint(codespace: Codespace, command: type[Command], status: int) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            asked = _read(command, await _fields(request))
            told = await codespace.handle(asked, _caller(codespace, request))
        except CodespaceError as refusal:
            return JSONResponse(refusal.to_wire(), _status_of(refusal.code))
        except Exception:
            incident = f"inc-{codespace.world.ids.uuid()}"
            logger.exception("%s: %s failed unexpectedly", incident, request.url.path)
            failure = CodespaceError(
                ErrorCode.INTERNAL, f"The inbox failed unexpectedly; incident {incident}.",
                detail={"incident": incident},
            )
            return JSONResponse(failure.to_wire(), _status_of(failure.code))
        return JSONResponse(_to_wire(told), status)

    return answer


async def _fields(request: Request) -> dict[str, Any]:
    """Return what the path says, and the query of a GET or else the body. Raises INVALID_ARGUMENT."""
    if request.method == "GET":
        return {**request.query_params, **request.path_params}
    body = await request.body()
    try:
        given = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise CodespaceError(ErrorCode.INVALID_ARGUMENT, f"The body isn't JSON: {error}.") from error
    if not isinstance(given, dict):
        raise CodespaceError(ErrorCode.INVALID_ARGUMENT, "The body has to be a JSON object.")
    present = {name: value for name, value in given.items() if value is not None}
    return {**present, **request.path_params}


def _read(command: type[Command], fields: Mapping[str, Any]) -> Command:
    """Return the command that `fields` describe. Raises INVALID_ARGUMENT, with the `field`."""
    try:
        return command.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in fault["loc"])
    raise CodespaceError(
        ErrorCode.INVALID_ARGUMENT, f"{field or 'body'}: {fault['msg']}.", detail={"field": field}
    )


def _caller(codespace: Codespace, request: Request) -> Caller:
    client = request.headers.get("user-agent")
    return Caller(
        "http", RequestId(f"req-{codespace.world.ids.uuid()}"),
        client[: limits.LABEL_CHARACTERS_MAX] if client else None,
    )


def _to_wire(answer: Answer) -> object:
    """Return the JSON value of an answer; of a list its items, each as it is alone."""
    match answer:
        case WorkList(works=items) | IntentList(intents=items):
            return [each.to_wire() for each in items]
        case _:
            return answer.to_wire()


def _status_of(code: ErrorCode) -> int:
    """Return the HTTP status: 400 for every refusal that has none of its own here, 5xx for what isn't one."""
    own = ERROR_SPECS[code].http_status
    return _STATUSES.get(code, own if own >= 500 else 400)
