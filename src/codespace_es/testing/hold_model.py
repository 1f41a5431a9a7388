"""The model of holds: a dict of a few fields each, and what each call has to answer by it.

It knows nothing of logs, locks or processes. Source: contract A4, B4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.invocation import ExecCommand
from codespace_es.vocabulary.answer import Command

Policy = Mapping[str, Any]
"""The keys of a workspace in a configuration file."""

OVER = ("consumed", "denied", "expired")


@dataclass(frozen=True, slots=True)
class Request:
    """Something that leaves one more line in a file each time it is done."""

    tool: str
    """`apply_patch` or `exec_command`."""
    path: str
    key: str | None = None

    @property
    def command(self) -> Command:
        """The call."""
        if self.tool == "apply_patch":
            patch = f"*** Begin Patch\n*** Update File: {self.path}\n@@\n+done\n end\n*** End Patch\n"
            return ApplyPatch(workspace_id="demo", patch=patch, operation_key=self.key)
        argv = ["sh", "-c", f"{{ printf 'done\\n'; cat {self.path}; }} > .new && mv .new {self.path}"]
        return ExecCommand(workspace_id="demo", command=argv, operation_key=self.key)


@dataclass(slots=True)
class HeldThing:
    """One hold, as far as a client can know."""

    request: Request
    state: str = "pending"
    expires_at: float | None = None
    granted_by: str | None = None
    answer: dict[str, Any] | None = None
    """What its resume was answered, once it is consumed."""


@dataclass(slots=True)
class HoldModel:
    """All holds, what was done, and what is in the way."""

    now: float = 0.0
    holds: dict[str, HeldThing] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    """How often each file was written to."""
    keys: dict[str, Request] = field(default_factory=dict)
    """What each idempotency key was used for."""
    occupant: str | None = None
    """The gateway that runs a command which occupies the workspace."""

    def active(self, request: Request) -> str | None:
        """Return the hold that the same request meets."""
        ids = (each for each, held in self.holds.items() if held.request == request and held.state not in OVER)
        return next(ids, None)

    def expire_due(self) -> None:
        """End what is too late: what waits for a decision or a resume, never what has begun."""
        for held in self.holds.values():
            is_due = held.expires_at is not None and self.now >= held.expires_at
            if is_due and held.state in ("pending", "granted"):
                held.state = "expired"

    def opened(self, approval_id: str, request: Request, policy: Policy) -> None:
        """Note a hold."""
        ttl = policy.get("approval_ttl_seconds")
        self.holds[approval_id] = HeldThing(request, expires_at=None if ttl is None else self.now + ttl)

    def code_of_resume(self, held: HeldThing, policy: Policy) -> str | None:
        """Return the code that a resume of `held` has to be refused with; None: it has to be answered."""
        if held.state not in ("granted", "queued"):
            return "APPROVAL_CONFLICT"
        if policy.get("approvals") == "operator" and held.granted_by != "cli":
            return "UNAUTHORIZED"
        if policy.get("profile", "workspace-write") == "read-only":
            return "UNAUTHORIZED"
        if held.request.key in self.keys:
            return None if self.keys[held.request.key] == held.request else "OPERATION_KEY_CONFLICT"
        if self.occupant is not None and policy.get("live_process") != "shared":
            return "WORKSPACE_BUSY"
        if held.request.tool == "apply_patch" and held.request.path in policy.get("protected_paths", ()):
            return "PATH_PROTECTED"
        return None

    def consumed(self, held: HeldThing, answer: dict[str, Any]) -> None:
        """Note that a hold is over, with what it was answered; and what was done, unless its key had done it."""
        held.state, held.answer = "consumed", answer
        told, key = answer.get(held.request.tool, {}), held.request.key
        if key in self.keys:
            return
        if told.get("status") == "applied" or "process_id" in told:
            self.done[held.request.path] = self.done.get(held.request.path, 0) + 1
        if key is not None and (told or "operation_id" in answer):
            self.keys[key] = held.request
