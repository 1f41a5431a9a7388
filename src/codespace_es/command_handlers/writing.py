"""The story of every patch, whoever asks for it: lease, settle, plan, mint, write, finish.

1. Waiting for the lease is the caller's own waiting: dropped while it waits, the call leaves no trace.
2. With the lease, the rest runs as an effect: what dead instances left in this workspace is settled first.
3. The plan is made against the files as they are; a refusal is minted and finished in one append.
4. `operation.minted` with the plan, the key's claim, the request and both images of every file: one commit.
5. The patch writer acts; what the disk says then is appended as `operation.finished`. Only now is it answered.

Source: reliability paper section 3; event catalogue section 4.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from anyio import to_thread

from codespace_es import policy
from codespace_es.admission import find_replay, take_lease
from codespace_es.aggregates.claim import CLAIM, TakeClaim
from codespace_es.aggregates.operation import (
    OPERATION,
    MintFinishedOperation,
    MintOperation,
    OperationFinished,
    OperationMinted,
    OperationSource,
)
from codespace_es.command_handlers.binding import bind
from codespace_es.command_handlers.concluding import (
    ResolvedAction,
    require_beginnable,
    resolve_beginning,
    resolve_refused,
)
from codespace_es.command_handlers.consuming import NOTHING, AppendPart, Outcome, beginning, consumption
from codespace_es.command_handlers.ending import append_end, close_operation
from codespace_es.command_handlers.gating import require_resolved
from codespace_es.command_handlers.holding import HeldRequest, hold_if_required
from codespace_es.command_handlers.settling import settle_workspace
from codespace_es.folding import fresh
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.log import Append, NewBody, NewEvent, StoreUnavailableError, VersionConflictError
from codespace_es.ports.patch_writer import PatchOrder, WriteOutcome
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Caller, Digest, Fault, Version
from codespace_es.vocabulary.file_change import PlannedFile, change_of
from codespace_es.vocabulary.identifiers import ApprovalId, OperationId, StreamId, WorkId, claim_stream
from codespace_es.vocabulary.patch_result import PatchResult, ResultError
from codespace_es.vocabulary.workspace import Workspace


class UnrecordedEndError(StoreUnavailableError):
    """An operation has begun, and its end couldn't be put on record: its files will tell when it is settled."""

    def __init__(self, operation_id: OperationId, error: StoreUnavailableError) -> None:
        super().__init__(
            f"{error}. Operation {operation_id} had begun, and is settled by what its files say: ask operation_status"
        )
        self.operation_id = operation_id


@dataclass(frozen=True, slots=True)
class PreparedPatch:
    """A plan with all that is needed to carry it out and to tell of it."""

    plan: tuple[PlannedFile, ...]
    images: Mapping[Digest, bytes]
    made_directories: tuple[str, ...] = ()
    removed_directories: tuple[str, ...] = ()
    reverts: tuple[OperationId, ...] = ()
    """Those operations in force that it undoes, newest first."""
    files: tuple[str, ...] = ()
    summaries: Mapping[str, str] = field(default_factory=dict)
    """`+n -m` by path."""
    diff: str | None = None
    is_diff_truncated: bool = False
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """What somebody wants to write, before it is known whether that is possible."""

    workspace: Workspace
    source: OperationSource
    fingerprint: Digest
    request: bytes
    prepare: Callable[[], PreparedPatch]
    """Makes the plan against the files as they are; runs in a worker thread; raises CodespaceError."""
    operation_key: str | None = None
    check_only: bool = False
    work_id: str | None = None
    reverts: tuple[OperationId, ...] = ()
    """The operations to be undone, newest first."""
    held: Callable[[], Awaitable[HeldRequest]] | None = None
    """Returns as what it is held, where the operator wants that; None: it never is."""
    resumed: ApprovalId | None = None
    """The hold that is being resumed: it begins and ends together with the operation."""
    expected_versions: Mapping[str, Version] = field(default_factory=dict)
    source_tool_name: str | None = None
    """The custom tool that wrote it."""
    is_gated: bool = True
    """It waits behind what is pending, where the operator wants that."""
    resolves: ResolvedAction | None = None
    """The pending action that is carried out: its resolve begins and ends together with the operation."""


