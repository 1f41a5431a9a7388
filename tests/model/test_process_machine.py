"""Any sequence of starting, writing, reading, ending, deaths and restarts of commands, on two servers over one store.

The invariants after every step: no key ever ran twice; what runs has no exit and what has ended keeps its own, on
either server; the workspace's lease is held exactly while a tree lives.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adapters.locks.flock import LockDirectory
from codespace_es.command_handlers.driving import ResizeTerminal, TerminateProcess, WriteInput
from codespace_es.command_handlers.observing import AskProcess, ReadProcess
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.invocation import ExecCommand
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from support.commands import lines_of
from support.effort import examples
from support.machines import end_whole
from support.memory import MEMORY
from support.server import Server

KEYS = st.sampled_from(["k1", "k2", "k3", "k4", "k5"])
SERVERS = st.sampled_from(["left", "right"])
SCRIPT = 'echo x >> "count-$0"; cat; exit 3'
"""Counts that it ran, gives back what it gets, and ends with its input."""


@dataclass
class Started:
    """A command as the model knows it."""

    process_id: str
    owner: str | None
    """The server it lives in; None once it has ended."""
    printed: str = ""
    end: tuple[str, int | None] | None = None
    """Termination and exit code."""


class Processes(RuleBasedStateMachine):
    """Two servers, one store, one workspace."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(dir=MEMORY, prefix="codespace-model-"))
        self.root = self.scratch / "ws"
        self.root.mkdir()
        self.portal_context = start_blocking_portal()
        self.portal = self.portal_context.__enter__()
        self.started: dict[str, Started] = {}
        self.servers: dict[str, Server] = {}
        self.patches = 0

    @initialize()
    def begin(self) -> None:
        """Two servers."""
        for name in ("left", "right"):
            self._begin(name)

    def _begin(self, name: str) -> None:
        server = Server(self.scratch, {"ws": self.root}, sandbox="off", settles_at_start=False,
                        process_timeout_seconds=0)
        self.servers[name] = self.portal.call(server.start)

    def _ask(self, name: str, command: Command) -> dict[str, Any]:
        """Return an answer or a refusal, in its wire form."""
        try:
            return self.portal.call(self.servers[name].handle, command).to_wire()
        except CodespaceError as error:
            return error.to_wire()

    def _live(self) -> Started | None:
        return next((each for each in self.started.values() if each.owner is not None), None)

    def _until_ended(self, started: Started, name: str) -> None:
        """Read on `name` until the end is told."""
        while not self._ask(name, AskProcess(process_id=started.process_id)).get("eof"):
            self._ask(name, ReadProcess(process_id=started.process_id, cursor=10**9, wait_ms=1_000))

    def _code_elsewhere(self, started: Started, name: str) -> str | None:
        """Return the code by which driving it on `name` is refused, None if it isn't."""
        if started.owner is None:
            return "PROCESS_NOT_RUNNING"
        return None if started.owner == name else "PROCESS_NOT_FOUND"

    @rule(name=SERVERS, key=KEYS)
    def start(self, name: str, key: str) -> None:
        """A used key is answered with the same command; a new one runs where nothing lives."""
        command = ExecCommand(workspace_id="ws", command=["bash", "-c", SCRIPT, key], operation_key=key)
        wire = self._ask(name, command)
        known = self.started.get(key)
        if known is not None:
            is_open = known.end is not None and known.end[0] == "unknown"
            assert (wire["process_id"], wire["replayed"]) == (known.process_id, True)
            assert wire["dispatch_status"] == ("unknown" if is_open else "confirmed")
        elif (live := self._live()) is not None:
            assert (wire["code"], wire["process_id"]) == ("WORKSPACE_BUSY", live.process_id)
        else:
            assert wire["dispatch_status"] == "confirmed"
            self.started[key] = Started(wire["process_id"], name)

    @rule(name=SERVERS, key=KEYS, text=st.text(alphabet="aé€🙂\n", max_size=20))
    def write(self, name: str, key: str, text: str) -> None:
        """Who runs it takes input for it, nobody else."""
        started = self.started.get(key)
        if started is None:
            return
        request = WriteInput.model_validate({"process_id": started.process_id, "data": text})
        wire = self._ask(name, request)
        assert wire.get("code") == self._code_elsewhere(started, name)
        if "code" not in wire:
            started.printed += text

    @rule(name=SERVERS, key=KEYS)
    def close_input(self, name: str, key: str) -> None:
        """It ends by itself when its input does."""
        started = self.started.get(key)
        if started is None:
            return
        request = WriteInput.model_validate({"process_id": started.process_id, "data": "", "eof": True})
        wire = self._ask(name, request)
        assert wire.get("code") == self._code_elsewhere(started, name)
        if "code" not in wire:
            self._until_ended(started, name)
            started.owner, started.end = None, ("exited", 3)

    @rule(name=SERVERS, key=KEYS)
    def terminate(self, name: str, key: str) -> None:
        """Who runs it ends it; of an ended one it is a no-op anywhere."""
        started = self.started.get(key)
        if started is None:
            return
        wire = self._ask(name, TerminateProcess(process_id=started.process_id))
        assert wire.get("code") == ("PROCESS_NOT_FOUND" if started.owner not in (None, name) else None)
        if started.owner == name:
            self._until_ended(started, name)
            started.owner, started.end = None, ("terminated", None)

    @rule(name=SERVERS, key=KEYS, bytes_max=st.integers(1, 9))
    def read(self, name: str, key: str, bytes_max: int) -> None:
        """What it printed comes whole and in order, in pieces of any size."""
        started = self.started.get(key)
        if started is None:
            return
        if started.owner not in (None, name):
            wire = self._ask(name, ReadProcess(process_id=started.process_id))
            assert wire["code"] == "PROCESS_NOT_FOUND"
            return
        text, cursor, is_over = "", 0, False
        while not is_over and (started.owner is None or text != started.printed):
            command = ReadProcess(process_id=started.process_id, cursor=cursor, wait_ms=2_000, max_bytes=bytes_max)
            wire = self._ask(name, command)
            text, cursor, is_over = text + wire["chunk"], wire["cursor"], wire["eof"]
        if started.end is not None and started.end[0] == "unknown":
            assert text == ""
        elif started.end is not None and started.end[0] == "terminated":
            assert started.printed.startswith(text)
        else:
            assert text == started.printed

    @rule(name=SERVERS)
    def patch(self, name: str) -> None:
        """Files may be changed exactly while nothing lives."""
        number = self.patches + 1
        text = f"*** Begin Patch\n*** Add File: f{number}.txt\n+x\n*** End Patch\n"
        wire = self._ask(name, ApplyPatch(workspace_id="ws", patch=text))
        if self._live() is None:
            assert wire["status"] == "applied"
            self.patches = number
        else:
            assert wire["code"] == "WORKSPACE_BUSY"

    @rule(name=SERVERS, key=KEYS)
    def resize(self, name: str, key: str) -> None:
        """It has no terminal."""
        started = self.started.get(key)
        if started is not None:
            wire = self._ask(name, ResizeTerminal(process_id=started.process_id, rows=2, cols=2))
            assert wire["code"] == (self._code_elsewhere(started, name) or "PROCESS_NOT_TTY")

    @rule(name=SERVERS)
    def restart(self, name: str) -> None:
        """An orderly end ends what lives there, and says so."""
        self.portal.call(self.servers[name].stop)
        self._lose(name, ("terminated", None))
        self._begin(name)

    @rule(name=SERVERS)
    def die(self, name: str) -> None:
        """A death takes all that lived there with it; how it ended can't be known."""
        self.portal.call(self.servers[name].die)
        self._lose(name, ("unknown", None))
        self._begin(name)

    def _lose(self, name: str, end: tuple[str, int | None]) -> None:
        for started in self.started.values():
            if started.owner == name:
                started.owner, started.end = None, end

    @invariant()
    def nothing_ever_ran_twice(self) -> None:
        """The commands count themselves."""
        for key in ("k1", "k2", "k3", "k4", "k5"):
            ran = lines_of(self.root / f"count-{key}")
            assert ran <= (1 if key in self.started else 0)

    @invariant()
    def what_runs_has_no_exit_and_what_has_ended_keeps_it(self) -> None:
        """The same on either server."""
        for started in self.started.values():
            for name, server in self.servers.items():
                wire = self._ask(name, AskProcess(process_id=started.process_id))
                ending = (wire.get("termination"), wire.get("exit_code"))
                if started.owner is None:
                    assert (wire["state"], wire["eof"], ending) == ("exited", True, started.end)
                else:
                    assert (wire["state"], wire["eof"], ending) == ("running", False, (None, None))
                    assert wire["live"] == (started.owner == name)
                    owner = self.servers[started.owner].world.instance_id
                    assert wire.get("owner") == (None if server is self.servers[started.owner] else owner)

    @invariant()
    def the_lease_is_held_exactly_while_a_tree_lives(self) -> None:
        """By whoever has it: server, spawner or reaper."""
        if not self.servers:
            return
        key = self.servers["left"].world.workspaces["ws"].key
        held = LockDirectory(str(self.scratch / "locks")).try_lock(key)
        if held is not None:
            held.release()
        assert (held is None) == (self._live() is not None)

    def teardown(self) -> None:
        """The log is whole at the end, whatever happened."""
        end_whole(self)


TestProcesses = Processes.TestCase
TestProcesses.settings = settings(max_examples=examples(10), stateful_step_count=18)
