"""A scratch project with a log of its own, and the real command line run on it."""

import io
import os
import pty
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from adapters.bootstrap import OpenCodespace, open_codespace
from adapters.cli.main import run
from adapters.cli.options import effective_settings
from adapters.settings.load import Flags
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId
from codespace_es.vocabulary.patch_result import PatchResult
from support.warm_servers import PRODUCT, from_nothing, own_environment, run_to_end, start_on

GREETING = "hello\n"
PATCH = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-hello\n+good day\n*** End Patch\n"


@dataclass(frozen=True)
class Called:
    """What a command line came to."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Project:
    """A directory to serve and a directory for its log."""

    root: Path
    data: Path

    @classmethod
    def make(cls, directory: Path) -> "Project":
        """Make one beneath `directory`, with one file."""
        root = directory / "project"
        root.mkdir(parents=True)
        (root / "greeting.txt").write_text(GREETING, encoding="utf-8")
        return cls(root.resolve(), directory.resolve() / "data")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[OpenCodespace]:
        """Open it in this process, as workspace `demo`."""
        settings = effective_settings(Flags(data_dir=str(self.data), workspaces=(f"demo={self.root}",)), {})
        async with open_codespace(settings, transport="stdio") as opened:
            yield opened

    def call(self, *arguments: str) -> "Called":
        """Run the command line with this data directory inside this process, piped: much quicker."""
        output, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(output), redirect_stderr(errors):
            exit_code = run([*arguments, "--data-dir", str(self.data)])
        return Called(exit_code, output.getvalue(), errors.getvalue())

    def run(
        self, *arguments: str, environment: Mapping[str, str] | None = None, stdin: str = "", is_cold: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line with this data directory, as a process of its own, piped."""
        return run_command(*arguments, environment={"CODESPACE_DATA_DIR": str(self.data), **(environment or {})},
                           stdin=stdin, is_cold=is_cold)

    def in_terminal(self, *arguments: str) -> str:
        """Return what the command line writes, output and errors, into a terminal of 200 columns."""
        leader, follower = pty.openpty()
        environment = {**own_environment(), "CODESPACE_DATA_DIR": str(self.data), "TERM": "xterm-256color",
                       "COLUMNS": "200"}
        with open(os.devnull, "rb") as nothing:
            process = start_on((nothing.fileno(), follower, follower), [PRODUCT, *arguments], env=environment)
        os.close(follower)
        told = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:
                break
            if not chunk:
                break
            told += chunk
        process.wait()
        os.close(leader)
        return told.decode()


def run_command(
    *arguments: str, environment: Mapping[str, str], stdin: str = "", is_cold: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run `codespace-es` with `arguments`; of this process' environment it sees no setting of the product.

    It is forked from a warm parent, unless it has to be cold: for tests that speak for the real start.
    """
    command = [PRODUCT, *arguments]
    return run_to_end(from_nothing(command) if is_cold else command, env={**own_environment(), **environment},
                      stdin=stdin)


async def patch(opened: OpenCodespace, text: str = PATCH, *, key: str | None = None) -> PatchResult:
    """Apply a patch to `demo`."""
    command = ApplyPatch(workspace_id="demo", patch=text, operation_key=key)
    caller = Caller("mcp", RequestId(f"req-{opened.world.ids.uuid()}"), "tester/1")
    answer = await opened.codespace.handle(command, caller)
    assert isinstance(answer, PatchResult)
    return answer
