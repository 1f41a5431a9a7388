"""Holding a request: nothing of it runs until somebody with the right to it has decided.

A pause of what the profile allows anyway, never a grant of more. The same request again, while its hold is active,
meets the same hold: that is a version conflict in the store, in one process or in ten. Source: contract B4, A4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from codespace_es import policy
from codespace_es.aggregates.approval import (
    APPROVAL,
    ApprovalCreated,
    CreateApproval,
    ExpireApproval,
    HeldTool,
    Pending,
    hold_claim,
    is_due,
)
from codespace_es.aggregates.claim import CLAIM, TakeClaim, Taken
from codespace_es.command_handlers.consuming import ending
from codespace_es.folding import fold, fresh
from codespace_es.ports.log import Append, NewBody, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.projections.approval_status import NONCE_BYTES, arguments_of
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Digest, Version
from codespace_es.vocabulary.fingerprint import fingerprint
from codespace_es.vocabulary.identifiers import ActionId, ApprovalId, StreamId, WorkId, WorkspaceKey
from codespace_es.vocabulary.workspace import Workspace


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A request as it is held."""

    workspace: Workspace
    tool: HeldTool
    command: Command
    title: str
    """What would happen, one line."""
    operation_key: str | None = None
    work_id: str | None = None
    seen_versions: Mapping[str, Version] = field(default_factory=dict)
    action_id: ActionId | None = None
    """The pending action that it applies."""
    not_counted: frozenset[str] = frozenset()
    """Arguments that change nothing of what is done."""

    @property
    def fingerprint(self) -> Digest:
        """By which the same request is recognised: tool, workspace and every argument but `work_id`, key included."""
        arguments = self.command.model_dump(mode="json", exclude={"work_id", "workspace_id", *self.not_counted})
        return fingerprint(tool=self.tool, workspace=self.workspace.key, arguments=arguments)


async def hold_if_required(world: World, request: HeldRequest, caller: Caller) -> None:
    """Pass if such a request of this caller may run at once.

    Raises:
        CodespaceError: APPROVAL_REQUIRED with the `approval_id` of its hold.
    """
    if not policy.needs_hold(request.workspace, caller.channel):
        return
    approval_id = await open_hold(world, request, "policy", caller)
    raise CodespaceError(
        ErrorCode.APPROVAL_REQUIRED,
        f"{request.tool} in workspace {request.workspace.workspace_id!r} is held: {approval_id}.",
        detail={"approval_id": approval_id},
    )


async def open_hold(
    world: World, request: HeldRequest, origin: Literal["policy", "approval_create"], caller: Caller
) -> ApprovalId:
    """Return the active hold of `request`, a new one if there is none."""
    claim_id = hold_claim(request.workspace.key, request.fingerprint)
    while True:
        claim = await fold(world.log, CLAIM, claim_id)
        if isinstance(claim.state, Taken):
            holder = ApprovalId(claim.state.holder_id)
            if not await expire_if_due(world, holder, caller):
                return holder
            continue
        approval_id = ApprovalId(f"appr-{world.ids.uuid()}")
        arguments = NewBody(StreamId(approval_id), "arguments", _with_nonce(world, request.command))
        created = ApprovalCreated(
            workspace_key=request.workspace.key,
            workspace_id=request.workspace.workspace_id,
            tool=request.tool,
            fingerprint=request.fingerprint,
            origin=origin,
            arguments=arguments.body,
            title=request.title[: limits.LABEL_CHARACTERS_MAX],
            seen_versions=dict(request.seen_versions),
            operation_key=request.operation_key,
            work_id=WorkId(request.work_id) if request.work_id else None,
            action_id=request.action_id,
            expires_at=_expiry(world, request.workspace),
        )
        events = (
            *claim.decide(TakeClaim("hold", approval_id, request.fingerprint)),
            *fresh(APPROVAL, approval_id).decide(CreateApproval(created)),
        )
        try:
            await world.log.append(Append(events, (arguments,)), caller)
        except VersionConflictError:
            continue
        return approval_id


async def expire_if_due(world: World, approval_id: ApprovalId, caller: Caller) -> bool:
    """End a hold whose time is over; return whether it was. By the wall clock: it is a promise to people."""
    while True:
        approval = await fold(world.log, APPROVAL, approval_id)
        now = world.clock.now()
        if not is_due(approval.state, now):
            return False
        part = await ending(world.log, approval, ExpireApproval(now))
        timer = Caller("timer", caller.request_id, caller.client)
        try:
            await world.log.append(Append(part.events, part.bodies, part.scrubbed), timer)
        except VersionConflictError:
            continue
        return True


async def read_arguments(world: World, approval_id: ApprovalId, created: ApprovalCreated) -> dict[str, Any] | None:
    """Return the held arguments; None once they were scrubbed."""
    stored = await world.log.read_body(StreamId(approval_id), created.arguments.digest)
    return None if stored is None else arguments_of(stored)


async def count_pending(world: World, key: WorkspaceKey) -> int:
    """Return how many holds of a workspace wait for a decision."""
    now = world.clock.now()
    states = [
        (await fold(world.log, APPROVAL, item.stream_id)).state
        for item in await world.log.open_items(kind="approval", workspace_key=key)
    ]
    return sum(isinstance(state, Pending) and not is_due(state, now) for state in states)


def find_workspace(world: World, key: WorkspaceKey) -> Workspace | None:
    """Return the workspace that stands for a directory here, by whatever name; None if there is none."""
    return next((each for each in world.workspaces.values() if each.key == key), None)


def _with_nonce(world: World, command: Command) -> bytes:
    """Return the arguments behind a nonce: equal requests aren't equal bodies, so scrubbing one leaves the other."""
    nonce = world.ids.uuid().bytes
    assert len(nonce) == NONCE_BYTES, "whoever reads it cuts exactly this off"
    return nonce + command.model_dump_json().encode()


def _expiry(world: World, workspace: Workspace) -> datetime | None:
    if workspace.approval_ttl_seconds is None:
        return None
    return world.clock.now() + timedelta(seconds=workspace.approval_ttl_seconds)
