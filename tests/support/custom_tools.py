"""Tool files for tests: a good one to vary, and bad ones with what is told of each."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import uuid4

from codespace_es.ports.custom_tools import CallSubject, Phase
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId

GOOD = """
def create_tool(api):
    async def execute(call_id, params, context):
        return "hello " + params["name"]

    return {
        "name": "greet", "label": "Greet", "description": "Say hello.", "execute": execute,
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "annotations": {"readOnlyHint": True},
    }
"""


_WRAPPED = f"{GOOD}\n_create = create_tool\n\ndef create_tool(api):\n"


def with_body(name: str, body: str, *, more: str = "", parameters: str = '{"type": "object"}') -> str:
    """Return a tool file whose one tool is called `name` and does `body`; `more` stands among its fields."""
    lines = "\n".join(f"        {line}" for line in dedent(body).strip().splitlines())
    return (
        "def create_tool(api):\n    async def execute(call_id, params, context):\n"
        f"{lines}\n"
        f'    return {{"name": {name!r}, "label": "L", "description": "D", "execute": execute, '
        f'"parameters": {parameters}, {more}}}\n'
    )


def without(name: str) -> str:
    """Return a tool file whose tool lacks a field."""
    return f"{_WRAPPED}    tool = _create(api)\n    del tool[{name!r}]\n    return tool\n"


def having(**fields: str) -> str:
    """Return a tool file whose tool has other fields, written as Python."""
    changes = ", ".join(f"{name!r}: {value}" for name, value in fields.items())
    return f"{_WRAPPED}    return _create(api) | {{{changes}}}\n"


BAD: dict[str, tuple[str, str]] = {
    "syntax": ("def (", "SyntaxError: invalid syntax (line 1)."),
    "null_byte": ("x = '\0'", "SyntaxError: source code string cannot contain null bytes"),
    "no_such_module": ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'."),
    "raises": ("raise ValueError('one\\ntwo')", "ValueError: one two."),
    "bad_text": ("class E(Exception):\n    def __str__(self):\n        raise RuntimeError\nraise E", "E."),
    "exits": ("import sys\nsys.exit(3)", "SystemExit: 3."),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt."),
    "recurses": ("def f():\n    f()\nf()", "RecursionError: maximum recursion depth exceeded."),
    "empty": ("", "it has no create_tool(api)."),
    "no_function": ("create_tool = 3", "its create_tool can't be called: it is a int."),
    "create_raises": ("def create_tool(api):\n    return 1 / 0", "ZeroDivisionError: division by zero."),
    "async_create_raises": ("async def create_tool(api):\n    raise KeyError('k')", "KeyError: 'k'."),
    "wrong_signature": (
        "def create_tool():\n    pass",
        "TypeError: create_tool() takes 0 positional arguments but 1 was given.",
    ),
    "returns_none": (
        "def create_tool(api):\n    pass", "create_tool returned None; return a tool or a list of tools.",
    ),
    "returns_nothing": ("def create_tool(api):\n    return []", "create_tool returned an empty list."),
    "returns_many": (
        "def create_tool(api):\n    return [{}] * 101", "create_tool returned 101 tools; the limit is 100.",
    ),
    "returns_text": ("def create_tool(api):\n    return 'x'", "execute is missing."),
    "no_name": (without("name"), "name is missing."),
    "no_label": (without("label"), "label is missing."),
    "no_description": (without("description"), "description is missing."),
    "no_parameters": (without("parameters"), "parameters is missing."),
    "no_execute": (without("execute"), "execute is missing."),
    "name_blank": (
        having(name="'a b'"), "its name 'a b' can't be used: take 1 to 64 letters, digits, '_' or '-'.",
    ),
    "name_long": (
        having(name="'x' * 65"),
        f"its name {'x' * 65!r} can't be used: take 1 to 64 letters, digits, '_' or '-'.",
    ),
    "name_number": (having(name="3"), "name has to be a text that isn't empty."),
    "label_empty": (having(label="' '"), "label has to be a text that isn't empty."),
    "description_long": (having(description="'x' * 5000"), "description has 5000 characters; the limit is 4096."),
    "half_character": (having(description=r"'\ud800'"), "description isn't valid Unicode."),
    "execute_text": (having(execute="'x'"), "execute can't be called: it is a str."),
    "schema_number": (
        having(parameters="3"), "parameters has to be a pydantic model or a JSON schema (a dictionary).",
    ),
    "schema_invalid": (
        having(parameters="{'type': 'objekt'}"),
        "parameters isn't a JSON schema: 'objekt' is not valid under any of the given schemas.",
    ),
    "schema_array": (having(parameters="{'type': 'array'}"), "parameters has to be a JSON schema of type object."),
    "schema_large": (
        having(parameters="{'type': 'object', 'description': 'x' * 70000}"),
        "parameters has 70037 bytes; the limit is 65536.",
    ),
    "schema_not_json": (
        having(parameters="{'type': 'object', 'x': {1, 2}}"),
        "parameters can't be used: ValueError: parameters has to be JSON: Object of type set is not JSON serializable.",
    ),
    "schema_reserved": (
        having(parameters="{'type': 'object', 'properties': {'work_id': {}}}"),
        "parameters names work_id, which the server adds: take it from the context.",
    ),
    "annotation_unknown": (
        having(annotations="{'readOnly': True}"),
        "annotations has 'readOnly'; known are readOnlyHint, destructiveHint, idempotentHint, openWorldHint.",
    ),
    "annotation_text": (
        having(annotations="{'readOnlyHint': 'yes'}"), "annotations.readOnlyHint has to be True or False.",
    ),
    "timeout_long": (having(timeout="601"), "timeout has to be a number of seconds up to 600."),
    "name_of_the_server": (having(name="'read'"), "its name 'read' is taken by a tool of the server."),
    "pushes_while_loading": (
        "async def create_tool(api):\n    await api.push_pending_action('l', lambda reason: None)",
        "Pending action store unavailable for custom tools in this runtime.",
    ),
    "reads_while_loading": (
        "async def create_tool(api):\n    await api.workspace.read('a')",
        "RuntimeError: api.read works only while a tool runs, not while its file is loaded.",
    ),
    "registers_badly": (
        "def create_tool(api):\n    api.register_action('a b', print)",
        "ValueError: the name of an action has to be an identifier of at most 64 characters, not 'a b'.",
    ),
}
"""Files that give no tool, by a name, and what is told of each."""


class NoServices:
    """Serves nothing."""

    patches: tuple[str, ...] = ()
    is_external = False
    expected_versions: Mapping[str, str] = {}

    async def serve(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(method)


def subject(tool: str, *, phase: Phase = "execute", work_id: str | None = None) -> CallSubject:
    """Return a call in the workspace `demo`."""
    call_id = RequestId(f"req-{uuid4()}")
    return CallSubject(call_id, "demo", work_id, tool, phase, Caller("mcp", call_id))


def write_tools(directory: Path, **files: str) -> None:
    """Write tool files; `a=…` is `a.py`."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.parent.chmod(0o700)  # a data directory is private
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text, encoding="utf-8")
