"""`workspace_info`: what this server is, and what a workspace allows."""

from functools import cache
from importlib import metadata
from typing import Any

from pydantic import Field

from adapters.mcp_server.tool import Tool
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.reading import DescribeWorkspace, WorkspaceDescription
from codespace_es.vocabulary.event import Caller

_NOTE = (
    "workspace_id is a label that the operator chose, not a credential. What execution says is whether a tool is "
    "available here at all, never whether the workspace is occupied now."
)


class ServerDescription(WorkspaceDescription):
    """The server, and the workspace asked for."""

    workspace_id: str | None = Field(
        default=None, description="Its name here.", json_schema_extra={"type": ["string", "null"]}
    )
    server: str = Field(description="Always codespace.")
    version: str = Field(description="Of the server.")
    internal_model_calls: bool = Field(default=False, description="Always false.")
    tools_exposed: tuple[str, ...] = Field(description="All tools, in order.")
    transports: tuple[str, ...] = Field(description="Ways to reach it.")
    workspace_id_is_credential: bool = Field(default=False, description="Always false.")
    note: str = Field(description="How to read this.")

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object; `workspace_id` is there either way, null without a workspace."""
        return {**super().to_wire(), "workspace_id": self.workspace_id}


@cache
def software_version() -> str:
    """Return the installed version of this product."""
    return metadata.version("codespace-es")


async def call(codespace: Codespace, command: DescribeWorkspace, caller: Caller) -> ServerDescription:
    """Return the description. Raises WORKSPACE_NOT_FOUND."""
    from adapters.mcp_server.custom import names_of_custom_tools
    from adapters.mcp_server.tool_catalogue import TOOLS

    described = await codespace.handle(command, caller)
    return ServerDescription(
        server="codespace",
        version=software_version(),
        tools_exposed=(*TOOLS, *await names_of_custom_tools(codespace)),
        transports=("stdio", "streamable-http"),
        note=_NOTE,
        **dict(described),
    )


TOOL = Tool(
    name="workspace_info",
    title="Describe workspace",
    description=(
        "What this server offers and, with workspace_id, what that workspace allows. It tells availability, never "
        "occupancy: an available tool can still answer WORKSPACE_BUSY."
    ),
    command=DescribeWorkspace,
    answer=ServerDescription,
    call=call,
    is_read_only=True,
    is_idempotent=True,
)
