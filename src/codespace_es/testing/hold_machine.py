"""A state machine over holds: any calls in any order, by two gateways, with deaths, restarts and stricter policies.

The promises that it holds a server to: an effect happens at most once a grant; consumed implies a stored answer, which
is given again word for word; what was denied or expired never runs; no grant raises a profile. After every step the
fold of the log, `approval_status` of each gateway, the disk and the model agree; at the end the log keeps every law.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from codespace_es.command_handlers.asking import AskApproval
from codespace_es.command_handlers.deciding import CreateHold, ResolveHold
from codespace_es.command_handlers.driving import WriteInput
from codespace_es.command_handlers.observing import AskProcess
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.invocation import ExecCommand
from codespace_es.testing.gateways import Gateways
from codespace_es.testing.hold_model import OVER, HeldThing, HoldModel, Policy, Request
from codespace_es.vocabulary.event import Channel

_NAMES = ("left", "right")
_GATEWAY = st.sampled_from(_NAMES)
_CHANNEL = st.sampled_from(["mcp", "cli"])
_WHICH = st.integers(0, 11)
_MOMENT = st.integers(0, 59)
_THEN = st.sampled_from(["wait", "grant", "resume", "die"])
_PATHS = ("a.txt", "b.txt")
_TOOLS = ("apply_patch", "exec_command", "operation_revert")


class HoldMachine(RuleBasedStateMachine):
    """Subclass it, give it gateways and your policies, and let `TestCase` of it be collected."""

    policies: ClassVar[Sequence[Policy]] = ({"approvals": "confirm"},)
    """The first is what both gateways begin with; restarts draw from all of them."""
    requests: ClassVar[Sequence[Request]] = (
        *(Request("apply_patch", path, key) for path in _PATHS for key in (None, "key")),
        Request("exec_command", "a.txt"),
    )
    """What is asked for."""
    moments_max: ClassVar[int] = 40
    """Deaths come at one of so many fault points."""

    def __init__(self) -> None:
        super().__init__()
        self.model = HoldModel()
        self.policy_of: dict[str, Policy] = {}
        self.gateways = self.open_gateways()
        self._occupying: str | None = None

    @abstractmethod
    def open_gateways(self) -> Gateways:
        """Return fresh gateways over a fresh log."""

    @initialize()
    def begin(self) -> None:
        """Two gateways over one log, and the files that requests write to."""
        for path in sorted({request.path for request in self.requests}):
            self.gateways.write(path, "end\n")
        for name in _NAMES:
            self._start(name, self.policies[0])

    # What clients and people do

    @rule(name=_GATEWAY, which=_WHICH, on_purpose=st.booleans(), then=_THEN, other=_GATEWAY, moment=_MOMENT)
    def ask_for(
        self, *, name: str, which: int, on_purpose: bool, then: Literal["wait", "grant", "resume", "die"], other: str,
        moment: int,
    ) -> None:
        """Ask for something that is held, by the policy or on purpose; often go on with it at once."""
        approval_id = self._ask_for(name, self.requests[which % len(self.requests)], on_purpose=on_purpose)
        if approval_id is None or then == "wait":
            return
        if self.model.holds[approval_id].state == "pending":
            self._decide(other, approval_id, "grant", "cli")
        if then == "resume":
            self._resume_as_expected(other, approval_id)
        elif then == "die":
            self._die_while_resuming(other, approval_id, moment, name)

    def _ask_for(self, name: str, request: Request, *, on_purpose: bool) -> str | None:
        policy = self.policy_of[name]
        is_held_by_policy = policy.get("approvals", "off") != "off"
        if not on_purpose and (not is_held_by_policy or request.key in self.model.keys):
            return None  # it would run at once, or be answered again: what holds have no part in
        if on_purpose:
            arguments = request.command.model_dump(mode="json", exclude_none=True)
            answer = self.gateways.ask(name, CreateHold.model_validate({"tool": request.tool, "arguments": arguments}))
        else:
            answer = self.gateways.ask(name, request.command)
        if policy.get("profile", "workspace-write") == "read-only":
            assert answer["code"] == "UNAUTHORIZED", answer
            return None
        self.model.expire_due()
        known = self.model.active(request)
        assert ("state" in answer) if on_purpose else answer["code"] == "APPROVAL_REQUIRED", answer
        approval_id = str(answer["approval_id"])
        if known is None:
            assert approval_id not in self.model.holds, "a hold that is over was answered"
            self.model.opened(approval_id, request, policy)
        else:
            assert approval_id == known, "one active hold a request"
        return approval_id

    @precondition(lambda self: self.model.holds)
    @rule(name=_GATEWAY, which=_WHICH, decision=st.sampled_from(["grant", "deny"]), channel=_CHANNEL)
    def decide(self, name: str, which: int, decision: Literal["grant", "deny"], channel: Channel) -> None:
        """Grant or deny; who may is the gateway's policy."""
        self._decide(name, self._pick(which)[0], decision, channel)

    def _decide(self, name: str, approval_id: str, decision: Literal["grant", "deny"], channel: Channel) -> None:
        held = self.model.holds[approval_id]
        command = ResolveHold(approval_id=approval_id, decision=decision)
        answer = self.gateways.ask(name, command, channel)
        if decision == "grant" and channel == "mcp" and self.policy_of[name].get("approvals") == "operator":
            assert answer["code"] == "UNAUTHORIZED", answer
        elif held.state != "pending":
            assert answer["code"] == "APPROVAL_CONFLICT", answer
        elif decision == "deny":
            assert answer["state"] == "denied", answer
            held.state = "denied"
        else:
            assert answer["state"] == "granted", answer
            held.state, held.granted_by = "granted", channel

    @precondition(lambda self: self.model.holds)
    @rule(name=_GATEWAY, which=_WHICH)
    def resume(self, name: str, which: int) -> None:
        """Resume: it runs once, is refused for good, or waits; what is consumed is answered again."""
        self._resume_as_expected(name, self._pick(which)[0])

    def _resume_as_expected(self, name: str, approval_id: str) -> None:
        held = self.model.holds[approval_id]
        answer = self._resume(name, approval_id)
        if held.state == "consumed":
            event("a consumed hold is answered again")
            assert answer == held.answer, "a stored answer is given again"
            return
        code = self.model.code_of_resume(held, self.policy_of[name])
        event(f"a resume of what is {held.state}: {code or 'it ran'}")
        assert answer.get("code") == code, answer
        if code == "WORKSPACE_BUSY":
            held.state = "queued"
        elif code != "APPROVAL_CONFLICT":
            self.model.consumed(held, answer)

    @precondition(lambda self: self._runnable())
    @rule(name=_GATEWAY, which=_WHICH, moment=_MOMENT, finder=_GATEWAY)
    def die_while_resuming(self, name: str, which: int, moment: int, finder: str) -> None:
        """Die in the middle: either gateway finds it done wholly or not at all, and nobody does it again."""
        ids = self._runnable()
        self._die_while_resuming(name, ids[which % len(ids)], moment, finder)

    def _die_while_resuming(self, name: str, approval_id: str, moment: int, finder: str) -> None:
        held = self.model.holds[approval_id]
        if self.model.code_of_resume(held, self.policy_of[name]) is not None:
            return  # only what would run has moments worth dying at
        command = ResumeOperation(approval_id=approval_id)
        answer = self.gateways.ask_to_death(name, command, 1 + moment % self.moments_max)
        if answer is None:
            event(f"a death in {held.request.tool}, the hold {self.gateways.look(approval_id).state}")
            self._forget_occupant(name)
            self._start(name, self.policy_of[name])
        found = self.gateways.look(approval_id).state
        code = None if found in ("resuming", "consumed") else self.model.code_of_resume(held, self.policy_of[finder])
        answer = self._resume(finder, approval_id)
        assert answer.get("code") == code, (found, answer)
        if code == "WORKSPACE_BUSY":
            held.state = "queued"
        else:
            self._note_what_was_done(held, answer)

    @rule(name=_GATEWAY, which=st.integers(0, 11), is_first=st.booleans())
    def restart(self, name: str, which: int, is_first: bool) -> None:
        """End in good order and start with another configuration, stricter or not; half the time with the first."""
        self.gateways.stop(name)
        self._forget_occupant(name)
        self._start(name, self.policies[0 if is_first else which % len(self.policies)])

    @rule(seconds=st.sampled_from([1, 30, 3600]))
    def let_time_pass(self, seconds: int) -> None:
        """Time passes for everybody."""
        self.gateways.step_clock(seconds)
        self.model.now += seconds

    @precondition(lambda self: self._occupying is None)
    @rule(name=_GATEWAY)
    def occupy(self, name: str) -> None:
        """Run a command that waits for its input: until its end the workspace is busy."""
        policy = self.policy_of[name]
        if policy.get("profile", "workspace-write") == "read-only":
            return
        arguments = ExecCommand(workspace_id="demo", command=["cat"]).model_dump(mode="json", exclude_none=True)
        request = CreateHold.model_validate({"tool": "exec_command", "arguments": arguments})
        approval_id = self.gateways.ask(name, request)["approval_id"]
        self.gateways.ask(name, ResolveHold(approval_id=approval_id, decision="grant"), "cli")
        answer = self._resume(name, approval_id)
        self._occupying, self.model.occupant = answer["exec_command"]["process_id"], name

    @precondition(lambda self: self._occupying is not None)
    @rule()
    def release(self) -> None:
        """Let it end."""
        name, process_id = self.model.occupant, self._occupying
        assert name is not None, "an occupant has a gateway"
        assert process_id is not None, "and a process"
        self.gateways.ask(name, WriteInput(process_id=process_id, data="", eof=True))
        self._wait_for(name, process_id)
        self._occupying = self.model.occupant = None

    # What has to hold after every step

    @invariant()
    def log_and_status_agree_with_the_model(self) -> None:
        """Each gateway says of each hold what the model says, and so does the fold; arguments stay as long as it."""
        self.model.expire_due()
        for approval_id, held in self.model.holds.items():
            for name in self.policy_of:
                told = self.gateways.ask(name, AskApproval(approval_id=approval_id))
                assert told["state"] == held.state, (approval_id, told, held)
            sight = self.gateways.look(approval_id)
            assert sight.state == held.state, (approval_id, sight, held)
            assert sight.has_arguments == (held.state not in OVER), (approval_id, sight, held)

    @invariant()
    def disk_agrees_with_the_model(self) -> None:
        """Every file was written to exactly as often as a hold was consumed for it."""
        for path in {request.path for request in self.requests} if self.policy_of else ():
            assert self.gateways.text(path) == "done\n" * self.model.done.get(path, 0) + "end\n", path

    def teardown(self) -> None:
        """The log is whole, whatever happened."""
        try:
            for name in self.policy_of:
                self.gateways.stop(name)
            findings = self.gateways.audit() if self.policy_of else ()
        finally:
            self.gateways.close()
        assert not findings, findings

    # Small steps

    def _start(self, name: str, policy: Policy) -> None:
        self.gateways.start(name, policy)
        self.policy_of[name] = policy

    def _pick(self, which: int) -> tuple[str, HeldThing]:
        """Return one of the holds, the newest oftenest, with its time taken into account."""
        self.model.expire_due()
        ids = list(self.model.holds)
        approval_id = ids[-1 - which % min(len(ids), 4)]
        return approval_id, self.model.holds[approval_id]

    def _runnable(self) -> list[str]:
        """Return the holds that wait for a resume."""
        self.model.expire_due()
        return [each for each, held in self.model.holds.items() if held.state in ("granted", "queued")]

    def _resume(self, name: str, approval_id: str) -> dict[str, Any]:
        """Return the answer without what tells a repeat from the first, once a command has come to its end."""
        answer = self.gateways.ask(name, ResumeOperation(approval_id=approval_id))
        for tool in _TOOLS:
            if tool in answer:
                answer[tool] = {key: value for key, value in answer[tool].items() if key != "replayed"}
        process_id = answer.get("exec_command", {}).get("process_id")
        if process_id is not None and self.model.holds.get(approval_id) is not None:
            self._wait_for(name, process_id)
        return answer

    def _wait_for(self, name: str, process_id: str) -> None:
        while self.gateways.ask(name, AskProcess(process_id=process_id)).get("state") == "running":
            pass

    def _forget_occupant(self, name: str) -> None:
        """A command ends with its gateway."""
        if self.model.occupant == name:
            self._occupying = self.model.occupant = None

    def _note_what_was_done(self, held: HeldThing, answer: dict[str, Any]) -> None:
        """Note a death's outcome. Whether a command ran that its server had let go or not, only the disk can say."""
        before = self.model.done.get(held.request.path, 0)
        self.model.consumed(held, answer)
        if answer.get("exec_command", {}).get("dispatch_status") == "unknown":
            count = self.gateways.text(held.request.path).count("done\n")
            assert count in (before, before + 1), "at most once"
            self.model.done[held.request.path] = count
