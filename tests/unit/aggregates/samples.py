"""One event of each class of the catalogue, and the commands that lead to them, with ids that tests can name."""

from datetime import UTC, datetime, timedelta

from codespace_es.aggregates.approval import (
    ApprovalConsumed,
    ApprovalCreated,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalParked,
    ApprovalQueued,
    ApprovalResuming,
)
from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken
from codespace_es.aggregates.instance import (
    InstanceCallRefused,
    InstanceRecovered,
    InstanceStarted,
    InstanceStopped,
    InstanceTakenOver,
)
from codespace_es.aggregates.operation import OperationFinished, OperationMinted, OperationReverted
from codespace_es.aggregates.pending.events import (
    PendingActionPlaced,
    PendingActionPopped,
    PendingActionPushed,
    PendingActionReturned,
    PendingEffectBegun,
    PendingResolveStarted,
    PendingStackLeft,
)
from codespace_es.aggregates.process import (
    CommandRequest,
    ProcessEndRequested,
    ProcessExited,
    ProcessInputSent,
    ProcessNotStarted,
    ProcessResized,
    ProcessSpawned,
)
from codespace_es.aggregates.steering.events import (
    IntentCancelled,
    IntentClaimed,
    IntentCompleted,
    IntentDrafted,
    IntentEdited,
    IntentQueued,
    IntentRedelivered,
    IntentReleased,
    IntentsReordered,
    StopRequested,
    WorkClosed,
    WorkClosing,
    WorkOpened,
)
from codespace_es.aggregates.store import StoreBodiesRemoved, StoreCopied, StoreCreated
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Body, Event, Fault
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import (
    ActionId,
    ApprovalId,
    IntentId,
    OperationId,
    StreamId,
    WorkId,
    WorkspaceKey,
)

DIGEST = digest_of(b"")
BODY = Body(digest=DIGEST, size_bytes=0)
OPERATION_ID = OperationId("op-1")
OTHER_ID = OperationId("op-2")
HOLD_ID = ApprovalId("appr-1")

