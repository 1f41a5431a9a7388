"""The reaper: a process between the server and one command at a time, which the command's tree can't escape.

It is the subreaper of that command alone, so whatever is beneath it belongs to the command, however it daemonised. Its
story, again and again: find the program, confine it, have it at the gate, and wait until nobody is left beneath. It
ends the tree when it is told to, a while after the leader has ended, and at once when server or spawner is gone, and
then itself too. It holds a duplicate of the workspace's lease and of the instance's lock, so both are held exactly as
long as the tree lives, whoever else is killed. Between commands it keeps a spare child for the next.
Source: decisions 1, 17, 19, 20; reliability.md section 4.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from adapters.spawner import sandbox
from adapters.spawner.executable import UnusableError, usable_program
from adapters.spawner.gate import Gate, fork_at_gate
from adapters.spawner.gated_child import Program
from adapters.spawner.spare import Spare, fork_spare
from adapters.spawner.tree import become_subreaper, descendants, kill_beneath, send_signal
from adapters.spawner.waking import Waiter, reap_ended_children
from adapters.wire import Link, LinkClosedError, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from adapters.spawner.tree import Member
    from adapters.wire import Message

AFTER_LEADER_SECONDS = 1.0
"""What is left of a tree may live on for so long when its leader has ended."""
EXECUTION_TAG = "CODESPACE_EXEC"
"""Environment variable that holds the process id, in every process of the tree that doesn't remove it: for people."""
_BEFORE_SPARE_SECONDS = 0.002
"""Others have to do with the command that has just ended: the spare for the next waits until they are through."""
_KILL_AGAIN_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25)
_RACING_PASS = 2
"""From this pass on they seem to fork while they are killed."""


def reap_commands(control: Link, request: Message, lease: int, *, spawner: int) -> NoReturn:
    """Be the reaper of this command, then of those that are asked for at `control`.

    The process ends when the server closes that, or is gone, or the spawner is.
    """
    become_subreaper()
    waiter = Waiter(spawner)
    spare = _run(request, control, waiter, None, lease)
    is_spare_due = True
    while not waiter.is_end_requested and control.fileno() >= 0:
        if is_spare_due and spare is None and not waiter.wait([control.fileno()], (), _BEFORE_SPARE_SECONDS):
            spare = fork_spare()
        is_spare_due = False  # one that is lost isn't replaced: whatever has ended it may end the next, at once
        waiter.wait([control.fileno()], (), None)
        if spare is not None and spare.pid in dict(reap_ended_children()[0]):
            spare.forget()  # somebody has killed it
            spare = None
        try:
            messages = control.receive()
        except (LinkClosedError, WireError):
            break
        for message, descriptors in messages:
            if message["kind"] == "start":  # anything else came too late for the command before
                spare = _run(message, control, waiter, spare, descriptors[0])
                is_spare_due = True
    if spare is not None:
        spare.dismiss()
    os._exit(0)


def _run(request: Message, control: Link, waiter: Waiter, spare: Spare | None, lease: int) -> Spare | None:
    """Run one command to its end; return the spare child if it wasn't used."""
    execution = _Execution(request, control, waiter, spare)
    execution.run(lease)
    return execution.spare


