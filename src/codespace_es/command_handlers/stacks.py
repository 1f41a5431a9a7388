"""The stack of a session, as the log has it: which session that is, what waits there, who has pushed and claimed it.

A session is the work that a call names, else its workspace. Source: the pending-actions paper; decision 28.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from codespace_es.aggregates.pending import PENDING
from codespace_es.aggregates.pending.events import PendingActionPushed, PendingResolveStarted
from codespace_es.aggregates.pending.rules import PendingCommand
from codespace_es.aggregates.pending.state import PendingState
from codespace_es.folding import Folded
from codespace_es.ports.log import EventLog
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.identifiers import ActionId, InstanceId, StreamId, pending_stream
from codespace_es.vocabulary.workspace import Workspace

FoldedStack = Folded[PendingState, PendingCommand]


@dataclass(frozen=True, slots=True)
class Session:
    """Whose stack it is."""

    workspace: Workspace
    work_id: str | None = None

    @property
    def stream_id(self) -> StreamId:
        """The stream of the stack."""
        return pending_stream(self.workspace.key, self.work_id)


@dataclass(frozen=True, slots=True)
class ReadStack:
    """A stack with what was recorded of it since it was last empty."""

    folded: FoldedStack
    recorded: Sequence[RecordedEvent]

    @property
    def state(self) -> PendingState:
        """What waits."""
        return self.folded.state

    def push_of(self, action_id: ActionId) -> RecordedEvent:
        """Return the push of an action that isn't over."""
        return next(
            each for each in reversed(self.recorded)
            if isinstance(each.event, PendingActionPushed) and each.event.action_id == action_id
        )

    def pusher(self, action: PendingActionPushed) -> InstanceId:
        """Return the server that has pushed an action."""
        return self.push_of(action.action_id).envelope.instance_id

    def resolver(self) -> InstanceId:
        """Return the server that has begun the last resolve."""
        return next(
            each.envelope.instance_id for each in reversed(self.recorded)
            if isinstance(each.event, PendingResolveStarted)
        )


async def read_stack(log: EventLog, stream_id: StreamId) -> ReadStack:
    """Return a stack as the log has it now: since it was last empty, so that what is over costs nothing."""
    version, recorded = await log.read_since_opened(stream_id)
    return ReadStack(Folded(PENDING, stream_id, version, PENDING.fold_recorded(recorded)), recorded)
