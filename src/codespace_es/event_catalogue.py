"""Topic → class, for every event that was ever stored. The only way from a log file to code.

A stored event is never edited: a new meaning gets a new topic `.v2`, an upcaster and a stored log of the old one.
"""

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
)
from codespace_es.aggregates.process import (
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
from codespace_es.ports.log import Catalogue
from codespace_es.vocabulary.event import Event

_EVENTS: tuple[type[Event], ...] = (
    StoreCreated,
    StoreBodiesRemoved,
    StoreCopied,
    InstanceStarted,
    InstanceStopped,
    InstanceCallRefused,
    InstanceRecovered,
    InstanceTakenOver,
    WorkspaceBound,
    ClaimTaken,
    ClaimReleased,
    OperationMinted,
    OperationFinished,
    OperationReverted,
    ApprovalCreated,
    ApprovalGranted,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalQueued,
    ApprovalParked,
    ApprovalResuming,
    ApprovalConsumed,
    ProcessSpawned,
    ProcessNotStarted,
    ProcessInputSent,
    ProcessResized,
    ProcessEndRequested,
    ProcessExited,
    PendingActionPushed,
    PendingActionPlaced,
    PendingResolveStarted,
    PendingEffectBegun,
    PendingActionReturned,
    PendingActionPopped,
    WorkOpened,
    WorkClosing,
    WorkClosed,
    StopRequested,
    IntentDrafted,
    IntentEdited,
    IntentQueued,
    IntentsReordered,
    IntentClaimed,
    IntentRedelivered,
    IntentReleased,
    IntentCompleted,
    IntentCancelled,
)

CATALOGUE: Catalogue = {event.TOPIC: event for event in _EVENTS}
