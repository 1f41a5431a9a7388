"""The clients that people use, with the lines that `init` prints, without a model: they list the tools, and call them.

Left out of the default suite: the clients are large. They are looked for on `PATH` and in `.venv/mcp-clients`
(`npm install --prefix .venv/mcp-clients @openai/codex @anthropic-ai/claude-code`).
"""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from adapters.cli.init import client_blocks
from support.cli_project import run_command

pytestmark = pytest.mark.soak

INSTALLED = Path(__file__).parents[2] / ".venv" / "mcp-clients" / "node_modules"


def program(name: str, *places: str) -> str:
    """Return the client's program. Skips where there is none."""
    found = shutil.which(name) or next((str(path) for place in places if (path := INSTALLED / place).exists()), None)
    if found is None:
        pytest.skip(f"{name} isn't installed: see the top of this file")
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a workspace `project` whose patches its user is asked about."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "greeting.txt").write_text("hello\n")
    configuration = tmp_path / "project.toml"
    done = run_command("init", str(root), "--output", str(configuration), environment={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    text = configuration.read_text()
    profile = 'profile = "workspace-write"\n'
    assert profile in text
    configuration.write_text(
        text.replace(profile, f'{profile}approvals = "confirm"\nelicitation_timeout_seconds = 60\n')
    )
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    quiet = {"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **quiet}


def block_for(client: str, home: Path) -> str:
    ours = shutil.which("codespace-es")
    assert ours is not None
    return next(text for name, text in client_blocks(ours, home / "project.toml").items() if name.startswith(client))


def test_claude_code_connects_with_the_line_that_init_prints(home: Path) -> None:
    claude = program("claude", "@anthropic-ai/claude-code-linux-x64/claude")
    line = shlex.split(block_for("Claude Code", home))
    for argv in ([claude, *line[1:]], [claude, "mcp", "list"]):
        done = subprocess.run(argv, env=environment(home), cwd=home, capture_output=True, text=True, timeout=120,
                              check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "codespace:" in done.stdout
    assert "Connected" in done.stdout


class CodexServer:
    """Codex' own server of its front ends, spoken to as a front end speaks to it."""

    def __init__(self, program: str, home: Path) -> None:
        self.asked: list[dict[str, Any]] = []
        self._last_id = 0
        with open(home / "codex.log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [program, "app-server"], env=environment(home), cwd=home / "project", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True,
            )

    def __enter__(self) -> Self:
        self.ask("initialize", clientInfo={"name": "tests", "version": "1"}, capabilities={"experimentalApi": True})
        self._say({"method": "initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return a result. Whoever is asked meanwhile grants, by the form."""
        self._last_id += 1
        self._say({"id": self._last_id, "method": method, "params": params})
        for message in self._heard():
            if message.get("method") == "mcpServer/elicitation/request":
                self.asked.append(message["params"])
                self._say({"id": message["id"], "result": {"action": "accept", "content": {"decision": "grant"}}})
            elif message.get("id") == self._last_id:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
        raise AssertionError("it ended")

    def _heard(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        return (json.loads(line) for line in self._process.stdout)

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def test_codex_lists_and_calls_the_tools_and_asks_its_user(home: Path) -> None:
    codex = program("codex", ".bin/codex")
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(block_for("Codex", home))
    patch = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-hello\n+good day\n*** End Patch\n"
    with CodexServer(codex, home) as server:
        listed, = server.ask("mcpServerStatus/list")["data"]
        thread_id = server.ask("thread/start", cwd=str(home / "project"))["thread"]["id"]

        def call(tool: str, **arguments: Any) -> dict[str, Any]:
            answer = server.ask(
                "mcpServer/tool/call", threadId=thread_id, server="codespace", tool=tool, arguments=arguments
            )
            told: dict[str, Any] = answer["structuredContent"]
            return told

        read = call("read", workspace_id="project", path="greeting.txt")
        patched = call("apply_patch", workspace_id="project", patch=patch)
    assert {"read", "apply_patch", "exec_command"} <= set(listed["tools"])
    assert read["content"] == "hello\n"
    assert patched["status"] == "applied"
    assert (home / "project" / "greeting.txt").read_text() == "good day\n"
    asked, = server.asked
    assert "-hello\n+good day" in asked["message"]
