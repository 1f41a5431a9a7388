"""Any sequence of pushes, resolves, errors, deaths and restarts, on two servers over one store.

The model is a list a session, newest last, and one number in a file. Durable actions outlive their server, closures die
with it; an apply changes the number once, or nothing; what was resolved is answered again and never done again.
"""

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from codespace_es.aggregates.pending.events import PendingActionPushed
from codespace_es.ports.fault_points import no_faults
from codespace_es.ports.tool_host import ActionCall, CallbackRaisedError, CallbackResult
from support.effort import examples
from support.holds import audit
from support.memory import MEMORY
from support.pending import FakeToolHost, push_closure, push_edits, push_handler, resolve, stack_of
from support.server import DieFrom, Server, ServerDied

SERVERS = st.sampled_from(["left", "right"])
WORKS = st.sampled_from(["w1", "w2"])
KINDS = st.sampled_from(["edits", "handler", "closure", "raising", "nested"])


@dataclass
class Waiting:
    """An action as the model knows it."""

    action_id: str
    kind: str
    owner: str
    label: str
    number: int
    """Edits: what the file said when the preview was made."""


class PendingActions(RuleBasedStateMachine):
    """Two servers, one store, one workspace, a stack a work."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(dir=MEMORY, prefix="codespace-model-"))
        self.root = self.scratch / "ws"
        self.root.mkdir()
        self.file = self.root / "n.txt"
        self.file.write_text("0\n")
        self.number = 0
        self.stacks: dict[str, list[Waiting]] = {"w1": [], "w2": []}
        self.over: dict[str, str] = {}
        """How an action ended."""
        self.count = 0
        self._context = start_blocking_portal()
        self.portal = self._context.__enter__()
        self.servers: dict[str, Server] = {}

    # Servers

    @initialize()
    def begin(self) -> None:
        for name in ("left", "right"):
            self._start(name)

    def _start(self, name: str) -> None:
        host = FakeToolHost({"bump": self._bump, "nested": self._nested})
        server = Server(self.scratch, {"demo": self.root}, tool_host=host, is_shared=True)
        self.servers[name] = self.portal.call(server.start)

    def _ended(self, name: str) -> None:
        """Forget the closures of a server that has ended: they are orphaned."""
        for stack in self.stacks.values():
            for each in [each for each in stack if each.owner == name and each.kind in ("closure", "raising")]:
                stack.remove(each)
                self.over[each.action_id] = "orphaned"

    @rule(name=SERVERS, is_dying=st.booleans())
    def restart(self, name: str, *, is_dying: bool) -> None:
        server = self.servers.pop(name)
        self.portal.call(server.die if is_dying else server.stop)
        self._ended(name)
        self._start(name)

    # What callbacks do

    async def _bump(self, _call: ActionCall) -> CallbackResult:
        old = int(self.file.read_text())
        patch = f"*** Begin Patch\n*** Update File: n.txt\n@@\n-{old}\n+{old + 1}\n*** End Patch\n"
        return CallbackResult("bumped", patches=(patch,))

    async def _raise(self, _call: ActionCall) -> CallbackResult:
        raise CallbackRaisedError("no")

    async def _nested(self, call: ActionCall) -> CallbackResult:
        name = call.payload
        inner = await push_handler(self.servers[name], "bump", label=f"inner of {call.label}", work_id=call.work_id)
        assert call.work_id is not None
        self.stacks[call.work_id].append(Waiting(inner.action_id, "handler", name, f"inner of {call.label}", 0))
        return CallbackResult("staged more")

    # Pushing and resolving

    @rule(name=SERVERS, work=WORKS, kind=KINDS)
    def push(self, name: str, work: str, kind: str) -> None:
        self.count += 1
        label, server = f"{kind} {self.count}", self.servers[name]
        action_id = self.portal.call(self._push, server, name, work, kind, label)
        self.stacks[work].append(Waiting(action_id, kind, name, label, self.number))

    async def _push(self, server: Server, name: str, work: str, kind: str, label: str) -> str:
        host = server.world.tool_host
        assert isinstance(host, FakeToolHost)
        more: dict[str, Any] = {"label": label, "work_id": work}
        if kind == "edits":
            return (await push_edits(server, self.root, {"n.txt": f"{self.number + 1}\n".encode()}, **more)).action_id
        if kind in ("closure", "raising"):
            apply = self._bump if kind == "closure" else self._raise
            return (await push_closure(server, host, apply, **more)).action_id
        return (await push_handler(server, "bump" if kind == "handler" else "nested", name, **more)).action_id

    @rule(name=SERVERS, work=WORKS, is_named=st.booleans())
    def apply(self, name: str, work: str, *, is_named: bool) -> None:
        stack = self.stacks[work]
        if not stack:
            assert self._resolve(name, "apply", work)["code"] == "NO_PENDING_ACTION"
            return
        top = stack[-1]
        told = self._resolve(name, "apply", work, **({"id": top.action_id} if is_named else {}))
        self._settle_model(name, work, top, told)

    def _settle_model(self, name: str, work: str, top: Waiting, told: dict[str, Any]) -> None:
        """Bring the model to what an apply of `top` must have done, and compare the answer."""
        stack = self.stacks[work]
        is_here = top.kind not in ("closure", "raising") or top.owner == name
        if not is_here or top.kind == "raising":
            assert told["detail"]["outcome"] == "returned"
        elif top.kind == "edits" and top.number != self.number:
            assert told["code"] == "STALE_PREVIEW"
            self._end(stack, top, "failed")
        else:
            assert told["outcome"] == "applied", told
            assert told["label"] == top.label
            self.number += top.kind != "nested"
            self._end(stack, top, "applied")
            assert told["remaining"] == len(stack)

    def _end(self, stack: list[Waiting], action: Waiting, outcome: str) -> None:
        stack.remove(action)
        self.over[action.action_id] = outcome

    @rule(name=SERVERS, work=WORKS)
    def discard(self, name: str, work: str) -> None:
        stack = self.stacks[work]
        told = self._resolve(name, "discard", work, reason="r")
        if not stack:
            assert told["code"] == "NO_PENDING_ACTION"
            return
        assert told["text"] == f"Discarded: {stack[-1].label}. Reason: r"
        self._end(stack, stack[-1], "discarded")

    @precondition(lambda self: self.over)
    @rule(name=SERVERS, choice=st.data())
    def ask_again(self, name: str, choice: st.DataObject) -> None:
        action_id = choice.draw(st.sampled_from(sorted(self.over)))
        told = self._resolve(name, "apply", "", id=action_id, is_anywhere=True)
        outcome = self.over[action_id]
        assert told.get("outcome", told.get("detail", {}).get("outcome")) == outcome
        assert told.get("replayed", told.get("detail", {}).get("replayed")) is True

    @precondition(lambda self: any(len(stack) > 1 for stack in self.stacks.values()))
    @rule(name=SERVERS)
    def name_another(self, name: str) -> None:
        work, stack = next((work, stack) for work, stack in self.stacks.items() if len(stack) > 1)
        told = self._resolve(name, "apply", work, id=stack[0].action_id)
        assert told["code"] == "PENDING_ACTION_MISMATCH"
        assert told["detail"]["pending"] == [each.action_id for each in reversed(stack)]

    @rule(number=st.integers(1, 3))
    def somebody_else_writes(self, number: int) -> None:
        self.number += number
        self.file.write_text(f"{self.number}\n")

    @precondition(lambda self: any(self.stacks.values()))
    @rule(name=SERVERS, moment=st.integers(1, 40), action=st.sampled_from(["apply", "discard"]))
    def die_while_resolving(self, name: str, moment: int, action: str) -> None:
        work, stack = next((work, stack) for work, stack in self.stacks.items() if stack)
        top, server = stack[-1], self.servers[name]
        server.hook = fate = DieFrom(moment)
        told = None
        with suppress(ServerDied):
            given = {"workspace_id": "demo", "work_id": work, "reason": "r"}
            told = self.portal.call(self._call, server, action, given)
        server.hook = no_faults
        del self.servers[name]
        self.portal.call(server.die)
        if told is not None and not fate.has_struck:
            if action == "apply":
                self._settle_model(name, work, top, told)
            else:
                self._end(stack, top, "discarded")
        self._start(name)
        if fate.has_struck:
            self._look(name, work, top)
        self._ended(name)

    def _look(self, name: str, work: str, top: Waiting) -> None:
        """Take from the log what nobody could know, and hold it to what may be."""
        recorded = self.portal.call(stack_of, self.servers[name], work)
        stack = self.stacks[work]
        known = {*self.over, *(each.action_id for each in stack)}
        for pushed in (each.event for each in recorded.recorded):
            if isinstance(pushed, PendingActionPushed) and pushed.action_id not in known:
                assert pushed.label == f"inner of {top.label}", "only its callback has pushed meanwhile"
                stack.append(Waiting(pushed.action_id, "handler", name, pushed.label, 0))
        ends = {
            each.event.action_id: each.event.outcome
            for each in recorded.recorded if each.topic == "pending.action_popped.v1"
        }
        ended = ends.get(top.action_id)
        number = int(self.file.read_text())
        if ended == "applied":
            assert number == self.number + (top.kind != "nested")
        else:
            assert number == self.number, "what isn't applied has written nothing"
        self.number = number
        if ended is not None:
            self._end(stack, top, ended)
        else:  # it is on top again, above what its callback has pushed
            stack.remove(top)
            stack.append(top)

    def _resolve(self, name: str, action: str, work: str, *, is_anywhere: bool = False, **more: Any) -> dict:
        given = more if is_anywhere else {"workspace_id": "demo", "work_id": work, **more}
        return self.portal.call(self._call, self.servers[name], action, given)

    @staticmethod
    async def _call(server: Server, action: str, given: dict[str, Any]) -> dict[str, Any]:
        return await resolve(server, action, **{key: value for key, value in given.items() if value is not None})

    # What always holds

    @invariant()
    def log_disk_and_model_agree(self) -> None:
        if not self.servers:
            return
        assert int(self.file.read_text()) == self.number
        for work, stack in self.stacks.items():
            state = self.portal.call(stack_of, self.servers["left"], work).state
            assert [each.action_id for each in state.unresolved] == [each.action_id for each in stack]

    def teardown(self) -> None:
        for server in self.servers.values():
            self.portal.call(server.stop)
        self._context.__exit__(None, None, None)
        if self.servers:
            assert audit(self.scratch).findings == ()
        shutil.rmtree(self.scratch)


TestPendingActions = PendingActions.TestCase
TestPendingActions.settings = settings(max_examples=examples(10), stateful_step_count=20)