class _Execution:
    """One command and its tree."""

    def __init__(self, request: Message, control: Link, waiter: Waiter, spare: Spare | None) -> None:
        self._request = request
        self._process_id: str = request["process_id"]
        self._control = control
        self._waiter = waiter
        self.spare = spare
        """None once it is used."""
        self._gate: Gate | None = None
        self._confinement: sandbox.Confinement | None = None
        self._refusal: tuple[str, int | None] | None = None
        self._has_children = False
        self._leader_status: int | None = None
        self._seconds_after_leader = AFTER_LEADER_SECONDS
        self._kill_at: float | None = None
        self._kill_passes = 0
        self._not_swept: set[int] = set()
        """The command's own first process, and what confines it."""
        self._swept: set[tuple[int, int]] = set()

    def run(self, lease: int) -> None:
        """Do it all. `lease` is closed when the tree is empty, then the last word is said."""
        self._start()
        while self._has_children:
            self._step()
        if self._gate is not None:
            self._gate.close()
        if self._confinement is not None:
            self._confinement.finish()
        os.close(lease)
        self._say_final()

    # Starting

    def _start(self) -> None:
        request = self._request
        environment = {**request["environment"], EXECUTION_TAG: self._process_id}
        try:
            path = usable_program(request["argv"], environment, request["root"])
            confinement = self._confinement = sandbox.confine({**request, "environment": environment, "program": path})
        except (UnusableError, sandbox.SandboxError) as error:
            self._refusal = (str(error), error.errno)
            return
        program = Program(
            path=confinement.argv_prefix[0] if confinement.argv_prefix else path,
            argv=[*confinement.argv_prefix, *request["argv"]],
            environment=confinement.environment,
            root=request["root"],
            entering=confinement.entering,
            descriptors=confinement.descriptors,
        )
        try:
            gate = self._gate = self._have_at_gate(program)
            self._has_children = True
        except OSError as error:
            self._refusal = (f"No process could be made: {error.strerror or error}.", error.errno)
            return
        finally:
            for descriptor in confinement.descriptors:
                os.close(descriptor)
        self._say(
            "gated", gate.ends(), pid=gate.pid, started_ticks=gate.started_ticks, sandbox=confinement.report
        )
        gate.hand_over()

    def _have_at_gate(self, program: Program) -> Gate:
        """Use the spare child if that can be, else fork one. Raises OSError."""
        request = self._request
        has_input = request["stdin"] == "pipe"
        spare, self.spare = self.spare, None
        if spare is not None and request["tty"]:
            spare.dismiss()
        elif spare is not None and (gate := spare.take(program, has_input=has_input)) is not None:
            return gate
        return fork_at_gate(
            program, has_terminal=request["tty"], has_input=has_input, rows=request["rows"], columns=request["columns"]
        )

    # Watching

    def _step(self) -> None:
        assert self._gate is not None, "only what was forked is watched"
        control = self._control.fileno()
        readable = [] if control < 0 else [control]
        writable = [control] if self._control.has_unsent else []
        seconds = None if self._kill_at is None else self._kill_at - time.monotonic()
        ready = self._waiter.wait(readable, writable, seconds)
        if control in ready:
            self._converse(self._gate)
        if self._waiter.is_end_requested:
            self._end_now()
        self._reap(self._gate)
        if self._has_children and self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill()

    def _converse(self, gate: Gate) -> None:
        try:
            self._control.flush()
            for message, _ in self._control.receive():
                if message["process_id"] == self._process_id:
                    self._obey(message, gate)
        except (LinkClosedError, WireError):
            self._control.close()
            self._end_now()

    def _obey(self, message: Message, gate: Gate) -> None:
        match message["kind"]:
            case "continue" if self._leader_status is None:
                os.kill(gate.pid, signal.SIGCONT)
            case "abandon":
                self._end_now()
            case "end":
                self._end(message["signal"], message["grace_ms"] / 1000)

    def _reap(self, gate: Gate) -> None:
        assert self._confinement is not None, "only what is confined was forked"
        ended, self._has_children = reap_ended_children()
        for pid, status in ended:
            if pid == gate.pid and self._leader_status is None:
                self._leader_status = self._confinement.wait_status(status)
                if self._has_children:
                    self._kill_by(time.monotonic() + self._seconds_after_leader)
                    if self._refusal is None:
                        self._say("leader_exited", wait_status=self._leader_status)

    # Ending

    def _end(self, number: int, grace_seconds: float) -> None:
        if number == signal.SIGKILL:
            self._end_now()
            return
        members = descendants(os.getpid())
        count = self._wrappers_among(members)
        for member in members[count:]:
            if send_signal(member, number):
                self._count(member.pid, member.started_ticks)
        for member in members[count:]:
            send_signal(member, signal.SIGCONT)
        if 0 < count == len(members):
            # Nothing of the command itself is there. If it hasn't begun, it gets no time; if it has ended, the outer
            # wrapper knows how by now, and tells. A mere request would end the outer one alone, and start the command.
            self._seconds_after_leader = 0.0
            send_signal(members[-1], signal.SIGKILL)
        self._kill_by(time.monotonic() + grace_seconds)

    def _end_now(self) -> None:
        self._kill_by(time.monotonic())

    def _kill_by(self, at: float) -> None:
        if self._kill_passes == 0:
            self._kill_at = at if self._kill_at is None else min(self._kill_at, at)

    def _kill(self) -> None:
        for member in kill_beneath(
            os.getpid(), is_racing=self._kill_passes >= _RACING_PASS, order=self._wrappers_last
        ):
            self._count(member.pid, member.started_ticks)
        self._kill_at = time.monotonic() + _KILL_AGAIN_SECONDS[min(self._kill_passes, len(_KILL_AGAIN_SECONDS) - 1)]
        self._kill_passes += 1

    def _wrappers_last(self, members: list[Member]) -> list[Member]:
        """Return `members` (nearest first) so that a wrapper, with which all it confines ends uncounted, is last."""
        count = self._wrappers_among(members)
        return members[count:] + members[:count]

    def _wrappers_among(self, members: list[Member]) -> int:
        """Return how many of the first `members` only confine the command; note whom not to count."""
        assert self._gate is not None, "only what was forked is ended"
        assert self._confinement is not None, "only what is confined was forked"
        count = self._confinement.wrappers_among(members, self._gate.pid)
        self._not_swept.update(member.pid for member in members[:count])
        if members and members[0].pid == self._gate.pid:
            self._not_swept.update(member.pid for member in members[count : count + 1])
        return count

    def _count(self, pid: int, start: int) -> None:
        if pid not in self._not_swept:
            self._swept.add((pid, start))

    # Telling

    def _say(self, kind: str, descriptors: list[int] | None = None, **fields: object) -> None:
        if self._control.fileno() < 0:
            return
        try:
            self._control.send({"kind": kind, "process_id": self._process_id, **fields}, descriptors or ())
        except LinkClosedError:
            self._control.close()
            self._end_now()

    def _say_final(self) -> None:
        if self._refusal is not None:
            message, number = self._refusal
            self._say("not_started", message=message, errno=number)
        else:
            self._say("ended", wait_status=self._leader_status, swept=len(self._swept))
        while self._control.fileno() >= 0 and self._control.has_unsent and not self._waiter.is_end_requested:
            self._waiter.wait((), [self._control.fileno()], None)
            with contextlib.suppress(LinkClosedError):
                self._control.flush()
                continue
            self._control.close()
