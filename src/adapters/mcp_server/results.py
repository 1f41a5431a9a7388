r"""Results of tool calls: the wire object as structured content, and the same JSON as the first text item.

The first to tell of a pending action says so in a second text item, too.

A file name that isn't UTF-8 must never end the server: half characters are shown as `\xNN` before anything is encoded.
Source: contract B1.1, A2, A6.
"""

import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from adapters.mcp_server.bias_lines import BiasLines
from codespace_es.vocabulary.answer import Answer, Notice
from codespace_es.vocabulary.errors import CodespaceError

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def tell_answer(answer: Answer | dict[str, Any], notices: Sequence[Notice], lines: BiasLines) -> dict[str, Any]:
    """Return the result of a call that succeeded, whose answer may be JSON already; `notices` join its warnings."""
    wire = answer if isinstance(answer, dict) else answer.to_wire()
    _add(wire, notices)
    return _tell(wire, lines, is_error=False)


def tell_error(error: CodespaceError, notices: Sequence[Notice], lines: BiasLines) -> dict[str, Any]:
    """Return the result of a call that was refused or failed."""
    wire = error.to_wire()
    _add(wire, notices)
    return _tell(wire, lines, is_error=True)


def _add(wire: dict[str, Any], notices: Sequence[Notice]) -> None:
    if notices:
        told = [notice.model_dump(mode="json", exclude_none=True) for notice in notices]
        wire["warnings"] = [*wire.get("warnings", ()), *told]


def _tell(wire: dict[str, Any], lines: BiasLines, *, is_error: bool) -> dict[str, Any]:
    whole, text = to_text(wire)
    line = lines.line_for(whole.get("pending_actions"))
    return {
        "content": [{"type": "text", "text": each} for each in (text, line) if each is not None],
        "structuredContent": whole,
        "isError": is_error,
        "resultType": "complete",
    }


def to_text(value: Any) -> tuple[Any, str]:
    """Return `value` without half characters, and as compact JSON; letters of all scripts stand as themselves."""
    try:
        return value, to_json(value).decode()
    except PydanticSerializationError:
        whole = _make_whole(value)
        return whole, to_json(whole).decode()


def _make_whole(value: Any) -> Any:
    """Return `value` with every half of a surrogate pair shown as the byte, or the code, that it stands for."""
    match value:
        case str():
            return _HALF_CHARACTER.sub(_show, value)
        case dict():
            return {_make_whole(key): _make_whole(each) for key, each in value.items()}
        case list() | tuple():
            return [_make_whole(each) for each in value]
        case _:
            return value


def _show(half: re.Match[str]) -> str:
    code = ord(half.group())
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
