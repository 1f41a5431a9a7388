"""`exec_command`: a child is forked and held at its gate, that is put on record, and only then it may run.

1. Refusals, and the replay of a key, as for a patch; then the workspace's lease.
2. As an effect: settle; fork a child that waits at its gate. What can't be started is `process.not_started`.
3. `process.spawned` with the key's claim: one commit. Without it nothing ever ran, so a crash before it left no trace.
4. Go. From here on a watcher of its own records the exit, whoever has asked and wherever they are now.

Source: decisions 17 to 23; contract A5, B5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from anyio import Event, Lock
from pydantic import Field

from codespace_es.admission import admit, read_key, require_usable_key, require_usable_work, take_lease
from codespace_es.aggregates.claim import CLAIM, TakeClaim, Taken, is_repeat
from codespace_es.aggregates.process import (
    PROCESS,
    NotStarted,
    ProcessNotStarted,
    ProcessSpawned,
    RecordNoStart,
    RecordSpawn,
)
from codespace_es.command_handlers.binding import bind
from codespace_es.command_handlers.consuming import Outcome, consumption
from codespace_es.command_handlers.dispatching import dispatch_of
from codespace_es.command_handlers.gating import require_resolved
from codespace_es.command_handlers.holding import HeldRequest, hold_if_required
from codespace_es.command_handlers.settling import settle_workspace
from codespace_es.command_handlers.watching import Watched, watch
from codespace_es.folding import fold, fresh
from codespace_es.invocation import ExecCommand, Invocation, require_runnable, title_of
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.live_processes import Living
from codespace_es.ports.locks import Held
from codespace_es.ports.log import Append, NewEvent, VersionConflictError
from codespace_es.ports.runner import (
    GatedChild,
    LimitReachedError,
    NotStartedError,
    RunnerLostError,
)
from codespace_es.ports.world import World
from codespace_es.projections.process_status import SignalReport
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Fault
from codespace_es.vocabulary.fingerprint import canonical_json
from codespace_es.vocabulary.identifiers import ApprovalId, ProcessId, claim_stream
from codespace_es.vocabulary.workspace import Workspace


class ExecResult(Answer):
    """A command that was started. It may have ended already; started isn't succeeded."""

    process_id: str = Field(description="Its handle, for ever.")
    dispatch_status: Literal["confirmed", "unknown"] = Field(description="unknown: it may have been started.")
    replayed: bool | None = Field(default=None, description="True: started by an earlier call with this key.")
    state: str | None = Field(default=None, description="With wait_ms: running or exited.")
    termination: str | None = Field(default=None, description="How it ended, as in process_status.")
    exit_code: int | None = Field(default=None, description="Anything but 0 isn't success.")
    signal: SignalReport | None = Field(default=None, description="Only with signaled.")
    output: str | None = Field(default=None, description="With wait_ms: the first 64 KiB that it has printed.")
    cursor: int | None = Field(default=None, description="Read on from here with read_process.")
    eof: bool | None = Field(default=None, description="True: that is all of it.")
    output_lost: bool | None = Field(default=None, description="True: what came before can't be read any more.")
    work_id: str | None = Field(default=None, description="Echo of the call's work_id.")


async def exec_command(
    world: World, command: ExecCommand, caller: Caller, *, resumed: ApprovalId | None = None, is_granted: bool = False,
    is_gated: bool = True, on_started: Callable[[ProcessId], None] | None = None,
) -> ExecResult:
    """Return the process that was started, now or by an earlier call with the same key; `resumed` is its hold.

    `is_granted`: it belongs to something that was granted, where grants are wanted. Without `is_gated` it belongs to a
    resolve, so nothing that is pending stands in its way. `on_started` is told of a process that was let go, also if
    whoever asked has gone meanwhile.

    Raises:
        CodespaceError: the codes of contract B1.8.
    """
    workspace = admit(world.workspaces, command.workspace_id, "exec")
    require_usable_key(command.operation_key)
    require_usable_work(command.work_id)
    require_runnable(command.command)
    invocation = Invocation(workspace, command, world.child_environment, world.private_paths, resumed)
    attempt = _Attempt(world, workspace, command, invocation, caller, resumed, on_started)
    replay = await attempt.find_replay()
    if replay is not None:
        return replay
    if resumed is None and is_gated:
        await require_resolved(world, workspace, command.work_id, caller)
    if resumed is None and not is_granted:
        await hold_if_required(world, held_command(world, command), caller)
    try:
        lease = await take_lease(world, workspace, caller)
    except CodespaceError:
        # What lives there, or came before in the queue, may be what this very key has started.
        replay = await attempt.find_replay()
        if replay is not None:
            return replay
        raise
    return await world.effects.run(lambda: attempt.carry_out(lease))


