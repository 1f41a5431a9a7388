"""A server on stdio whose door is scripted: what a `read` answers is said by its path.

For the transport's own tests: calls that never end, answers that can't be encoded, prints on stdout. Told to close, it
goes on for as long as a call of `hold` is open, which is until there is a file `let-go`.
"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio

from adapters.clock_and_ids import RandomIds, SystemClock
from adapters.mcp_server.serve import serve_stdio
from codespace_es.command_handlers.reading import FileWindow, ReadFile
from codespace_es.ports.custom_tools import NoCustomTools
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller


class ScriptedDoor:
    """Stands for the codespace."""

    def __init__(self) -> None:
        self.world = SimpleNamespace(
            ids=RandomIds(), clock=SystemClock(), workspaces={}, custom_tools=NoCustomTools()
        )
        self._held = 0

    async def close(self, caller: Caller) -> None:
        """No effect is ever begun, no process started."""
        log("closing")
        while self._held:
            await anyio.sleep(0.01)

    async def has_pending(self) -> bool:
        return False

    async def tell_pending(self, named: Any, refusal: CodespaceError, caller: Caller) -> None:
        """Nothing ever is."""

    async def handle(self, command: Command, caller: Caller) -> Answer:
        assert isinstance(command, ReadFile)
        word, _, rest = command.path.partition(":")
        match word:
            case "forever":
                log("waiting")
                try:
                    await anyio.sleep_forever()
                finally:
                    log("cancelled")
            case "hold":
                self._held += 1
                log("held")
                while not Path("let-go").exists():
                    await anyio.sleep(0.01)
                self._held -= 1
            case "let_go":
                Path("let-go").touch()
            case "progress":
                await caller.report_wait(5.0, "something")
                await caller.report_wait(10.0, "something")
            case "surprise":
                raise RuntimeError("the secret of the server")
            case "refuse":
                raise CodespaceError(ErrorCode(rest), "refused as told")
            case "stray":
                print("STRAY from python", flush=True)
                child = "echo STRAY from a child; head -c 10"
                done = subprocess.run(["sh", "-c", child], check=True, stderr=subprocess.PIPE)
                return window(command.path, repr(done.stderr))
            case "half":
                return window("half\udce9\ud800", "content\udcff")
            case "big":
                return window(command.path, "x" * int(rest))
        return window(command.path, f"{len(rest)}")


def window(path: str, content: str) -> FileWindow:
    return FileWindow(
        path=path, content=content, version="sha256:" + "0" * 64, truncated=False, byte_count=len(content),
        content_lossy=False, line_count=1,
    )


class ScriptedLife:
    """Stands for the instance's own story."""

    async def record_refusal(self, refused: Any, caller: Caller) -> None:
        log(f"refused {refused.tool} {refused.code} by {caller.client} {caller.channel}")

    def stop_because(self, stopped: Any) -> None:
        log(f"stopped {stopped.reason}")


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def main() -> None:
    door: Any = ScriptedDoor()
    life: Any = ScriptedLife()
    await serve_stdio(door, life)


if __name__ == "__main__":
    anyio.run(main)
