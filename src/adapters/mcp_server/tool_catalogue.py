"""Every tool, in the order in which clients are told of them. A new tool is one line here."""

from collections.abc import Mapping

from adapters.mcp_server.tool import Tool
from adapters.mcp_server.tools import (
    apply_patch,
    find,
    operation_revert,
    operation_status,
    read,
    search,
    workspace_info,
)

TOOLS: Mapping[str, Tool] = {
    module.TOOL.name: module.TOOL
    for module in (
        workspace_info,
        read,
        find,
        apply_patch,
        operation_status,
        search,
        operation_revert,
    )
}
"""By name. The order is constant: clients cache lists, and models get used to them. Source: decision 34."""
