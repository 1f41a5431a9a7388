"""JSON schemas as small as they can be: a client puts every byte of the tool list before its model.

Taken from the models, without titles, defaults and null alternatives. Of an answer only the top level is told, which a
client can check and a person can read up in the reference. They are made when somebody asks, not when the server
starts, and once.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

_SELF_EXPLAINING = ("workspace_id", "work_id", "process_id", "approval_id", "regex", "case_sensitive")
"""Arguments whose names say it all."""

_NOT_TOLD = ("warnings", "coordination", "pending_actions")
"""All of them can be in every answer; the instructions tell of them."""


@cache
def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a tool's arguments: types, bounds, and a description of each."""
    return _object_schema(model, _compact_argument)


@cache
def output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of whatever a tool answers: names and types; what they mean is in their names.

    A refusal is structured content too, and clients on the TypeScript SDK 1.x check it like any other, and show their
    user a schema error instead of the refusal if it doesn't fit. So nothing is required here.
    """
    schema = _object_schema(model, _compact_result)
    schema.pop("required", None)
    return schema


def _object_schema(model: type[BaseModel], compact: Callable[[str, dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    whole = model.model_json_schema(mode="validation")
    parts = whole.get("$defs", {})
    properties = {
        name: compact(name, _with_items(_single(schema), parts))
        for name, schema in whole.get("properties", {}).items()
        if name not in _NOT_TOLD
    }
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if whole.get("required"):
        schema["required"] = whole["required"]
    return schema


def _single(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` without the alternative null: what is absent is left out. A reference is an object."""
    alternatives = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    assert len(alternatives) <= 1, "an argument or result has one type"
    single = {**(alternatives[0] if alternatives else {}), **schema}
    single.pop("anyOf", None)
    if "$ref" in single:
        return {"type": single.get("type", "object")}
    return single


def _with_items(schema: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` with the objects of an array spelled out: their names and types, all of them required."""
    items = schema.get("items", {})
    if "$ref" not in items:
        return schema
    part = parts[items["$ref"].rpartition("/")[2]]
    properties = {name: {"type": each["type"]} for name, each in part["properties"].items() if "type" in each}
    return {**schema, "items": {"type": "object", "properties": properties, "required": part.get("required", [])}}


def _compact_argument(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    compact = {key: value for key, value in schema.items() if key not in ("title", "default")}
    if compact.get("additionalProperties") is True:
        del compact["additionalProperties"]
    if "additionalProperties" in compact:
        compact["additionalProperties"] = {"type": compact["additionalProperties"]["type"]}
    if name in _SELF_EXPLAINING:
        compact.pop("description", None)
    return compact


def _compact_result(_name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": schema["type"]} if "type" in schema else {}
