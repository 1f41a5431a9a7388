"""The stack of a session, as the log has it: which session that is, what waits there, who has pushed and claimed it.

A session is the work that a call names, else its workspace. Source: the pending-actions paper; decision 28.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from codespace_es.aggregates.pending import PENDING
from codespace_es.aggregates.pending.events import PendingActionPushed, PendingResolveStarted
from codespace_es.aggregates.pending.rules import PendingCommand
from codespace_es.aggregates.pending.state import PendingState, Resolving
from codespace_es.folding import Folded
from codespace_es.ports.kept_folds import KeptFold
from codespace_es.ports.world import World
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
    """A stack with what is on record of what waits there: the pushes, and the resolve that has begun, if one has."""

    folded: FoldedStack
    recorded: tuple[RecordedEvent, ...]

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


async def read_stack(world: World, stream_id: StreamId, *, is_passing: bool = False) -> ReadStack:
    """Return a stack as the log has it now; what is over costs nothing.

    What was kept of it is brought up to date; else it is read since it was last empty. `is_passing`: it is one of many
    that are looked at, none of which is to be kept in the place of one that calls ask for.
    """
    known = world.kept.get(stream_id)
    stack: ReadStack | None = None if known is None else known.state
    recorded = [] if known is None else await world.log.read_stream(stream_id, since=known.position)
    if stack is None or not recorded:
        version, recorded = await world.log.read_since_opened(stream_id)
        stack = ReadStack(Folded(PENDING, stream_id, version - len(recorded), PENDING.initial_state), ())
    else:
        recorded = recorded[1:]
    if recorded:
        stack = _with_more(stack, recorded)
        world.kept.keep(stream_id, KeptFold(recorded[-1].position, stack.folded.version, stack), is_passing=is_passing)
        if not stack.state.unresolved:
            world.own_pushes.forget(stream_id, recorded[-1].position)
    return stack


def _with_more(stack: ReadStack, recorded: Sequence[RecordedEvent]) -> ReadStack:
    """Return a stack after further events; what is over by them is let go."""
    folded = stack.folded
    state = reduce(PENDING.evolve, (each.event for each in recorded), folded.state)
    waiting = {each.action_id for each in state.unresolved}
    started = state.started if isinstance(state, Resolving) else None
    left = tuple(
        each for each in (*stack.recorded, *recorded)
        if (isinstance(each.event, PendingActionPushed) and each.event.action_id in waiting) or each.event is started
    )
    return ReadStack(replace(folded, version=folded.version + len(recorded), state=state), left)
