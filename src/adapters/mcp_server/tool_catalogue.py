"""Every tool, in the order in which clients are told of them. A new tool is one line here."""

from collections.abc import Mapping

from adapters.mcp_server.tool import Tool
from adapters.mcp_server.tools import (
    apply_patch,
    approval_create,
    approval_resolve,
    approval_status,
    ast_edit,
    ast_grep,
    exec_command,
    find,
    operation_resume,
    operation_revert,
    operation_status,
    process_resize,
    process_status,
    read,
    read_process,
    resolve,
    search,
    steer_claim_next,
    steer_complete,
    steer_status,
    terminate_process,
    work_finish,
    work_open,
    workspace_info,
    write_stdin,
)

TOOLS: Mapping[str, Tool] = {
    module.TOOL.name: module.TOOL
    for module in (
        workspace_info,
        read,
        find,
        apply_patch,
        exec_command,
        write_stdin,
        read_process,
        process_status,
        process_resize,
        terminate_process,
        operation_status,
        work_open,
        steer_status,
        steer_claim_next,
        steer_complete,
        work_finish,
        approval_create,
        approval_resolve,
        operation_resume,
        search,
        operation_revert,
        approval_status,
        resolve,
        ast_grep,
        ast_edit,
    )
}
"""By name. The order is constant: clients cache lists, and models get used to them. Source: decision 34."""
