"""The OpenAPI 3.1 document of `/inbox` and `/operator`, made from the same tables as their routes.

Summaries, parameters and schemas are those of the commands and answers, so that it can't say anything else than the
code does. What doesn't apply is left out of an answer, so no schema has null.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from adapters.http.inbox import INBOX_CALLS
from adapters.http.inbox import STATUSES as INBOX_STATUSES
from adapters.http.json_calls import STATUSES, JsonCall, Statuses
from adapters.http.operator import OPERATOR_CALLS
from codespace_es.vocabulary.errors import ErrorCode

_TEMPLATE = "#/components/schemas/{model}"
_ALWAYS_EXPECTED = (ErrorCode.INVALID_ARGUMENT, ErrorCode.STORE_UNAVAILABLE, ErrorCode.INTERNAL)
_LAST_EVENT_ID = {
    "name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"},
    "description": "Go on behind this event; what a browser sends by itself after a lost connection.",
}


class Refusal(BaseModel):
    """Why a call was refused or failed."""

    code: str = Field(description="One of the error codes.")
    message: str = Field(description="One sentence.")
    retry: str = Field(description="never, after_change or now.")
    remedy: str = Field(description="The reader's next move.")
    operation_id: str | None = Field(default=None, description="The operation that it is about.")
    approval_id: str | None = Field(default=None, description="The hold that it is about.")
    process_id: str | None = Field(default=None, description="The command that it is about.")
    detail: dict[str, Any] | None = Field(default=None, description="What else is known.")


class GuardRefusal(BaseModel):
    """Why a request wasn't looked at."""

    error: str = Field(description="One word for programs.")
    message: str | None = Field(default=None, description="One sentence.")


@cache
def openapi_document() -> Mapping[str, Any]:
    """Return the document."""
    calls = [*INBOX_CALLS, *OPERATOR_CALLS]
    models: set[type[BaseModel]] = {Refusal, GuardRefusal}
    for call in calls:
        models |= {call.command, _told(call)}
    ordered = sorted(models, key=lambda model: model.__name__)
    _names, definitions = models_json_schema([(model, "validation") for model in ordered], ref_template=_TEMPLATE)
    schemas = _without_null(definitions["$defs"])
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for call in calls:
        paths[call.path][call.method.lower()] = _operation(call, schemas)
    used = _used_by(paths, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CodeSpace ES over HTTP",
            "version": "1",
            "summary": "The inbox, behind the agents' token, and the operator's API, behind the operator's.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {name: schemas[name] for name in sorted(used)},
            "securitySchemes": {
                "agents": {"type": "http", "scheme": "bearer", "description": "CODESPACE_HTTP_TOKEN, if one is set."},
                "operator": {"type": "http", "scheme": "bearer", "description": "CODESPACE_OPERATOR_TOKEN."},
            },
        },
    }


def openapi_route(place: str) -> Route:
    """Return the route by which `place` serves the document: it is the same behind either token."""

    async def answer(_request: Request) -> Response:
        return JSONResponse(openapi_document())

    return Route(f"{place}/openapi.json", answer, methods=["GET"])


def _operation(call: JsonCall, schemas: Mapping[str, Any]) -> dict[str, Any]:
    is_inbox = call in INBOX_CALLS
    given = schemas[call.command.__name__]
    properties = given.get("properties", {})
    required = set(given.get("required", ()))
    in_body = [name for name in properties if name not in (*call.in_path, *call.fixed)]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": properties[name]} for name in call.in_path
    ]
    operation: dict[str, Any] = {
        "operationId": _operation_id(call),
        "summary": call.summary or (call.command.__doc__ or "").partition("\n")[0],
        "tags": ["inbox" if is_inbox else "operator"],
        "security": [{"agents": []}, {}] if is_inbox else [{"operator": []}],
    }
    if call.method == "GET":
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": properties[name]} for name in in_body
        ]
    elif in_body:
        body = {
            "type": "object",
            "properties": {name: properties[name] for name in in_body},
            "required": [name for name in in_body if name in required],
        }
        operation["requestBody"] = {
            "required": bool(body["required"]), "content": {"application/json": {"schema": body}},
        }
    if call.is_stream:
        parameters.append(_LAST_EVENT_ID)
    if parameters:
        operation["parameters"] = parameters
    return {**operation, "responses": _responses(call, INBOX_STATUSES if is_inbox else STATUSES)}


def _operation_id(call: JsonCall) -> str:
    words = [word.strip("{}") for word in call.path.split("/") if word]
    return "_".join([call.method.lower(), *words])


def _responses(call: JsonCall, statuses: Statuses) -> dict[str, Any]:
    answer: dict[str, Any] = {"$ref": _TEMPLATE.format(model=_told(call).__name__)}
    if call.listed is not None:
        answer = {"type": "array", "items": answer}
    description = (call.answer.__doc__ or "").partition("\n")[0]
    if call.is_stream:
        description = "Server-sent events: `id` is the position, `data` such an object."
    kind = "text/event-stream" if call.is_stream else "application/json"
    responses: dict[str, Any] = {
        str(call.status): {"description": description, "content": {kind: {"schema": answer}}},
        "401": _refused("Without the right token.", GuardRefusal),
        "413": _refused("The body is too large.", GuardRefusal),
    }
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in (*_ALWAYS_EXPECTED, *call.refusals):
        by_status[statuses[code]].append(code.value)
    for status, codes in sorted(by_status.items()):
        told = ", ".join(f"`{code}`" for code in codes)
        responses[str(status)] = _refused(told, Refusal, *([GuardRefusal] if status == 400 else []))
    return dict(sorted(responses.items()))


def _refused(description: str, *models: type[BaseModel]) -> dict[str, Any]:
    choices = [{"$ref": _TEMPLATE.format(model=model.__name__)} for model in models]
    schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _told(call: JsonCall) -> type[BaseModel]:
    """Return the model of what is told; of a list that of its items."""
    if call.listed is None:
        return call.answer
    field = call.answer.model_fields[call.listed].annotation
    return next(each for each in getattr(field, "__args__", ()) if isinstance(each, type))


def _without_null(schema: Any) -> Any:
    """Return a schema in which what may be absent is never null."""
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_without_null(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {name: _without_null(value) for name, value in schema.items() if (name, value) != ("default", None)}
    choices = kept.get("anyOf")
    if "null" in kept.get("type", ()):
        del kept["type"]  # here null says something
    elif isinstance(choices, list):
        left = [each for each in choices if each != {"type": "null"}]
        if len(left) == 1:
            del kept["anyOf"]
            kept = {**left[0], **kept}
        else:
            kept["anyOf"] = left
    return kept


def _used_by(paths: Any, schemas: Mapping[str, Any]) -> set[str]:
    """Return the names of the schemas that `paths` refer to, or that those refer to."""
    used: set[str] = set()
    waiting = set(_references(paths))
    while waiting:
        name = waiting.pop()
        used.add(name)
        waiting |= set(_references(schemas[name])) - used
    return used


def _references(part: Any) -> Iterable[str]:
    if isinstance(part, Mapping):
        for name, value in part.items():
            if name == "$ref":
                yield str(value).rpartition("/")[2]
            else:
                yield from _references(value)
    elif isinstance(part, list):
        for each in part:
            yield from _references(each)
