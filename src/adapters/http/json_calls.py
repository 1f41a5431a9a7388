"""Plain JSON over HTTP: a table of calls, from which both the routes and the OpenAPI document are made.

A call is a command for the door, read from the path, and from the query of a GET or else from the body; what the path
names wins. Refusals are the error body of the tools, with the status of their code.
"""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from codespace_es.codespace import Codespace
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import ERROR_SPECS, CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Channel
from codespace_es.vocabulary.identifiers import RequestId

Answerer = Callable[[Any, Caller], Awaitable[BaseModel]]
"""Answers one kind of command."""

Statuses = Mapping[ErrorCode, int]

STATUSES: Statuses = MappingProxyType({code: spec.http_status for code, spec in ERROR_SPECS.items()})
"""The status that belongs to each code."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One method of one path."""

    method: str
    path: str
    """With names in braces, which are fields of the command."""
    command: type[Command]
    answer: type[BaseModel]
    refusals: tuple[ErrorCode, ...] = ()
    """Codes that its callers have to expect, beside INVALID_ARGUMENT and those of a failing server."""
    status: int = 200
    listed: str | None = None
    """Field of the answer that is sent alone, as a list."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the path stands for, and nobody can send."""
    summary: str | None = None
    """What it does, where the command's own sentence says too much."""
    is_stream: bool = False
    """It is answered by a stream of events, whose route isn't made here."""

    @property
    def in_path(self) -> tuple[str, ...]:
        """The fields that the path names."""
        return tuple(re.findall(r"{(\w+)}", self.path))


@dataclass(frozen=True, slots=True)
class JsonSide:
    """Who answers, and how what happens is named."""

    codespace: Codespace
    channel: Channel = "http"
    statuses: Statuses = field(default_factory=lambda: STATUSES)
    answerers: Mapping[type[Command], Answerer] = field(default_factory=dict)
    """For commands that aren't the door's."""

    async def handle(self, command: Command, caller: Caller) -> BaseModel:
        """Return the answer. Raises CodespaceError."""
        own = self.answerers.get(type(command))
        return await (self.codespace.handle(command, caller) if own is None else own(command, caller))


def routes_of(side: JsonSide, calls: Sequence[JsonCall]) -> list[Route]:
    """Return a route for each call that isn't a stream."""
    return [
        Route(call.path, _endpoint(side, call), methods=[call.method]) for call in calls if not call.is_stream
    ]


def _endpoint(side: JsonSide, call: JsonCall) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            command = read_command(call.command, {**await _fields(request), **call.fixed}, is_text=_is_get(request))
            told = await side.handle(command, caller_of(side.codespace, request, side.channel))
        except CodespaceError as refusal:
            return refused(refusal, side.statuses)
        except Exception:
            return refused(incident_of(side.codespace, request), side.statuses)
        return JSONResponse(to_wire(call, told), call.status)

    return answer


async def _fields(request: Request) -> dict[str, Any]:
    """Return what the path says, and the query of a GET or else the body. Raises INVALID_ARGUMENT."""
    if _is_get(request):
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


def _is_get(request: Request) -> bool:
    return request.method in ("GET", "HEAD")


def read_command(command: type[Command], fields: Mapping[str, Any], *, is_text: bool = False) -> Command:
    """Return the command that `fields` describe; `is_text` if numbers come as text. Raises INVALID_ARGUMENT."""
    try:
        if is_text:
            return command.model_validate_strings({name: str(value) for name, value in fields.items()})
        return command.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    raise CodespaceError(
        ErrorCode.INVALID_ARGUMENT, f"{place or 'body'}: {fault['msg']}.", detail={"field": place}
    )


def caller_of(codespace: Codespace, request: Request, channel: Channel) -> Caller:
    """Return on whose behalf a request is handled."""
    client = request.headers.get("user-agent")
    return Caller(
        channel, RequestId(f"req-{codespace.world.ids.uuid()}"),
        client[: limits.LABEL_CHARACTERS_MAX] if client else None,
    )


def incident_of(codespace: Codespace, request: Request) -> CodespaceError:
    """Return what is told of an exception that nobody expected; its traceback goes to the server's own log."""
    incident = f"inc-{codespace.world.ids.uuid()}"
    logger.exception("%s: %s failed unexpectedly", incident, request.url.path)
    return CodespaceError(
        ErrorCode.INTERNAL, f"The server failed unexpectedly; incident {incident}.", detail={"incident": incident}
    )


def refused(refusal: CodespaceError, statuses: Statuses) -> Response:
    """Return the answer that tells a refusal."""
    return JSONResponse(refusal.to_wire(), statuses[refusal.code])


def to_wire(call: JsonCall, answer: BaseModel) -> object:
    """Return the JSON value of an answer; of a list its items, each as it is alone."""
    if call.listed is not None:
        return [_alone(each) for each in getattr(answer, call.listed)]
    return _alone(answer)


def _alone(answer: BaseModel) -> dict[str, Any]:
    if isinstance(answer, Answer):
        return answer.to_wire()
    return answer.model_dump(mode="json", exclude_none=True)
