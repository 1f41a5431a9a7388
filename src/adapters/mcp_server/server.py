"""The MCP server: the SDK's low-level one, with this product's tools, resources and instructions."""

from typing import Any, Literal

from mcp.server.lowlevel import Server
from mcp_types import ListToolsResult, PaginatedRequestParams, ToolAnnotations
from mcp_types import Tool as WireTool

from adapters.mcp_server.calling import Context, ToolCalls, pass_on_unusable_arguments
from adapters.mcp_server.custom import list_custom_tools, schema_of_custom_tool
from adapters.mcp_server.instructions import INSTRUCTIONS
from adapters.mcp_server.resources import Resources
from adapters.mcp_server.schemas import input_schema, output_schema
from adapters.mcp_server.tool import Tool
from adapters.mcp_server.tool_catalogue import TOOLS
from adapters.mcp_server.tools.workspace_info import software_version
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.instance_life import InstanceLife


def build_server(
    codespace: Codespace, life: InstanceLife, *, resolve_listing: Literal["always", "while-pending"] = "always"
) -> Server[Any]:
    """Return a server for one client or many; it holds no state of its own but what it has told of pending actions.

    Args:
        codespace: The door.
        life: Keeps what leaves no other trace.
        resolve_listing: Whether `resolve` is listed only while something is pending; it can be called either way.
    """
    calls = ToolCalls(codespace, life, TOOLS)
    resources = Resources(codespace)

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        is_hidden = resolve_listing == "while-pending" and not await codespace.has_pending()
        listed = [describe(tool) for name, tool in TOOLS.items() if name != "resolve" or not is_hidden]
        return ListToolsResult(tools=[*listed, *await list_custom_tools(codespace)])

    def schema_of(name: str) -> dict[str, Any] | None:
        own = TOOLS.get(name)
        return schema_of_custom_tool(codespace, name) if own is None else input_schema(own.command)

    server: Server[Any] = Server(
        "codespace",
        version=software_version(),
        title="CodeSpace ES",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=calls.answer,  # type: ignore[arg-type]  # the SDK takes the wire's dict too
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read,
        # Over HTTP the SDK asks for the schema of each call, and makes a whole list of the tools where this is missing.
        get_tool_input_schema=schema_of,
    )
    server.middleware[:] = [pass_on_unusable_arguments]  # in place of the SDK's OpenTelemetry spans
    return server


def describe(tool: Tool) -> WireTool:
    """Return `tool` as `tools/list` tells it."""
    return WireTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.command),
        output_schema=output_schema(tool.answer),
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=tool.is_open_world,
        ),
        meta=tool.meta or None,
    )
