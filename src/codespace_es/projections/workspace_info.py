"""What a caller is told of a workspace: what it allows, what works there, how calls are serialised.

Static eligibility, never occupancy. Source: contract B1.3.
"""

from typing import Any

from codespace_es import policy
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.workspace import Workspace


def project(workspace: Workspace) -> dict[str, Any]:
    """Return the `execution` object of `workspace`."""
    is_host = workspace.environment == "host"
    return {
        "environment": {
            "kind": workspace.environment,
            "client_selectable": False,
            "exec_supported": is_host,
            "file_read_supported": is_host,
            "file_write_supported": is_host,
        },
        "permissions": {"read": True, "write": _may_write(workspace), "exec": _may_write(workspace)},
        "files": {
            "read": {"available": policy.allows(workspace, "read")},
            "find": {"available": policy.allows(workspace, "read")},
            "search": {"available": policy.allows(workspace, "read")},
            "patch": {"available": policy.allows(workspace, "write")},
            "protected_paths": [*policy.ALWAYS_PROTECTED, *workspace.protected_paths],
            "capabilities": {
                "read_range": True,
                "find_pagination": True,
                "read_max_bytes": limits.READ_BYTES_MAX,
                "find_max_paths": limits.FIND_PATHS_MAX,
            },
        },
        "serialization": {
            "scope": "workspace",
            "request_conflict": "wait-fifo",
            "queue_durable": False,
            "max_waiters_per_resource": limits.WAITERS_MAX,
            "conflict_error": "WORKSPACE_BUSY",
            "queue_full_error": "RESOURCE_QUEUE_FULL",
        },
        "isolation": {"file_tools_workspace_scoped": True},
        "network": {"policy": workspace.network, "client_may_escalate": False},
        "approvals": workspace.approvals,
        "patch_matching": workspace.patch_matching,
    }


def _may_write(workspace: Workspace) -> bool:
    return workspace.profile == "workspace-write"
