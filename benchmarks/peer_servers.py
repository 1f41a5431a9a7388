"""Which servers are compared, how each is started, and what each is asked for the same job. One entry a server.

A job is a function from a scratch place to (tool, arguments), or None where the server has no such tool. `edit` turns
the line `old` of a file into `new`; `echo` has to answer `token`. How a peer is put into the directory PEERS is in
`install`.
"""

import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass
class Place:
    """Where one server works, and the values of the next call."""

    root: Path
    peers: Path
    old: str = "line 0"
    new: str = "line 1"
    token: str = "hi"
    remembered: dict[str, str] = field(default_factory=dict)
    """What a server's own set-up answered that its calls need."""

    @property
    def read_file(self) -> str:
        return str(self.root / "read.txt")

    @property
    def edit_file(self) -> str:
        return str(self.root / "edit.txt")


Job = Callable[[Place], tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Server:
    """One row of the table."""

    command: Callable[[Place], list[str]]
    read: Job | None = None
    edit: Job | None = None
    echo: Job | None = None
    structural: Job | None = None
    set_up: tuple[Job, ...] = ()
    learn: Callable[[Place, str], None] | None = None
    """Takes what the last set-up call answered."""
    environment: dict[str, str] = field(default_factory=dict)
    install: str = ""


def node(path: str, *arguments: str) -> Callable[[Place], list[str]]:
    return lambda place: ["node", str(place.peers / "node_modules" / ".bin" / path),
                          *(argument.format(root=place.root) for argument in arguments)]


def python(name: str, program: str) -> Callable[[Place], list[str]]:
    return lambda place: [str(place.peers / name / "bin" / program)]


def ours(place: Place) -> list[str]:
    program = str(Path(sys.executable).with_name("codespace-es"))
    return [program, "serve", "--workspace", f"demo={place.root}:workspace-write", "--data-dir",
            str(place.root.parent / "data")]


def our_edit(place: Place) -> tuple[str, dict[str, Any]]:
    patch = f"*** Begin Patch\n*** Update File: edit.txt\n@@\n-{place.old}\n+{place.new}\n*** End Patch\n"
    return "apply_patch", {"workspace_id": "demo", "patch": patch}


def text_editor_edit(place: Place) -> tuple[str, dict[str, Any]]:
    """The hashes stand in for the read that a client makes first."""
    content = Path(place.edit_file).read_bytes()
    lines = content.decode().splitlines(keepends=True)
    number = lines.index(f"{place.old}\n") + 1
    piece = {"line_start": number, "line_end": number, "contents": f"{place.new}\n",
             "range_hash": hashlib.sha256(lines[number - 1].encode()).hexdigest()}
    return "edit_text_file_contents", {"files": [
        {"path": place.edit_file, "file_hash": hashlib.sha256(content).hexdigest(), "patches": [piece]}]}


def code_editor_edit(place: Place) -> tuple[str, dict[str, Any]]:
    return "edit_blocks", {"edits": {
        "file_path": place.edit_file, "old_string": place.old, "new_string": place.new,
        "expected_mtime": Path(place.edit_file).stat().st_mtime}}


def wcgw_thread(place: Place, answer: str) -> None:
    found = re.search(r"thread_id[=:\s\"'`]+([A-Za-z0-9_-]+)", answer)
    place.remembered["thread"] = found[1] if found else ""


def wcgw_edit(place: Place) -> tuple[str, dict[str, Any]]:
    block = f"<<<<<<< SEARCH\n{place.old}\n=======\n{place.new}\n>>>>>>> REPLACE\n"
    return "FileWriteOrEdit", {"file_path": place.edit_file, "percentage_to_change": 1,
                               "text_or_search_replace_blocks": block, "thread_id": place.remembered["thread"]}


SERVERS: dict[str, Server] = {
    "codespace-es": Server(
        ours,
        read=lambda _: ("read", {"workspace_id": "demo", "path": "read.txt"}),
        edit=our_edit,
        echo=lambda place: ("exec_command", {"workspace_id": "demo", "command": ["/bin/echo", place.token],
                                                 "wait_ms": 20_000}),
        structural=lambda _: ("ast_grep", {"workspace_id": "demo", "pat": "print($A)", "paths": ["code/**"]}),
    ),
    "floor: SDK, one empty tool": Server(
        lambda _: [sys.executable, str(HERE / "stdio_calls.py"), "--serve-floor", "stock"],
        read=lambda _: ("noop", {}),
    ),
    "server-filesystem 2026.8.31": Server(
        node("mcp-server-filesystem", "{root}"),
        read=lambda place: ("read_text_file", {"path": place.read_file}),
        edit=lambda place: ("edit_file", {
            "path": place.edit_file, "edits": [{"oldText": place.old, "newText": place.new}]}),
        install="npm install --prefix PEERS @modelcontextprotocol/server-filesystem@2026.8.31",
    ),
    "Claude Code 2.1.328, mcp serve": Server(
        lambda place: [
            str(place.peers / "node_modules/@anthropic-ai/claude-code-linux-x64/claude"), "mcp", "serve"],
        set_up=(lambda place: ("Read", {"file_path": place.edit_file}),),
        read=lambda place: ("Read", {"file_path": place.read_file}),
        edit=lambda place: ("Edit", {
            "file_path": place.edit_file, "old_string": place.old, "new_string": place.new}),
        echo=lambda place: ("Bash", {"command": f"/bin/echo {place.token}", "description": "echo"}),
        environment={"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                     "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        install="npm install --prefix PEERS @anthropic-ai/claude-code@2.1.328",
    ),
    "Desktop Commander 0.2.52": Server(
        node("desktop-commander", "--no-onboarding"),
        read=lambda place: ("read_file", {"path": place.read_file}),
        edit=lambda place: ("edit_block", {
            "file_path": place.edit_file, "old_string": place.old, "new_string": place.new}),
        echo=lambda place: ("start_process", {"command": f"/bin/echo {place.token}", "timeout_ms": 5000}),
        environment={"DESKTOP_COMMANDER_DISABLE_TELEMETRY": "1"},
        install="PUPPETEER_SKIP_DOWNLOAD=1 npm install --prefix PEERS @wonderwhy-er/desktop-commander@0.2.52",
    ),
    "mcp-server-commands 0.5.0": Server(
        node("mcp-server-commands"),
        echo=lambda place: ("run_command", {"command": f"/bin/echo {place.token}"}),
        install="npm install --prefix PEERS mcp-server-commands@0.5.0",
    ),
    "mcp-shell-server 1.1.14": Server(
        python("pe-mcp-shell-server", "mcp-shell-server"),
        read=lambda place: ("shell_execute", {"command": ["cat", place.read_file], "directory": str(place.root)}),
        echo=lambda place: ("shell_execute", {"command": ["echo", place.token], "directory": str(place.root)}),
        environment={"ALLOW_COMMANDS": "echo,cat,/bin/echo"},
        install="python -m venv PEERS/pe-mcp-shell-server, then its pip install mcp-shell-server==1.1.14",
    ),
    "mcp-text-editor 1.0.2": Server(
        python("pe-mcp-text-editor", "mcp-text-editor"),
        read=lambda place: ("get_text_file_contents", {"files": [
            {"file_path": place.read_file, "ranges": [{"start": 1, "end": None}]}]}),
        edit=text_editor_edit,
        install="python -m venv PEERS/pe-mcp-text-editor, then its pip install mcp-text-editor==1.0.2 'mcp<2'",
    ),
    "code-editor-mcp 0.2.5": Server(
        python("pe-code-editor-mcp", "code-editor"),
        set_up=(lambda place: ("config_ops", {"action": "set_root", "path": str(place.root)}),),
        read=lambda place: ("read_files", {"requests": [{"path": place.read_file, "mode": "all"}]}),
        edit=code_editor_edit,
        install="python -m venv PEERS/pe-code-editor-mcp, then its pip install code-editor-mcp==0.2.5 'mcp<2'",
    ),
    "wcgw 5.6.7": Server(
        python("pe-wcgw", "wcgw_mcp"),
        set_up=(lambda place: ("Initialize", {
            "type": "first_call", "any_workspace_path": str(place.root), "initial_files_to_read": [place.edit_file],
            "task_id_to_resume": "", "mode_name": "wcgw", "thread_id": ""}),),
        learn=wcgw_thread,
        read=lambda place: ("ReadFiles", {
            "file_paths": [place.read_file], "thread_id": place.remembered["thread"]}),
        edit=wcgw_edit,
        echo=lambda place: ("BashCommand", {
            "type": "command", "command": f"/bin/echo {place.token}", "thread_id": place.remembered["thread"]}),
        install="python -m venv PEERS/pe-wcgw, then its pip install wcgw==5.6.7",
    ),
}
