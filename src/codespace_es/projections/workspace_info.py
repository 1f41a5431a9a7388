"""What a caller is told of a workspace: what it allows, what works there, how calls are serialised.

Static eligibility, never occupancy. Source: contract B1.3.
"""

from typing import Any

from codespace_es import policy
from codespace_es.ports.runner import SandboxReport
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.workspace import Workspace


def project(workspace: Workspace, sandbox: SandboxReport | None) -> dict[str, Any]:
    """Return the `execution` object of `workspace`; `sandbox` is what commands are truly confined by, if known."""
    is_host = workspace.environment == "host"
    may_exec = policy.allows(workspace, "exec")
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
        "process": {"available": may_exec, **({"capabilities": _process_capabilities(workspace)} if may_exec else {})},
        "serialization": {
            "scope": "workspace",
            "live_process_holds_mutation_lease": workspace.live_process == "exclusive",
            "parallel_exec": workspace.live_process == "shared",
            "read_while_process_live": True,
            "find_while_process_live": True,
            "patch_while_process_live": workspace.live_process == "shared",
            "process_conflict": "reject" if workspace.live_process == "exclusive" else "allow",
            "request_conflict": "wait-fifo",
            "queue_durable": False,
            "max_waiters_per_resource": limits.WAITERS_MAX,
            "conflict_error": "WORKSPACE_BUSY",
            "queue_full_error": "RESOURCE_QUEUE_FULL",
        },
        "isolation": {"file_tools_workspace_scoped": True, **_isolation(sandbox)},
        "network": {
            "policy": workspace.network,
            "enforcement": "enforced" if sandbox is not None and sandbox.is_network_enforced else "none",
            "client_may_escalate": False,
        },
        "approvals": workspace.approvals,
        "pending_bias": workspace.pending_bias,
        "patch_matching": workspace.patch_matching,
    }


def _process_capabilities(workspace: Workspace) -> dict[str, Any]:
    return {
        "handles": True,
        "survives_request_end": True,
        "write_stdin": True,
        "incremental_read": True,
        "terminate": True,
        "output_combined": True,
        "output_retention_bytes": workspace.output_retention_bytes,
        "timeout_seconds": workspace.process_timeout_seconds,
        "tty": {
            "supported": True,
            "default": False,
            "initial_rows": limits.TERMINAL_ROWS,
            "initial_cols": limits.TERMINAL_COLUMNS,
            "resize_supported": True,
        },
        "lifetime": {
            "owner": "runner",
            "client_disconnect": "keep_running",
            "runner_disconnect": "terminate",
            "gateway_shutdown": "terminate",
            "restart_recovery": "none",
            "history_after_restart": True,
        },
    }


def _isolation(sandbox: SandboxReport | None) -> dict[str, Any]:
    if sandbox is None:
        return {"command_sandbox": "none", "sandbox_level": 1, "gaps": ["no runner could be asked"]}
    return {
        "command_sandbox": "linux-sandbox" if sandbox.level >= 2 else "none",
        "sandbox_level": sandbox.level,
        "gaps": list(sandbox.gaps),
    }


def _may_write(workspace: Workspace) -> bool:
    return workspace.profile == "workspace-write"
