"""Any sequence of patches, repeats, previews, undos, deaths and restarts, on two servers over one store.

The model is three small dicts: what the files hold, what each key was answered, what each operation came to. After
every step disk, log and model have to agree, both ways: what the model allows succeeds, what it refuses is refused
with its code.
"""

import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.ports.fault_points import no_faults
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from support.effort import examples
from support.machines import end_whole
from support.memory import MEMORY
from support.server import DieFrom, Server, ServerDied

NUMBERS = st.integers(0, 3)
KEYS = st.sampled_from([None, "k1", "k2", "k3"])
SERVERS = st.sampled_from(["left", "right"])


def patch_text(old: int, new: int) -> str:
    """A patch over two files: it turns the counter from `old` to `new`, and adds a file in a folder of its own."""
    return (
        "*** Begin Patch\n*** Update File: n.txt\n@@\n"
        f"-{old}\n+{new}\n*** Add File: made{new}/deep/f.txt\n+from {old}\n*** End Patch\n"
    )


@dataclass(frozen=True)
class Known:
    """What a key was answered, as far as a client can know."""

    request: tuple[Any, ...]
    outcome: str
    operation_id: str


class Idempotency(RuleBasedStateMachine):
    """Two servers, one store, one workspace."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(dir=MEMORY, prefix="codespace-model-"))
        self.root = self.scratch / "ws"
        self.root.mkdir()
        self.portal_context = start_blocking_portal()
        self.portal = self.portal_context.__enter__()
        self.files: dict[str, str] = {"n.txt": "0\n"}
        self.keys: dict[str, Known] = {}
        self.applied: dict[str, tuple[int, int]] = {}
        self.servers: dict[str, Server] = {}

    @initialize()
    def begin(self) -> None:
        """One file and two servers."""
        (self.root / "n.txt").write_text("0\n")
        for name in ("left", "right"):
            self._restart(name)

    def _restart(self, name: str) -> None:
        self.servers[name] = self.portal.call(Server(self.scratch, {"demo": self.root}).start)

    def _ask(self, name: str, command: Command) -> tuple[str, dict[str, Any]]:
        """Return the status or code of an answer, and its wire form."""
        try:
            wire = self.portal.call(self.servers[name].handle, command).to_wire()
        except CodespaceError as error:
            return error.code.value, error.to_wire()
        return str(wire["status"]), wire

    def _expected(self, old: int, new: int) -> str:
        if self.files.get("n.txt") != f"{old}\n":
            return "INVALID_PATCH"
        return "ADD_FILE_EXISTS" if f"made{new}/deep/f.txt" in self.files else "applied"

    def _write(self, old: int, new: int) -> None:
        self.files |= {"n.txt": f"{new}\n", f"made{new}/deep/f.txt": f"from {old}\n"}

    @rule(name=SERVERS, old=NUMBERS, new=NUMBERS, key=KEYS, check_only=st.booleans())
    def patch(self, name: str, old: int, new: int, key: str | None, check_only: bool) -> None:
        """A new request runs, a repeat is answered with the same, another request under a used key conflicts."""
        command = ApplyPatch(
            workspace_id="demo", patch=patch_text(old, new), operation_key=key, check_only=check_only
        )
        status, wire = self._ask(name, command)
        request = ("patch", old, new, check_only)
        known = self.keys.get(key) if key else None
        if known is not None and known.request != request:
            assert status == "OPERATION_KEY_CONFLICT"
            return
        if known is not None:
            assert (status, wire["operation_id"]) == (known.outcome, known.operation_id)
            assert wire.get("replayed", True) is True
            return
        expected = self._expected(old, new)
        if check_only and expected == "applied":
            expected = "checked"
        assert status == expected
        if status == "applied":
            assert wire["replayed"] is False
            self._write(old, new)
            self.applied[wire["operation_id"]] = (old, new)
        if key:
            self.keys[key] = Known(request, status, wire["operation_id"])

    @precondition(lambda self: self.applied)
    @rule(name=SERVERS, which=st.integers(0, 9))
    def undo(self, name: str, which: int) -> None:
        """An operation can be undone exactly once, and only while its files are as it left them."""
        operation_id, (old, new) = list(self.applied.items())[which % len(self.applied)]
        path = f"made{new}/deep/f.txt"
        is_possible = self.files.get("n.txt") == f"{new}\n" and self.files.get(path) == f"from {old}\n"
        status, _ = self._ask(name, RevertOperation(operation_id=operation_id))
        if not is_possible:
            assert status == "REVERT_CONFLICT"
            return
        assert status == "applied"
        del self.applied[operation_id]
        del self.files[path]
        self.files["n.txt"] = f"{old}\n"
        assert self._ask(name, RevertOperation(operation_id=operation_id))[0] == "REVERT_CONFLICT"

    @rule(name=SERVERS, old=NUMBERS, new=NUMBERS, key=st.sampled_from(["k1", "k2", "k3"]), k=st.integers(1, 45))
    def die_in_a_patch(self, name: str, old: int, new: int, key: str, k: int) -> None:
        """Whatever the moment of death, it was done wholly or not at all, and a repeat tells which."""
        server = self.servers[name]
        server.hook = fate = DieFrom(k)
        command = ApplyPatch(workspace_id="demo", patch=patch_text(old, new), operation_key=key)
        was_known, expected = key in self.keys, self._expected(old, new)
        with suppress(ServerDied):
            self._ask(name, command)
        if fate.has_struck:
            self.portal.call(server.die)
            other = "right" if name == "left" else "left"
            told = self._ask(other, ReportOperation(operation_key=key))[0]
            self._restart(name)
            assert told == self._ask(name, ReportOperation(operation_key=key))[0]
        server.hook = no_faults
        if was_known:
            return
        status, wire = self._ask(name, ReportOperation(operation_key=key))
        if status == "OPERATION_NOT_FOUND":
            return
        request = ("patch", old, new, False)
        if status == "rejected":
            status = wire["error"]["code"]
            assert status == expected
        else:
            assert expected == "applied"
            assert status in ("applied", "failed_rolled_back")
        if status == "applied":
            self._write(old, new)
            self.applied[wire["operation_id"]] = (old, new)
        self.keys[key] = Known(request, status, wire["operation_id"])

    @rule(name=SERVERS)
    def restart(self, name: str) -> None:
        """A restart in good order changes nothing."""
        self.portal.call(self.servers[name].stop)
        self._restart(name)

    @rule(number=NUMBERS)
    def edit_from_outside(self, number: int) -> None:
        """Somebody else writes the counter."""
        (self.root / "n.txt").write_text(f"{number}\n")
        self.files["n.txt"] = f"{number}\n"

    @invariant()
    def disk_is_as_the_model(self) -> None:
        """No byte, no temporary file and no empty folder that the model doesn't know."""
        paths = sorted(self.root.rglob("*"))
        assert {str(p.relative_to(self.root)): p.read_text() for p in paths if p.is_file()} == self.files or (
            not self.servers
        )
        kept = {parent for name in self.files for parent in Path(name).parents}
        assert {p.relative_to(self.root) for p in paths if p.is_dir()} <= kept

    @invariant()
    def every_key_tells_what_was_answered(self) -> None:
        """The fold of the log agrees with what clients were told, on either server."""
        for key, known in self.keys.items():
            for name in self.servers:
                status, wire = self._ask(name, ReportOperation(operation_key=key))
                told = wire["error"]["code"] if status == "rejected" else status
                assert (told, wire["operation_id"]) == (known.outcome, known.operation_id)

    def teardown(self) -> None:
        """The log is whole at the end, whatever happened."""
        end_whole(self)


TestIdempotency = Idempotency.TestCase
TestIdempotency.settings = settings(max_examples=examples(40), stateful_step_count=20)