def held_command(world: World, command: ExecCommand) -> HeldRequest:
    """Return the command as it is held. Raises WORKSPACE_NOT_FOUND, UNAUTHORIZED, INVALID_COMMAND."""
    workspace = admit(world.workspaces, command.workspace_id, "exec")
    require_usable_key(command.operation_key)
    require_runnable(command.command)
    return HeldRequest(
        workspace=workspace,
        tool="exec_command",
        command=command,
        title=title_of(command.command),
        not_counted=frozenset({"wait_ms"}),
        operation_key=command.operation_key,
        work_id=command.work_id,
    )


async def told_again(world: World, answer: ExecResult) -> ExecResult:
    """Return a stored answer as it has to be told now."""
    return answer.model_copy(update={"dispatch_status": await dispatch_of(world, answer.process_id)})


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One request on its way to a process."""

    world: World
    workspace: Workspace
    command: ExecCommand
    invocation: Invocation
    caller: Caller
    resumed: ApprovalId | None
    on_started: Callable[[ProcessId], None] | None

    async def find_replay(self) -> ExecResult | None:
        """Return the process that the same key has started. Raises OPERATION_KEY_CONFLICT, PROCESS_SPAWN_FAILED."""
        key = self.command.operation_key
        claim = None if key is None else await read_key(self.world.log, key)
        if key is None or not isinstance(claim, Taken):
            return None
        if not is_repeat(claim, self.invocation.fingerprint()) or not claim.holder_id.startswith("proc-"):
            raise CodespaceError(
                ErrorCode.OPERATION_KEY_CONFLICT, f"operation_key {key[:100]!r} was used for another request.",
                detail={"field": "operation_key"},
            )
        state = (await fold(self.world.log, PROCESS, claim.holder_id)).state
        if isinstance(state, NotStarted):
            raise state.refused.fault.to_error().with_detail(process_id=claim.holder_id)
        return ExecResult(
            process_id=claim.holder_id, dispatch_status=await dispatch_of(self.world, claim.holder_id), replayed=True,
            work_id=self.command.work_id,
        )

    async def carry_out(self, lease: Held) -> ExecResult:
        """Start it; the lease goes over to its watcher, or is released."""
        is_handed_over = False
        try:
            self.world.faults(FaultPoint.EXEC_LEASED)
            await settle_workspace(self.world, self.workspace, self.caller)
            while True:
                replay = await self.find_replay()
                if replay is not None:
                    return replay
                process_id = ProcessId(f"proc-{self.world.ids.uuid()}")
                forked = await self._fork(process_id, lease)
                if forked is None:
                    continue
                child, bound = forked
                spawned = self._spawned(process_id, child)
                if not await self._record_spawn(process_id, child, spawned, bound):
                    continue
                is_handed_over = self.workspace.live_process == "exclusive"
                return await self._let_go(process_id, child, spawned, lease)
        finally:
            if not is_handed_over:
                lease.release()

    async def _fork(self, process_id: ProcessId, lease: Held) -> tuple[GatedChild, Sequence[NewEvent]] | None:
        """Return a child at its gate, and what binds its workspace; None if another server took the key.

        Raises:
            CodespaceError: PROCESS_SPAWN_FAILED; WORKSPACE_BUSY when too many commands live.
        """
        kept_lease = lease if self.workspace.live_process == "exclusive" else None
        bound: list[NewEvent] = []
        unbound: list[CodespaceError] = []

        async def find_binding() -> None:
            try:
                bound.extend(await bind(self.world, self.workspace))
            except CodespaceError as error:  # mostly the runner says why nothing can be started, and better
                unbound.append(error)

        try:
            child = await self.world.runner.start(
                self.invocation.runner_command(process_id), lease=kept_lease, meanwhile=find_binding
            )
        except LimitReachedError as error:
            raise CodespaceError(ErrorCode.WORKSPACE_BUSY, f"Nothing was started: {error}") from error
        except (NotStartedError, RunnerLostError) as error:
            # A child that was never let go has run nothing, so a lost runner is as certain as a missing program.
            refusal = CodespaceError(ErrorCode.PROCESS_SPAWN_FAILED, f"{error} Nothing was started.")
            number = error.errno if isinstance(error, NotStartedError) else None
            request = self.invocation.request(process_id)
            refused = ProcessNotStarted(request=request, fault=Fault.of(refusal), errno=number)
            told = refusal.with_detail(process_id=process_id)
            events = fresh(PROCESS, process_id).decide(RecordNoStart(refused))
            if not await self._append(process_id, events, Outcome(process_id, fault=Fault.of(told))):
                return None
            raise told from error
        if unbound:
            await child.abandon()
            raise unbound[0]
        return child, bound

    def _spawned(self, process_id: ProcessId, child: GatedChild) -> ProcessSpawned:
        return ProcessSpawned(
            request=self.invocation.request(process_id).model_copy(update={
                "sandbox": child.sandbox.kind,
                "is_network_enforced": child.sandbox.is_network_enforced and self.workspace.network == "restricted",
            }),
            pid=child.pid,
            started_ticks=child.started_ticks,
            boot_id=child.boot_id,
            pid_namespace=child.pid_namespace,
            rows=limits.TERMINAL_ROWS if self.command.tty else None,
            columns=limits.TERMINAL_COLUMNS if self.command.tty else None,
        )

    async def _record_spawn(
        self, process_id: ProcessId, child: GatedChild, spawned: ProcessSpawned, bound: Sequence[NewEvent]
    ) -> bool:
        """Put the gated child on record; abandon it and return False if another server took the key."""
        try:
            self.world.faults(FaultPoint.EXEC_FORKED)
            events = (*bound, *fresh(PROCESS, process_id).decide(RecordSpawn(spawned)))
            result = ExecResult(process_id=process_id, dispatch_status="confirmed")
            if await self._append(process_id, events, Outcome(process_id, result=canonical_json(result.to_wire()))):
                return True
        except BaseException:
            await child.abandon()
            raise
        await child.abandon()
        return False

    async def _let_go(
        self, process_id: ProcessId, child: GatedChild, spawned: ProcessSpawned, lease: Held
    ) -> ExecResult:
        """Let it run, and have it watched to its end."""
        kept_lease = lease if self.workspace.live_process == "exclusive" else None
        watched = Watched(process_id, self.workspace, spawned, kept_lease, self.caller)
        dispatch: Literal["confirmed", "unknown"] = "confirmed"
        living: Living | None = None
        try:
            self.world.faults(FaultPoint.EXEC_RECORDED)
            living = Living(await child.go(), turn=Lock(fast_acquire=True), recorded=Event())
            self.world.live.add(process_id, living)
            if self.on_started is not None:
                self.on_started(process_id)
        except RunnerLostError:
            dispatch = "unknown"
        finally:
            # Whatever happened: somebody has to record the end of what is on record as begun.
            self.world.effects.start(lambda: watch(self.world, watched, living))
        self.world.faults(FaultPoint.EXEC_GONE)
        return ExecResult(process_id=process_id, dispatch_status=dispatch, work_id=self.command.work_id)

    def _claim(self, process_id: ProcessId) -> tuple[NewEvent, ...]:
        if self.command.operation_key is None:
            return ()
        claim = fresh(CLAIM, claim_stream("operation_key", self.command.operation_key))
        return claim.decide(TakeClaim("operation_key", process_id, self.invocation.fingerprint()))

    async def _append(self, process_id: ProcessId, events: tuple[NewEvent, ...], outcome: Outcome) -> bool:
        """Append the beginning, with the key's claim and the end of the hold; False if somebody was quicker."""
        hold = await consumption(self.world.log, self.resumed, outcome)
        append = Append(
            (*self._claim(process_id), *events, *hold.events),
            (self.invocation.argv_body(process_id), *hold.bodies),
            hold.scrubbed,
        )
        try:
            await self.world.log.append(append, self.caller)
        except VersionConflictError:
            return False
        return True
