"""What a tool has to have, and reading the arguments of a call by its own schema."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import jsonschema
from referencing import Registry as SchemaRegistry
from referencing.exceptions import Unresolvable

from adapters.tool_host.child.telling import describe, to_json
from codespace_es.tools import CodespaceError, ErrorCode
from codespace_es.vocabulary import limits

if TYPE_CHECKING:
    from pydantic import BaseModel

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ADDED: Final = ("workspace_id", "work_id")
_MISSING: Final = object()
_MISSING_ARGUMENT: Final = "it is missing"
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_NO_OTHER_DOCUMENTS: Final[SchemaRegistry[Any]] = SchemaRegistry()
"""What a schema may refer to beyond itself: nothing is ever fetched."""


class ToolProblemError(Exception):
    """A tool can't be used. The text is one sentence for its author."""


@dataclass(frozen=True, slots=True)
class LoadedTool:
    """A tool that can be called."""

    name: str
    label: str
    description: str
    schema: Mapping[str, Any]
    model: "type[BaseModel] | None"
    """None: the schema was given itself."""
    annotations: Mapping[str, Any]
    timeout: float
    execute: Callable[..., Any]

    def read(self, given: Mapping[str, Any]) -> Any:
        """Return the arguments as `execute` takes them. Raises CodespaceError: INVALID_ARGUMENT."""
        if self.model is not None:
            from pydantic import ValidationError

            try:
                return self.model.model_validate(given)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                is_missing = first["type"] == "missing"
                raise _invalid(first["loc"], _MISSING_ARGUMENT if is_missing else first["msg"]) from error
        validator = jsonschema.Draft202012Validator(self.schema, registry=_NO_OTHER_DOCUMENTS)
        try:
            fault = jsonschema.exceptions.best_match(validator.iter_errors(given))
        except Unresolvable as error:
            raise CodespaceError(
                ErrorCode.TOOL_FAILED, f"The schema of {self.name} refers to what isn't in it: {error}."
            ) from error
        if fault is not None:
            raise _invalid(*_place_and_message(fault, given))
        return dict(given)

    def to_wire(self) -> dict[str, Any]:
        """Return what the server is told of it."""
        return {
            "name": self.name, "label": self.label, "description": self.description, "parameters": self.schema,
            "annotations": self.annotations, "timeout": self.timeout,
        }


def _place_and_message(
    fault: jsonschema.ValidationError, given: Mapping[str, Any]
) -> tuple[tuple[str | int, ...], str]:
    """Return which argument is wrong, and how."""
    place = tuple(fault.absolute_path)
    if fault.validator == "required" and not place:
        return (next(name for name in fault.validator_value if name not in given),), _MISSING_ARGUMENT
    return place, fault.message


def check_tool(given: Any) -> LoadedTool:
    """Return the tool that `given`, an object or mapping, describes. Raises ToolProblemError."""
    if given is None:
        raise ToolProblemError("create_tool returned None; return a tool or a list of tools.")
    execute = _field(given, "execute")
    if not callable(execute):
        raise ToolProblemError(f"execute can't be called: it is a {type(execute).__name__}.")
    name = _text(given, "name")
    if _NAME.fullmatch(name) is None:
        raise ToolProblemError(f"its name {name[:80]!r} can't be used: take 1 to 64 letters, digits, '_' or '-'.")
    schema, model = _schema(_field(given, "parameters"))
    return LoadedTool(
        name=name,
        label=_text(given, "label"),
        description=_text(given, "description"),
        schema=schema,
        model=model,
        annotations=_annotations(_field(given, "annotations", default=None)),
        timeout=_timeout(_field(given, "timeout", default=None)),
        execute=execute,
    )


def _field(given: Any, name: str, *, default: Any = _MISSING) -> Any:
    value = given.get(name, default) if isinstance(given, Mapping) else getattr(given, name, default)
    if value is _MISSING:
        raise ToolProblemError(f"{name} is missing.")
    return value


def _text(given: Any, name: str) -> str:
    value = _field(given, name)
    if not isinstance(value, str) or not value.strip():
        raise ToolProblemError(f"{name} has to be a text that isn't empty.")
    if any("\ud800" <= each <= "\udfff" for each in value):
        raise ToolProblemError(f"{name} isn't valid Unicode.")
    if len(value) > limits.TOOL_TEXT_CHARACTERS_MAX:
        raise ToolProblemError(f"{name} has {len(value)} characters; the limit is {limits.TOOL_TEXT_CHARACTERS_MAX}.")
    return value


def _schema(parameters: Any) -> tuple[dict[str, Any], "type[BaseModel] | None"]:
    """Return the JSON schema of a tool's arguments, and the model that it is of."""
    model = None
    try:
        if _is_model(parameters):
            model, parameters = parameters, parameters.model_json_schema()
        if not isinstance(parameters, Mapping):
            raise ToolProblemError("parameters has to be a pydantic model or a JSON schema (a dictionary).")
        size = len(to_json(parameters, "parameters"))
        jsonschema.Draft202012Validator.check_schema(parameters)
    except ToolProblemError:
        raise
    except jsonschema.SchemaError as error:
        raise ToolProblemError(f"parameters isn't a JSON schema: {error.message}.") from error
    except Exception as error:
        raise ToolProblemError(f"parameters can't be used: {describe(error).rstrip('.')}.") from error
    if parameters.get("type") != "object":
        raise ToolProblemError("parameters has to be a JSON schema of type object.")
    if size > limits.TOOL_SCHEMA_BYTES_MAX:
        raise ToolProblemError(f"parameters has {size} bytes; the limit is {limits.TOOL_SCHEMA_BYTES_MAX}.")
    for added in _ADDED:
        if added in parameters.get("properties", {}):
            raise ToolProblemError(f"parameters names {added}, which the server adds: take it from the context.")
    return dict(parameters), model


def _is_model(parameters: Any) -> "TypeGuard[type[BaseModel]]":
    """Return whether it is a pydantic model. Without one, the process never imports pydantic."""
    if not isinstance(parameters, type):
        return False
    from pydantic import BaseModel

    return issubclass(parameters, BaseModel)


def _annotations(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ToolProblemError("annotations has to be a dictionary.")
    for hint, value in given.items():
        if hint not in _HINTS:
            raise ToolProblemError(f"annotations has {str(hint)[:80]!r}; known are {', '.join(_HINTS)}.")
        if not isinstance(value, bool):
            raise ToolProblemError(f"annotations.{hint} has to be True or False.")
    return dict(given)


def _timeout(given: Any) -> float:
    if given is None:
        return limits.TOOL_CALL_SECONDS_DEFAULT
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= limits.TOOL_CALL_SECONDS_MAX:
        raise ToolProblemError(f"timeout has to be a number of seconds up to {limits.TOOL_CALL_SECONDS_MAX}.")
    return float(given)


def _invalid(place: tuple[str | int, ...], message: str) -> CodespaceError:
    field = ".".join(str(part) for part in place)[:100] or "arguments"
    return CodespaceError(
        ErrorCode.INVALID_ARGUMENT, f"{field} can't be used: {message.rstrip('.')}.", detail={"field": field}
    )
