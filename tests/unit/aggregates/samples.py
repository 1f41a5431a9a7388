"""One event of each class of the catalogue, and the commands that lead to them, with ids that tests can name."""

from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken
from codespace_es.aggregates.instance import (
    InstanceCallRefused,
    InstanceRecovered,
    InstanceStarted,
    InstanceStopped,
)
from codespace_es.aggregates.operation import OperationFinished, OperationMinted, OperationReverted
from codespace_es.aggregates.store import StoreBodiesRemoved, StoreCopied, StoreCreated
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Body, Event, Fault
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import ApprovalId, OperationId, WorkspaceKey

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

EVENTS: tuple[Event, ...] = (
    CREATED, REMOVED, COPIED, STARTED, STOPPED, CALL_REFUSED, RECOVERED, BOUND, KEY_TAKEN, HOLD_TAKEN, RELEASED,
    MINTED, APPLIED, CHECKED, REJECTED, ROLLED_BACK, UNKNOWN, REVERTED,
)