async def write_patch(world: World, request: PatchRequest, caller: Caller) -> PatchResult:
    """Return what came of `request`, now or when the same key was used for it before.

    Raises:
        CodespaceError: OPERATION_KEY_CONFLICT, PENDING_ACTION_UNRESOLVED, APPROVAL_REQUIRED, WORKSPACE_BUSY,
            RESOURCE_QUEUE_FULL, and with
            `operation_id` in the detail every refusal of planning.
    """
    replay = await _replay(world, request)
    if replay is not None:
        return replay
    is_new_effect = request.resumed is None and not request.check_only
    if is_new_effect and request.is_gated and request.resolves is None:
        await require_resolved(world, request.workspace, request.work_id, caller)
    if request.held is not None and is_new_effect and policy.needs_hold(request.workspace, caller.channel):
        await hold_if_required(world, await request.held(), caller)
    lease = await take_lease(world, request.workspace, caller)

    async def carry_out() -> PatchResult:
        try:
            world.faults(FaultPoint.PATCH_LEASED)
            await settle_workspace(world, request.workspace, caller)
            return await _carry_out(world, request, caller)
        finally:
            lease.release()

    return await world.effects.run(carry_out)


async def _replay(world: World, request: PatchRequest, *, is_leased: bool = False) -> PatchResult | None:
    return await find_replay(
        world.log, request.operation_key, request.fingerprint, work_id=request.work_id, is_leased=is_leased
    )


