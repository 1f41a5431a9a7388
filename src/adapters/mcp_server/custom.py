"""Custom tools as MCP clients see them: listed behind the server's own, by name, and called through one command.

The server adds `workspace_id` and `work_id` to every schema; what is left of the arguments is the tool's own.
"""

from collections.abc import Mapping
from typing import Any

from mcp_types import Tool as WireTool
from mcp_types import ToolAnnotations

from adapters.mcp_server.arguments import NOT_AN_OBJECT
from adapters.mcp_server.schemas import output_schema
from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.calling_tools import CallCustomTool, CustomToolAnswer
from codespace_es.ports.custom_tools import ToolSpecification
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import Caller

_ADDED: dict[str, dict[str, str]] = {
    "workspace_id": {"type": "string"},
    "work_id": {"type": "string", "description": "The work this belongs to."},
}


async def list_custom_tools(codespace: Codespace) -> list[WireTool]:
    """Return the custom tools that are there, as `tools/list` tells them."""
    return [_describe(tool) for tool in (await codespace.world.custom_tools.catalogue()).tools]


async def names_of_custom_tools(codespace: Codespace) -> list[str]:
    """Return their names, in the order of the list."""
    return [tool.name for tool in (await codespace.world.custom_tools.catalogue()).tools]


async def find_custom_tool(codespace: Codespace, name: str) -> Tool | None:
    """Return a custom tool that is there, or was: then calling it says why it isn't any more."""
    catalogue = await codespace.world.custom_tools.catalogue()
    found = next((tool for tool in catalogue.tools if tool.name == name), None)
    if found is None and name not in catalogue.gone:
        return None
    schema = found.parameters if found is not None else {}
    return Tool(
        name=name,
        title=name,
        description="",
        command=CallCustomTool,
        answer=CustomToolAnswer,
        call=_call,
        arrange=lambda given: _arrange(name, schema, given),
        is_read_only=found is not None and found.is_read_only,
        tell_resumed=_tell_resumed,
    )


def schema_of_custom_tool(codespace: Codespace, name: str) -> dict[str, Any] | None:
    """Return the schema of a custom tool's arguments, if it is known by now."""
    own = codespace.world.custom_tools.schema_of(name)
    return None if own is None else _with_added(own)


async def _call(codespace: Codespace, command: CallCustomTool, caller: Caller) -> Answer:
    return await codespace.handle(command, caller)


def _tell_resumed(held: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a call whose tool had asked for something that was held, granted, and has run now."""
    content = f"{held}, which this tool asked for, was granted and has run: see details. The tool itself wasn't run on."
    return CustomToolAnswer(content=content, details={held: answer}).to_wire()


def _arrange(name: str, schema: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the command's arguments; null is absent, but for what the tool's own schema requires."""
    if NOT_AN_OBJECT in given:
        return given
    required = schema.get("required", ())
    own = {
        key: value for key, value in given.items() if key not in _ADDED and (value is not None or key in required)
    }
    return {**{key: given[key] for key in _ADDED if key in given}, "tool": name, "arguments": own}


def _describe(tool: ToolSpecification) -> WireTool:
    return WireTool(
        name=tool.name,
        title=tool.label,
        description=tool.description,
        input_schema=_with_added(tool.parameters),
        output_schema=output_schema(CustomToolAnswer),
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=tool.is_open_world,
        ),
    )


def _with_added(own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **own,
        "properties": {**_ADDED, **own.get("properties", {})},
        "required": ["workspace_id", *own.get("required", ())],
    }
