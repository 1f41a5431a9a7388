"""What clients see of the tools, as a file: a change of a name, schema or annotation is a visible diff.

After a wanted change: `UPDATE_GOLDEN=1 pytest tests/architecture/test_golden_tools.py`, and a line in the changelog.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adapters.mcp_server.bias_lines import BiasLines
from adapters.mcp_server.results import tell_error
from adapters.mcp_server.server import describe
from adapters.mcp_server.tool_catalogue import TOOLS
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_GOLDEN = Path(__file__).parent / "golden" / "tool_schemas.json"

_BYTES_MAX_OF_ALL = 25 * 1024
_TOOLS_OF_ALL = 25


def _listed() -> list[dict[str, Any]]:
    return [describe(tool).model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS.values()]


def test_the_tools_are_those_of_the_golden_file() -> None:
    listed = json.dumps(_listed(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        _GOLDEN.write_text(listed, encoding="utf-8")
    assert listed == _GOLDEN.read_text(encoding="utf-8")


def test_the_list_leaves_room_for_every_tool_to_come() -> None:
    size = len(json.dumps({"tools": _listed()}, separators=(",", ":"), ensure_ascii=False).encode())
    assert _BYTES_MAX_OF_ALL - size >= (_TOOLS_OF_ALL - len(TOOLS)) * 800


@pytest.mark.parametrize("tool", _listed(), ids=lambda tool: tool["name"])
def test_a_tool_says_everything_a_client_asks(tool: dict[str, Any]) -> None:
    assert tool["title"]
    assert len(tool["description"]) >= 80
    assert set(tool["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    for schema in (tool["inputSchema"], tool["outputSchema"]):
        assert schema["type"] == "object"
        assert "$defs" not in json.dumps(schema)
        assert set(schema.get("required", [])) <= set(schema["properties"])


@pytest.mark.parametrize("tool", _listed(), ids=lambda tool: tool["name"])
@pytest.mark.parametrize("code", [ErrorCode.FILE_NOT_FOUND, ErrorCode.APPROVAL_REQUIRED])
def test_a_refusal_fits_the_schema_of_every_tool(tool: dict[str, Any], code: ErrorCode) -> None:
    """Clients on the TypeScript SDK 1.x check it like any answer, and tell of the schema instead if it doesn't."""
    ids = {"operation_id": "op-x", "approval_id": "appr-x", "process_id": "proc-x"}
    refusal = tell_error(CodespaceError(code, "No.", detail={**ids, "field": "path"}), (), BiasLines())
    jsonschema.validate(refusal["structuredContent"], tool["outputSchema"])


def test_tools_that_change_something_say_so() -> None:
    hints = {tool["name"]: tool["annotations"] for tool in _listed()}
    writers = {name for name, each in hints.items() if not each["readOnlyHint"]}
    drivers = {"write_stdin", "process_resize", "terminate_process"}
    holders = {"approval_create", "approval_resolve", "operation_resume"}
    steerers = {"work_open", "steer_claim_next", "steer_complete", "work_finish"}
    changers = {"apply_patch", "operation_revert", "exec_command", "ast_edit", "resolve"}
    assert writers == changers | drivers | holders | steerers
    harmless = {"process_resize", "approval_create", "approval_resolve", "ast_edit"} | steerers
    assert {name for name in writers if not hints[name]["destructiveHint"]} == harmless
    open_world = {"exec_command", "write_stdin", "operation_resume", "resolve"}
    assert {name for name in hints if hints[name]["openWorldHint"]} == open_world


@pytest.mark.parametrize(("tool", "given", "answered"), [
    ("read", ["offset", "limit"], ["byte_count", "truncated", "content_lossy", "next_offset"]),
    ("find", ["offset", "limit"], ["incomplete", "listing_version", "next_offset", "truncated"]),
    ("apply_patch", ["patch", "expected_versions", "operation_key", "check_only"], ["status", "changes", "files"]),
    ("operation_status", ["operation_id", "operation_key"], ["events", "finished_at", "reverted_by"]),
    ("exec_command", ["command", "tty", "stdin", "timeout_ms", "operation_key"], ["process_id", "dispatch_status"]),
    ("read_process", ["cursor", "wait_ms", "max_bytes"], ["chunk", "eof", "output_lost", "retained_from"]),
    ("process_status", ["process_id"], ["termination", "output_total", "output_retained_from", "signal", "owner"]),
    ("write_stdin", ["process_id", "data", "eof"], ["ok"]),
    ("process_resize", ["process_id", "rows", "cols"], ["ok", "rows", "cols"]),
    ("terminate_process", ["process_id", "signal", "grace_ms"], ["ok"]),
])
def test_schemas_name_what_models_rely_on(tool: str, given: list[str], answered: list[str]) -> None:
    listed = next(each for each in _listed() if each["name"] == tool)
    assert set(given) <= set(listed["inputSchema"]["properties"])
    assert set(answered) <= set(listed["outputSchema"]["properties"])


def test_a_command_takes_nothing_that_the_operator_decides() -> None:
    properties = set(next(each for each in _listed() if each["name"] == "exec_command")["inputSchema"]["properties"])
    assert not properties & {"environment_id", "cwd", "env", "tty_size", "network", "sandbox"}


@pytest.mark.parametrize(("tool", "words"), [
    ("read", ["next_offset", "content_lossy"]),
    ("find", ["next_offset", "incomplete", "listing_version"]),
    ("apply_patch", ["status=unknown", "operation_status"]),
    ("exec_command", ["unknown", "PROCESS_SPAWN_FAILED", "WORKSPACE_BUSY", "operation_key"]),
    ("read_process", ["output_lost", "retained_from", "eof", "TIMEOUT"]),
    ("process_status", ["termination", "exit_code 0", "signaled", "unknown"]),
    ("workspace_info", ["availability", "occupancy"]),
])
def test_descriptions_name_what_models_rely_on(tool: str, words: list[str]) -> None:
    assert all(word in TOOLS[tool].description for word in words)