CREATED = StoreCreated(store_id="store-1", format=1, software="codespace-es/1")
REMOVED = StoreBodiesRemoved(reason="pruned", count=0, total_bytes=0, digests=BODY)
COPIED = StoreCopied(from_store_id="store-0", from_position=1, from_hash=DIGEST)
STARTED = InstanceStarted(
    software="codespace-es/1", machine_id="machine", host="host", boot_id="boot", pid=1, pid_namespace=2,
    started_ticks=3, transport="stdio", configuration=DIGEST,
)
STOPPED = InstanceStopped(reason="eof")
CALL_REFUSED = InstanceCallRefused(tool="read", code=ErrorCode.PATH_ESCAPE, arguments=DIGEST)
RECOVERED = InstanceRecovered(operations_closed=1, processes_closed=0, resolves_closed=0)
TAKEN_OVER = InstanceTakenOver(reason="its disk has burnt")
BOUND = WorkspaceBound(workspace_id="demo", root="/srv/demo", machine_id="machine", device=1, inode=2)
KEY_TAKEN = ClaimTaken(kind="operation_key", holder_id=OPERATION_ID, fingerprint=DIGEST)
HOLD_TAKEN = ClaimTaken(kind="hold", holder_id=HOLD_ID, fingerprint=DIGEST)
RELEASED = ClaimReleased(holder_id=HOLD_ID)
MINTED = OperationMinted(
    workspace_key=WorkspaceKey("wsp-1"), workspace_id="demo", source="apply_patch", check_only=False,
    fingerprint=DIGEST, request=BODY,
)
APPLIED = OperationFinished(status="applied", result=BODY)
CHECKED = OperationFinished(status="checked", result=BODY)
REJECTED = OperationFinished(status="rejected", fault=Fault(code=ErrorCode.INVALID_PATCH, message="No."))
ROLLED_BACK = OperationFinished(status="failed_rolled_back", result=BODY)
UNKNOWN = OperationFinished(status="unknown", reason="unknown", result=BODY)
REVERTED = OperationReverted(by=OTHER_ID)
REQUESTED_COMMAND = CommandRequest(
    workspace_key=WorkspaceKey("wsp-1"), workspace_id="demo", argv=BODY, command_line="true", tty=True, stdin="pipe",
    timeout_ms=30_000, environment_names=("PATH",), sandbox="none", network="restricted", is_network_enforced=False,
    fingerprint=DIGEST,
)
SPAWNED = ProcessSpawned(
    request=REQUESTED_COMMAND, pid=1, started_ticks=2, boot_id="boot", pid_namespace=3, rows=24, columns=80
)
NOT_STARTED = ProcessNotStarted(
    request=REQUESTED_COMMAND, fault=Fault(code=ErrorCode.PROCESS_SPAWN_FAILED, message="No."), errno=2
)
INPUT_SENT = ProcessInputSent(size_bytes=0, is_eof=True, mac="00")
RESIZED = ProcessResized(rows=40, columns=120)
END_REQUESTED = ProcessEndRequested(cause="caller", signal=15, grace_ms=2_000)
TIME_IS_UP = ProcessEndRequested(cause="timeout", signal=15, grace_ms=2_000)
EXITED = ProcessExited(
    termination="exited", exit_code=0, output_bytes=0, retained_from=0, duration_ms=1, swept=0, is_output_cut=False
)
CREATED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EXPIRES_AT = CREATED_AT + timedelta(seconds=60)
HELD_CREATED = ApprovalCreated(
    workspace_key=WorkspaceKey("wsp-1"), workspace_id="demo", tool="apply_patch", fingerprint=DIGEST, origin="policy",
    arguments=BODY, title="Patch a.txt",
)
HELD_SHORTLY = HELD_CREATED.model_copy(update={"expires_at": EXPIRES_AT})
GRANTED = ApprovalGranted(reason="Go on.")
DENIED = ApprovalDenied(reason="No.")
EXPIRED = ApprovalExpired()
QUEUED = ApprovalQueued()
PARKED = ApprovalParked(fault=Fault(code=ErrorCode.WORKSPACE_BUSY, message="Busy."))
RESUMING = ApprovalResuming(effect_id=OPERATION_ID)
CONSUMED = ApprovalConsumed(effect_id=OPERATION_ID, result=BODY)
ACTION_ID = ActionId("act-1")
PUSHED = PendingActionPushed(
    workspace_key=WorkspaceKey("wsp-1"), workspace_id="demo", action_id=ACTION_ID, label="Rename all",
    source_tool_name="rename", preview=BODY,
)
PUSHED_DURABLE = PUSHED.model_copy(update={"action_id": ActionId("act-2"), "handler": "rename"})
PLACED = PendingActionPlaced(stack_id=StreamId("pend-1"))
RESOLVE_STARTED = PendingResolveStarted(action_id=ACTION_ID, action="apply", effect_id=OPERATION_ID)
EFFECT_BEGUN = PendingEffectBegun(action_id=ACTION_ID)
RETURNED = PendingActionReturned(action_id=ACTION_ID, fault=Fault(code=ErrorCode.APPLY_FAILED, message="No."))
POPPED = PendingActionPopped(action_id=ACTION_ID, outcome="applied", remaining=0, effect_id=OPERATION_ID, result=BODY)
STACK_LEFT = PendingStackLeft(workspace_key=WorkspaceKey("wsp-1"), workspace_id="demo", work_id=WorkId("work-1"))
ORPHANED = PendingActionPopped(action_id=ACTION_ID, outcome="orphaned", remaining=0)
WORK_ID = WorkId("work-1")
INTENT_ID = IntentId("fb-1")
WORK_OPENED = WorkOpened(workspace_key=WorkspaceKey("wsp-1"), workspace_id="demo", work_id=WORK_ID, title="Tidy up")
WORK_CLOSING = WorkClosing(work_id=WORK_ID)
WORK_CLOSED = WorkClosed(work_id=WORK_ID)
STOP_REQUESTED = StopRequested(work_id=WORK_ID, intent_id=IntentId("fb-stop"), body=BODY, is_claimed=True)
DRAFTED = IntentDrafted(intent_id=INTENT_ID, work_id=WORK_ID, kind="follow_up", delivery="next_checkpoint", body=BODY)
EDITED = IntentEdited(intent_id=INTENT_ID, body=BODY, delivery="after_current_work")
INTENT_QUEUED = IntentQueued(intent_id=INTENT_ID)
REORDERED = IntentsReordered(work_id=WORK_ID, intent_ids=(INTENT_ID,))
CLAIMED = IntentClaimed(intent_id=INTENT_ID)
REDELIVERED = IntentRedelivered(intent_id=INTENT_ID)
INTENT_RELEASED = IntentReleased(intent_id=INTENT_ID)
COMPLETED = IntentCompleted(intent_id=INTENT_ID, outcome="done")
CANCELLED = IntentCancelled(intent_id=INTENT_ID)

EVENTS: tuple[Event, ...] = (
    CREATED, REMOVED, COPIED, STARTED, STOPPED, CALL_REFUSED, RECOVERED, TAKEN_OVER, BOUND, KEY_TAKEN, HOLD_TAKEN,
    RELEASED,
    MINTED, APPLIED, CHECKED, REJECTED, ROLLED_BACK, UNKNOWN, REVERTED, SPAWNED,
    NOT_STARTED, INPUT_SENT, RESIZED, END_REQUESTED, TIME_IS_UP, EXITED,
    HELD_CREATED, GRANTED, DENIED, EXPIRED, QUEUED, PARKED, RESUMING, CONSUMED,
    PUSHED, PUSHED_DURABLE, PLACED, RESOLVE_STARTED, EFFECT_BEGUN, RETURNED, POPPED, ORPHANED, STACK_LEFT,
    WORK_OPENED, WORK_CLOSING, WORK_CLOSED, STOP_REQUESTED, DRAFTED, EDITED, INTENT_QUEUED, REORDERED, CLAIMED,
    REDELIVERED, INTENT_RELEASED, COMPLETED, CANCELLED,
)
