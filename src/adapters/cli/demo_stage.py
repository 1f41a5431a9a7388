"""The stage of the demo: a scratch project, servers on it, and a narrator who checks what he tells."""

import json
import re
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
from mcp import Client, StdioServerParameters, stdio_client

from adapters.cli.output import clean
from adapters.log.reader import LogReader
from adapters.settings.directories import LOG_FILE_NAME
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.projections.timeline import TimelineEntry
from replay.timeline import Timeline
from replay.verify import VerifyReport, verify

_WIDTH = 96
_INDENT = "   "
_LONG_IDS = re.compile(r"\b((?:op|proc)-[0-9a-f]{8})-[0-9a-f-]{27}")


class Stage:
    """A scratch project and its log; tells a story and remembers whether it was true."""

    def __init__(self, scratch: Path) -> None:
        """Make project and log directories beneath `scratch`, which is empty."""
        self.project = scratch / "project"
        self.project.mkdir()
        self._scratch = scratch
        self._position = 0
        self._chapter = 0
        self._broken: list[str] = []

    @property
    def is_as_told(self) -> bool:
        """Whether every check so far held."""
        return not self._broken

    # The servers

    @asynccontextmanager
    async def server(self, *, dying_at: FaultPoint | None = None) -> AsyncIterator[Client]:
        """Start a server on the project and yield a client of it; `dying_at`: it kills itself there."""
        arguments = ["-m", "adapters.cli", "serve", "--data-dir", str(self._scratch / "data"),
                     "--workspace", f"demo={self.project}"]
        if dying_at is not None:
            arguments += ["--die-at", dying_at.value]
        parameters = StdioServerParameters(command=sys.executable, args=arguments)
        with (self._scratch / "server-messages.txt").open("a", encoding="utf-8") as messages:
            async with Client(stdio_client(parameters, errlog=messages)) as client:
                yield client

    async def call(self, client: Client, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """Call a tool, tell it, and return what it answered, an error's body too."""
        self._wrapped("→ ", f"{tool}({_told_arguments(arguments)})", fg="cyan")
        return await self.ask(client, tool, **arguments)

    async def ask(self, client: Client, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """Call a tool without telling it."""
        is_of_workspace = arguments.keys().isdisjoint({"operation_id", "process_id"}) and tool != "operation_status"
        answered = await client.call_tool(tool, {"workspace_id": "demo", **arguments} if is_of_workspace else arguments)
        body = answered.structured_content
        assert isinstance(body, dict), "every answer is an object"
        return body

    # The narrator

    def chapter(self, title: str, text: str) -> None:
        """Begin a chapter."""
        self._chapter += 1
        click.echo()
        click.secho(f"{self._chapter:2} {title}", bold=True)
        self.say(text)

    def say(self, text: str) -> None:
        """Tell something."""
        self._wrapped("", text)

    def answer(self, text: str) -> None:
        """Tell what was answered."""
        self._wrapped("← ", clean(text), fg="cyan")

    def listing(self, text: str) -> None:
        """Show a file or a diff as it is."""
        for line in text.rstrip("\n").split("\n"):
            colour = {"+": "green", "-": "red"}.get(line[:1])
            self._line(f"  │ {clean(line)}", fg=colour)

    def check(self, is_true: bool, sentence: str) -> None:
        """Tell that `sentence` holds, or that it doesn't, which makes the demo fail."""
        if not is_true:
            self._broken.append(sentence)
        self._line(f"{'✓' if is_true else '✗'} {sentence}", fg="green" if is_true else "red")

    def events(self) -> list[TimelineEntry]:
        """Show what was recorded since the last time, and return it."""
        with self._log() as source:
            page = Timeline(source).read(after=self._position, limit=1_000)
        for entry in page.entries:
            self._position = entry.position
            topic = entry.topic.rpartition(".")[0]
            self._wrapped(f"{entry.position:>3}  {topic:<20} ", _with_short_ids(clean(entry.summary)), dim=True)
        return list(page.entries)

    def verify(self) -> VerifyReport:
        """Return what an audit of the log says."""
        with self._log() as source:
            return verify(source)

    def tell_verdict(self) -> None:
        """Say whether all went as told."""
        click.echo()
        if self.is_as_told:
            click.secho("All went as told.", fg="green", bold=True)
        else:
            click.secho(f"Not as told: {' '.join(self._broken)}", fg="red", bold=True)

    def file(self, name: str) -> str:
        """Return a file of the project."""
        return (self.project / name).read_text(encoding="utf-8")

    def _log(self) -> LogReader:
        return LogReader(self._scratch / "data" / LOG_FILE_NAME, CATALOGUE)

    def _wrapped(self, head: str, text: str, **style: Any) -> None:
        """Print `text` behind `head`, its further lines beneath its first."""
        lines = textwrap.wrap(text, _WIDTH - len(_INDENT) - len(head), break_on_hyphens=False)
        for number, line in enumerate(lines):
            self._line((head if number == 0 else " " * len(head)) + line, **style)

    @staticmethod
    def _line(text: str, **style: Any) -> None:
        click.secho(_INDENT + text, **style)


def _told_arguments(arguments: Mapping[str, Any]) -> str:
    """Return arguments short enough for a line: a patch by its size, versions by their beginning."""
    told: list[str] = []
    for name, value in arguments.items():
        if name == "patch":
            told.append("patch=…")
        elif name == "expected_versions":
            told.append("expected_versions={" + ", ".join(f"{path}: {short_version(v)}" for path, v in value.items())
                        + "}")
        else:
            shown = _with_short_ids(value) if isinstance(value, str) else value
            told.append(f"{name}={json.dumps(shown, ensure_ascii=False)}")
    return ", ".join(told)


def short_version(version: str) -> str:
    """Return a version short enough to read."""
    return version[:14] + "…" if version.startswith("sha256:") else version


def _with_short_ids(text: str) -> str:
    return _LONG_IDS.sub(r"\1…", text)
