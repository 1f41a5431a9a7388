"""Real gateways for model tests, in this process: the composition root itself over a scratch directory.

A death is played at a fault point: from then on every durable step fails, as if the process were gone; its locks fall
when it has unwound. Source: docs/model-testing.md.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from adapters.bootstrap import OpenCodespace, open_codespace
from adapters.clock_and_ids import RandomIds
from adapters.locks.flock import lock_directory_of_user
from adapters.log.reader import LogReader
from adapters.machine import machine_id
from adapters.settings.load import Flags, Settings, load_settings
from codespace_es.aggregates.approval import APPROVAL, ApprovalCreated, wire_state
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.testing.gateways import Sight
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller, Channel
from codespace_es.vocabulary.identifiers import RequestId, StreamId
from replay.verify import verify


class Death(BaseException):
    """The end of a server, played in this process."""


class SteppedClock:
    """A wall clock that moves only when it is told to; the other one runs."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._ticks = 0

    def now(self) -> datetime:
        """Return the wall clock."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        self._ticks += 1
        return self._ticks / 1000

    def step(self, seconds: float) -> None:
        """Move the wall clock."""
        self._now += timedelta(seconds=seconds)


class _Fate:
    """The fault hook of one server: harmless until a death is set, deadly for good from its moment on."""

    def __init__(self) -> None:
        self._left: int | None = None

    @property
    def has_struck(self) -> bool:
        """The moment came."""
        return self._left is not None and self._left <= 0

    def set(self, moment: int | None) -> None:
        """Die at the `moment`-th point from now; None: live on."""
        self._left = moment

    def __call__(self, _point: FaultPoint) -> None:
        if self._left is None:
            return
        self._left -= 1
        if self.has_struck:
            raise Death


@dataclass(frozen=True, slots=True)
class _Alive:
    """One server that was started."""

    life: Future[None]
    """Done when it has ended, and its locks have fallen."""
    opened: OpenCodespace
    end: anyio.Event
    fate: _Fate


class ScratchGateways:
    """`codespace_es.testing.Gateways`, for real: real files, SQLite, locks and processes. A context manager."""

    def __init__(self) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="codespace-model-")).resolve()
        self._root = self._scratch / "workspace"
        self._root.mkdir()
        self._clock = SteppedClock()
        self._alive: dict[str, _Alive] = {}
        self._portal_context: AbstractContextManager[BlockingPortal] = start_blocking_portal()
        self._portal = self._portal_context.__enter__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, name: str, policy: Mapping[str, Any]) -> None:
        """Start the server. See the protocol."""
        fate = _Fate()
        opening = open_codespace(
            self._settings(name, policy), transport="stdio", faults=fate, clock=self._clock
        )
        life, (opened, end) = self._portal.start_task(self._live, opening, fate)
        self._alive[name] = _Alive(life, opened, end, fate)

    @staticmethod
    async def _live(
        opening: AbstractAsyncContextManager[OpenCodespace], fate: _Fate,
        *, task_status: TaskStatus[tuple[OpenCodespace, anyio.Event]],
    ) -> None:
        """Keep a server alive until it is told to end, or dies."""
        end = anyio.Event()
        try:
            async with opening as opened:
                task_status.started((opened, end))
                await end.wait()
        except BaseException:
            if not fate.has_struck:
                raise

    def _settings(self, name: str, policy: Mapping[str, Any]) -> Settings:
        given = {"root": str(self._root), "profile": "workspace-write", **policy}
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())
        path = self._scratch / f"{name}.toml"
        path.write_text(f"[workspaces.demo]\n{lines}", encoding="utf-8")
        locks = Path(lock_directory_of_user())
        flags = Flags(config=str(path), data_dir=str(self._scratch / "data"))
        return load_settings(flags, {}, machine_id=lambda: machine_id(locks, RandomIds()), lock_directory=locks)

    def stop(self, name: str) -> None:
        """End it in good order. See the protocol."""
        alive = self._alive.pop(name)
        self._portal.call(alive.end.set)
        alive.life.result()

    def ask(self, name: str, command: Command, channel: Channel = "mcp") -> dict[str, Any]:
        """Return the answer on the wire, or the refusal."""
        answer: dict[str, Any] | None = self._portal.call(self._ask, self._alive[name], command, channel)
        assert answer is not None, "it lives"
        return answer

    async def _ask(self, alive: _Alive, command: Command, channel: Channel) -> dict[str, Any] | None:
        """Return the answer; None if the server died first."""
        world = alive.opened.world
        try:
            return (await alive.opened.codespace.handle(
                command, Caller(channel, RequestId(f"req-{world.ids.uuid()}"), "model/1")
            )).to_wire()
        except CodespaceError as error:
            return error.to_wire()
        except BaseException:
            if not alive.fate.has_struck:
                raise
            return None

    def ask_to_death(self, name: str, command: Command, moment: int) -> dict[str, Any] | None:
        """Ask a server that dies at a moment. See the protocol."""
        alive = self._alive[name]
        alive.fate.set(moment)
        answer: dict[str, Any] | None = self._portal.call(self._ask, alive, command, "mcp")
        if not alive.fate.has_struck:
            alive.fate.set(None)
            return answer
        self.stop(name)
        return None

    def text(self, path: str) -> str:
        """Return what a file holds; empty if there is none."""
        file = self._root / path
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def write(self, path: str, text: str) -> None:
        """Write a file from outside."""
        (self._root / path).write_text(text, encoding="utf-8")

    def look(self, approval_id: str) -> Sight:
        """Return what the log says of a hold."""
        with LogReader(self._log, CATALOGUE) as reader:
            recorded = reader.read_stream(StreamId(approval_id))
            created = recorded[0].event
            assert isinstance(created, ApprovalCreated), "a hold begins with being created"
            stored = reader.read_body(StreamId(approval_id), created.arguments.digest)
            return Sight(wire_state(APPROVAL.fold_recorded(recorded)), stored is not None)

    def step_clock(self, seconds: float) -> None:
        """Move the wall clock of every server."""
        self._clock.step(seconds)

    def audit(self) -> Sequence[str]:
        """Return what an audit of the whole log finds wrong."""
        with LogReader(self._log, CATALOGUE) as reader:
            return [finding.problem for finding in verify(reader).findings]

    @property
    def _log(self) -> Path:
        return self._scratch / "data" / "codespace.db"

    def close(self) -> None:
        """End what lives and remove what was written."""
        for name in list(self._alive):
            self.stop(name)
        self._portal_context.__exit__(None, None, None)
        shutil.rmtree(self._scratch)
