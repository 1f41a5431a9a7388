"""The rule of the open index: which events open something, and which close it.

A pure function of one event, applied by the log in the append's own transaction, so that starting up, settling and
lists cost the same at ten events and at ten million. Source: event catalogue, section 2; decision 9.
"""

from codespace_es.aggregates.approval import ApprovalConsumed, ApprovalCreated, ApprovalDenied, ApprovalExpired
from codespace_es.aggregates.instance import InstanceRecovered, InstanceStarted, InstanceStopped, InstanceTakenOver
from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.aggregates.pending.events import PendingActionPopped, PendingActionPushed
from codespace_es.aggregates.process import ProcessExited, ProcessSpawned
from codespace_es.aggregates.steering.events import WorkOpened
from codespace_es.ports.log import OpenChange
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import StreamId

_CLOSES = OpenChange(closes=True)


def open_change(stream_id: StreamId, event: Event) -> OpenChange | None:  # noqa: ARG001 - the index is keyed by stream
    """Return the rows that `event` adds to or drops from the open index, None for most events."""
    match event:
        case OperationMinted():
            return OpenChange(opens=(("operation", event.workspace_key),))
        case ApprovalCreated():
            return OpenChange(opens=(("approval", event.workspace_key),))
        case ApprovalDenied() | ApprovalExpired() | ApprovalConsumed():
            return _CLOSES
        case WorkOpened():
            # One row a workspace, for good: whether something waits in there is a fold, not one event's affair.
            return OpenChange(opens=(("steering", event.workspace_key),))
        case ProcessSpawned():
            return OpenChange(opens=(("process", event.request.workspace_key),))
        case PendingActionPushed():
            return OpenChange(opens=(("pending", event.workspace_key),))
        case PendingActionPopped(remaining=0):
            return _CLOSES
        case InstanceStarted():
            return OpenChange(opens=(("instance", None),))
        case OperationFinished() | ProcessExited() | InstanceStopped() | InstanceRecovered() | InstanceTakenOver():
            return _CLOSES
        case _:
            return None
