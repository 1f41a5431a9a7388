"""One line of the wire: read strictly into a JSON-RPC message, or told what is owed for one that can't be served.

Rules, where the SDK would be silent and leave a client waiting:

1. Whatever carries an id that can be answered is answered, even if nothing else of it is right.
2. What was meant as a request and has no such id is answered with id null. Notifications and answers never are.
3. Bytes that aren't UTF-8 and escapes of half a character are refused: replaced, they would end up in files.

Source: JSON-RPC 2.0 section 4 and 5.1; MCP 2025-11-25, basic; contract A6.
"""

import json
import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

_BATCH_ANSWERS_MAX = 100

_END_BYTES = 4096
"""How far from either end of a line an id is looked for."""

_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\\x00-\x1f]|\\.){0,200}")'
_ID_AT_HEAD = re.compile(rb"\s*\{[^{}\[\]]*?" + _ID + rb"\s*[,}]")
_ID_AT_TAIL = re.compile(rb"[,{]\s*" + _ID + rb"\s*(?:,[^{}\[\]]*)?\}\s*$")


@dataclass(frozen=True, slots=True)
class Unusable:
    """A line that can't be served."""

    reason: str
    answers: tuple[bytes, ...] = ()
    """What the client is owed for it, ready to be written; empty for what must never be answered."""


def read_message(line: bytes) -> JSONRPCMessage | Unusable:
    """Return the message in `line`, or why it can't be served and what to answer."""
    try:
        value = from_json(line, allow_inf_nan=False)
    except ValueError as error:
        return _explain_unparsable(line, str(error))
    if isinstance(value, dict):
        return _read_object(value)
    if isinstance(value, list):
        return _refuse_batch(value)
    return _refuse(INVALID_REQUEST, "A message has to be a JSON object.")


def _read_object(value: dict[str, Any]) -> JSONRPCMessage | Unusable:
    if "method" not in value and ("result" in value or "error" in value):
        try:
            return jsonrpc_message_adapter.validate_python(value, by_name=False)
        except ValidationError:
            return Unusable("an answer that can't be understood")
    fault = _fault_in(value)
    if "id" not in value and "method" in value:
        if fault is not None:
            return Unusable(f"a notification: {fault}")
        return JSONRPCNotification(jsonrpc="2.0", method=value["method"], params=value.get("params"))
    if fault is not None:
        return _refuse(INVALID_REQUEST, fault, _answerable(value.get("id")))
    return JSONRPCRequest(jsonrpc="2.0", id=value["id"], method=value["method"], params=value.get("params"))


def _fault_in(value: dict[str, Any]) -> str | None:
    """Return what is wrong with a request or notification, None if nothing is."""
    identifier = value.get("id", 0)
    if isinstance(identifier, bool) or not isinstance(identifier, (int, str)):
        return f"id has to be a string or an integer; got {name_type(identifier)}."
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc has to be "2.0".'
    if not isinstance(value.get("method"), str):
        return f"method has to be a string; got {name_type(value.get('method'))}."
    if not isinstance(value.get("params"), (dict, type(None))):
        return f"params has to be an object; got {name_type(value['params'])}."
    return None


def _refuse_batch(items: list[Any]) -> Unusable:
    """Refuse a batch: whoever waits for one of its ids is answered, so that no client hangs."""
    waiting = [item["id"] for item in items if isinstance(item, dict) and "method" in item and "id" in item]
    usable = [identifier for identifier in map(_answerable, waiting) if identifier is not None]
    owed: list[float | str | None] = [*usable[:_BATCH_ANSWERS_MAX]] or [None]
    reason = "Batches aren't served: send one message a line."
    return Unusable(
        reason,
        tuple(error_line(identifier, INVALID_REQUEST, reason) for identifier in owed),
    )


def _explain_unparsable(line: bytes, reason: str) -> Unusable:
    """Refuse what isn't JSON, is JSON in bytes that aren't text, or holds half a character."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} isn't UTF-8"
    if "hex escape" in reason:
        reason += r" (a \u escape that is half of a surrogate pair isn't text)"
    return _refuse(PARSE_ERROR, f"The message isn't usable JSON: {reason}.", _salvage_id(line))


def _salvage_id(line: bytes) -> float | str | None:
    """Return the id of a request that can't be served, as far as a more lenient reading finds one."""
    try:
        value = json.loads(line.decode(errors="replace"))
    except json.JSONDecodeError:
        return None
    except (ValueError, RecursionError):  # it is JSON, with a number too long or nesting too deep to be read
        return _find_id(line[:_END_BYTES], line[-_END_BYTES:])
    if not isinstance(value, dict) or "method" not in value:
        return None
    identifier = _answerable(value.get("id"))
    return None if isinstance(identifier, str) and "\ufffd" in identifier else identifier


def _answerable(identifier: Any) -> float | str | None:
    """Return an id by which a client can recognise its answer; JSON-RPC allows fractions, MCP doesn't."""
    if isinstance(identifier, bool) or not isinstance(identifier, (int, float, str)):
        return None
    return identifier if isinstance(identifier, str) or isfinite(identifier) else None


def refuse_oversized(head: bytes, tail: bytes, *, size_bytes: int, bytes_max: int) -> Unusable:
    """Refuse a line of which only the two ends were kept; its id is found if it stands at either end."""
    reason = f"The message has {size_bytes} bytes; the limit is {bytes_max}."
    return _refuse(INVALID_REQUEST, reason, _find_id(head, tail))


def _find_id(head: bytes, tail: bytes) -> float | str | None:
    """Return the id of a request, if it stands at one of its ends."""
    found = _ID_AT_HEAD.match(head) or _ID_AT_TAIL.search(tail)
    return _answerable(json.loads(found.group(1))) if found and b'"method"' in head + tail else None


def refuse_duplicate(identifier: int | str) -> Unusable:
    """Refuse a request whose id is still being answered.

    The answer has id null and names the id: with the id itself it would pass for the answer to the first request,
    which goes on.
    """
    reason = f"id {json.dumps(identifier)[:100]} is in use by a request that hasn't been answered: nothing was done."
    return _refuse(INVALID_REQUEST, reason)


def _refuse(code: int, reason: str, identifier: float | str | None = None) -> Unusable:
    return Unusable(reason, (error_line(identifier, code, reason),))


def error_line(identifier: float | str | None, code: int, message: str) -> bytes:
    """Return a JSON-RPC error as bytes in ASCII, so that an id is echoed exactly whatever it holds."""
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error}, separators=(",", ":")).encode() + b"\n"


def name_type(value: Any) -> str:
    """Return what JSON calls the type of `value`, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def write_message(message: JSONRPCMessage) -> bytes | Unusable:
    """Return `message` as a line, or what to answer in its place if it can't be written as JSON."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        reason = "The answer can't be written as JSON."
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            return Unusable(f"{reason} {error}", (error_line(message.id, INTERNAL_ERROR, reason),))
        return Unusable(f"a notification that can't be written as JSON: {error}")