async def _carry_out(world: World, request: PatchRequest, caller: Caller) -> PatchResult:
    """Try until the decision stands: another server that took the key first makes this one a replay."""
    while True:
        replay = await _replay(world, request, is_leased=True)
        if replay is not None:
            return replay
        await require_beginnable(world, request.resolves)
        operation_id = request.resolves.effect_id if request.resolves else OperationId(f"op-{world.ids.uuid()}")
        attempt = _Attempt(world, request, operation_id, caller)
        result = await attempt.make()
        if result is not None:
            return result.model_copy(update={"work_id": request.work_id})


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One try of a request under one operation id. None as an outcome: somebody was quicker, decide again."""

    world: World
    request: PatchRequest
    operation_id: OperationId
    caller: Caller

    async def make(self) -> PatchResult | None:
        """Plan, then refuse, preview or write. Raises the refusal of planning, with the operation's id."""
        try:
            prepared = await to_thread.run_sync(self.request.prepare)
        except CodespaceError as refusal:
            told = refusal.with_detail(operation_id=self.operation_id)
            finished = OperationFinished(status="rejected", fault=Fault.of(refusal))
            if await self._record(self._minted(self.request.reverts), finished, await self._end_of_refusal(told)):
                raise told from refusal
            return None
        self.world.faults(FaultPoint.PATCH_PLANNED)
        if self.request.check_only:
            return await self._preview(prepared)
        minted = self._minted(prepared.reverts).model_copy(update={
            "plan": prepared.plan,
            "made_directories": prepared.made_directories,
            "removed_directories": prepared.removed_directories,
        })
        if not await self._mint(minted, prepared.images):
            return None
        return await self._act(minted, prepared)

    async def _end_of_refusal(self, told: CodespaceError) -> AppendPart:
        """Return what ends together with a refused request: its hold, and the resolve of its action."""
        outcome, action = Outcome(self.operation_id, fault=Fault.of(told)), NOTHING
        if self.request.resolves is not None:
            conclusion = await resolve_refused(self.world, self.request.resolves, told)
            outcome, action = conclusion.outcome, conclusion.part
        hold = await consumption(self.world.log, self.request.resumed, outcome)
        return AppendPart((*action.events, *hold.events), (*action.bodies, *hold.bodies), hold.scrubbed)

    async def _preview(self, prepared: PreparedPatch) -> PatchResult | None:
        minted = self._minted(prepared.reverts).model_copy(
            update={"plan": prepared.plan, "made_directories": prepared.made_directories}
        )
        result = self._told(prepared, "checked")
        stored = NewBody(StreamId(self.operation_id), "result", result.to_stored())
        finished = OperationFinished(status="checked", result=stored.body)
        return result if await self._record(minted, finished, AppendPart(bodies=(stored,))) else None

    def _minted(self, reverts: tuple[OperationId, ...]) -> OperationMinted:
        """Return the decision of a patch that has no plan yet."""
        request = self.request
        return OperationMinted(
            workspace_key=request.workspace.key,
            workspace_id=request.workspace.workspace_id,
            source=request.source,
            source_tool_name=request.source_tool_name,
            check_only=request.check_only,
            fingerprint=request.fingerprint,
            operation_key=request.operation_key,
            work_id=WorkId(request.work_id) if request.work_id else None,
            approval_id=request.resumed,
            action_id=request.resolves.action_id if request.resolves else None,
            reverts=reverts[0] if reverts else None,
            also_reverts=reverts[1:] or None,
            request=self._request_body().body,
            expected_versions=dict(request.expected_versions),
        )

    def _request_body(self) -> NewBody:
        return NewBody(StreamId(self.operation_id), "request", self.request.request)

    def _claim(self) -> tuple[NewEvent, ...]:
        """Return the claim of the request's key, if it has one, as its first holder: a second one conflicts."""
        if self.request.operation_key is None:
            return ()
        claim = fresh(CLAIM, claim_stream("operation_key", self.request.operation_key))
        return claim.decide(TakeClaim("operation_key", self.operation_id, self.request.fingerprint))

    async def _record(self, minted: OperationMinted, finished: OperationFinished, more: AppendPart) -> bool:
        """Mint and finish what writes nothing, in one append; return False if somebody was quicker."""
        events = fresh(OPERATION, self.operation_id).decide(MintFinishedOperation(minted, finished))
        append = Append(
            (*self._claim(), *events, *more.events), (self._request_body(), *more.bodies), more.scrubbed
        )
        return await self._append(append)

    async def _mint(self, minted: OperationMinted, images: Mapping[Digest, bytes]) -> bool:
        """Make the decision durable, with all that recovery needs; return False if somebody was quicker."""
        hold = await beginning(self.world.log, self.request.resumed, self.operation_id)
        action = await resolve_beginning(self.world, self.request.resolves)
        events = (
            *await bind(self.world, self.request.workspace),
            *self._claim(),
            *fresh(OPERATION, self.operation_id).decide(MintOperation(minted)),
            *hold.events,
            *action.events,
        )
        kept = (NewBody(StreamId(self.operation_id), "image", content) for content in images.values())
        return await self._append(Append(events, (self._request_body(), *kept, *action.bodies)))

    async def _append(self, append: Append) -> bool:
        try:
            await self.world.log.append(append, self.caller)
        except VersionConflictError:
            return False
        return True

    async def _act(self, minted: OperationMinted, prepared: PreparedPatch) -> PatchResult:
        """Write, then append what the disk says. Whatever escapes from here is settled here and now."""
        order = PatchOrder(
            operation_id=self.operation_id,
            root=self.request.workspace.root,
            plan=minted.plan,
            made_directories=minted.made_directories,
            image=prepared.images.__getitem__,
            removed_directories=minted.removed_directories,
        )
        try:
            self.world.faults(FaultPoint.PATCH_MINTED)
            outcome = await to_thread.run_sync(self.world.patch_writer.write, order)
            self.world.faults(FaultPoint.PATCH_WRITTEN)
            result = self._told(prepared, outcome.status, outcome)
            said = self.request.resolves.said if self.request.resolves else None
            await append_end(self.world, minted, _finished(outcome), result, self.caller, said=said)
        except StoreUnavailableError as error:
            raise UnrecordedEndError(self.operation_id, error) from error
        except Exception:
            await close_operation(self.world, self.operation_id, minted, self.request.workspace, self.caller)
            raise
        self.world.faults(FaultPoint.PATCH_FINISHED)
        return result

    def _told(self, prepared: PreparedPatch, status: str, outcome: WriteOutcome | None = None) -> PatchResult:
        """Return the answer: the whole plan where it came about or would, before-versions where it failed."""
        is_after_known = status in ("applied", "checked")
        is_preview = self.request.check_only
        fault = outcome.fault if outcome else None
        changes = tuple(
            change_of(planned, summary=prepared.summaries.get(planned.path), is_after_known=is_after_known)
            for planned in prepared.plan
        )
        return PatchResult(
            status=status,
            operation_id=self.operation_id,
            files=prepared.files,
            changes=() if status == "unknown" else changes,
            diff=prepared.diff if is_preview else None,
            diff_truncated=prepared.is_diff_truncated if is_preview else None,
            warnings=prepared.notices,
            error=ResultError(code=fault.code.value, message=fault.message) if fault else None,
            findings=outcome.findings if outcome else (),
            reverts=prepared.reverts[0] if prepared.reverts else None,
            also_reverts=prepared.reverts[1:] or None,
        )


def _finished(outcome: WriteOutcome) -> OperationFinished:
    return OperationFinished(
        status=outcome.status,
        reason="unknown" if outcome.status in ("unknown", "failed_partial") else None,
        fault=outcome.fault,
        findings=outcome.findings,
        is_swap_atomic=outcome.is_swap_atomic,
    )
