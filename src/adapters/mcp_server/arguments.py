"""A call's arguments, from JSON into the tool's command: what is wrong is named, what is unknown is only remarked.

Source: decision 35 (`INVALID_ARGUMENT` names the field), contract A2 (unknown arguments are accepted and named).
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from adapters.mcp_server.messages import name_type
from codespace_es.vocabulary.answer import Command, Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

NOT_AN_OBJECT = "\0not an object"
"""Key under which arguments that aren't an object are passed on, since the SDK knows no other form for them."""

_UNKNOWN_NAMED_MAX = 20
_NAME_CHARACTERS_MAX = 100
_VALUE_CHARACTERS_MAX = 80

_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "bool_type": "true or false",
    "dict_type": "an object",
    "list_type": "an array",
    "tuple_type": "an array",
}


def read_arguments(tool: str, command: type[Command], given: Mapping[str, Any]) -> Command:
    """Return the command that `given` describes. Null means absent, and 3.0 is an integer, as JSON has it.

    Raises:
        CodespaceError: INVALID_ARGUMENT, with the `field` in its detail.
    """
    if NOT_AN_OBJECT in given:
        raise _invalid("arguments", f"arguments has to be an object; got {name_type(given[NOT_AN_OBJECT])}.")
    known = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in given.items()
        if value is not None and name in command.model_fields
    }
    try:
        return command.model_validate(known)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in fault["loc"] if part != "[key]")[:_NAME_CHARACTERS_MAX]
    raise _invalid(field, _explain(tool, field, fault, given, command))


def remark_unknown(command: type[Command], given: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Return a warning for each argument that the tool doesn't have."""
    unknown = [name for name in given if name not in command.model_fields and name != NOT_AN_OBJECT]
    return tuple(
        Notice(kind="unknown_argument", message=_remark(name, command)) for name in unknown[:_UNKNOWN_NAMED_MAX]
    )


def _remark(name: str, command: type[Command]) -> str:
    near = get_close_matches(name[:_NAME_CHARACTERS_MAX], command.model_fields, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"unknown argument '{name[:_NAME_CHARACTERS_MAX]}'{hint}"


def _explain(tool: str, field: str, fault: ErrorDetails, given: Mapping[str, Any], command: type[Command]) -> str:
    kind = fault["type"]
    if kind == "missing":
        unknown = [name for name in given if name not in command.model_fields]
        near = get_close_matches(field, unknown, n=1)
        hint = f"; '{near[0][:_NAME_CHARACTERS_MAX]}' isn't an argument" if near else ""
        return f"{tool} needs {field}{hint}."
    found = json.dumps(fault["input"], ensure_ascii=False, default=str)
    if len(found) > _VALUE_CHARACTERS_MAX:
        found = found[:_VALUE_CHARACTERS_MAX] + "…"
    if kind in _EXPECTED:
        return f"{field} has to be {_EXPECTED[kind]}; got {name_type(fault['input'])}: {found}"
    if kind == "string_pattern_mismatch":
        return f"{field} has to be 'sha256:' and 64 lower-case hex digits, or 'absent'; got {found}"
    return f"{field} can't be {found}: {fault['msg'][:1].lower()}{fault['msg'][1:]}."


def _invalid(field: str, message: str) -> CodespaceError:
    return CodespaceError(ErrorCode.INVALID_ARGUMENT, message, detail={"field": field})
