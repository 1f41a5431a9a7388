"""Which stack a call is about: the one that its selectors name, else the one that its caller must mean.

In order: the work, or workspace, that is named; an action's own stack, if its id is; with one client (stdio), the
newest push of this server; else the only stack that has something pending. Source: decision 28.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from codespace_es.admission import admit
from codespace_es.aggregates.pending import PLACE
from codespace_es.aggregates.pending.events import PendingActionPushed
from codespace_es.aggregates.pending.place import Placed
from codespace_es.command_handlers.stacks import ReadStack, Session, read_stack
from codespace_es.folding import fold
from codespace_es.ports.world import World
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import StreamId
from codespace_es.vocabulary.workspace import Workspace

_STACKS_NAMED_MAX = 20


@dataclass(frozen=True, slots=True)
class Named:
    """What a call says of whose stack it means."""

    workspace: Workspace | None = None
    work_id: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A stack that has something pending."""

    session: Session
    stack: ReadStack

    def own_position(self, world: World) -> int:
        """Return the position of this server's newest push in it that isn't over; 0 if it has made none."""
        unresolved = {each.action_id for each in self.stack.state.unresolved}
        return max((
            each.position for each in self.stack.recorded
            if isinstance(each.event, PendingActionPushed) and each.event.action_id in unresolved
            and each.envelope.instance_id == world.instance_id
        ), default=0)


def named(world: World, workspace_id: str | None, work_id: str | None) -> Named:
    """Return what a call names. Raises WORKSPACE_NOT_FOUND, UNAUTHORIZED."""
    return Named(None if workspace_id is None else admit(world.workspaces, workspace_id, "read"), work_id)


async def choose(world: World, given: Named) -> Session | None:
    """Return the session whose stack is meant; None if nothing is pending there.

    Raises:
        CodespaceError: PENDING_ACTION_MISMATCH naming the stacks, where several could be meant.
    """
    candidates = await _candidates(world, given)
    exact = [each for each in candidates if given.workspace is not None and each.session.work_id == given.work_id]
    if exact or not candidates:
        return exact[0].session if exact else None
    own = max(candidates, key=lambda each: each.own_position(world))
    if not world.is_shared and own.own_position(world):
        return own.session
    if len(candidates) == 1:
        return candidates[0].session
    raise _several(candidates)


async def guess(world: World, given: Named) -> Session | None:
    """Return whose stack a call is about, by the same rule; None where nothing, or nothing certain, is pending."""
    try:
        return await choose(world, given)
    except CodespaceError:
        return None


async def placed(world: World, action_id: str) -> Session | None:
    """Return the session on whose stack an action was pushed; None if there is no such action.

    Raises:
        CodespaceError: WORKSPACE_NOT_FOUND if its directory isn't configured here.
    """
    place = (await fold(world.log, PLACE, action_id)).state if action_id.startswith("act-") else None
    begun_at = await position_of(world, action_id)
    if not isinstance(place, Placed) or begun_at is None:
        return None
    first = (await world.log.read_stream(place.stack_id, since=begun_at, limit=1))[0].event
    assert isinstance(first, PendingActionPushed), "it was pushed there"
    workspace = next((each for each in world.workspaces.values() if each.key == first.workspace_key), None)
    if workspace is None:
        raise CodespaceError(
            ErrorCode.WORKSPACE_NOT_FOUND,
            f"The action's directory, recorded as workspace {first.workspace_id!r}, isn't configured here.",
            detail={"workspace_id": first.workspace_id},
        )
    return Session(workspace, first.work_id)


async def position_of(world: World, action_id: str) -> int | None:
    """Return the position of the push of an action; None if there is no such action."""
    recorded = await world.log.read_stream(StreamId(action_id)) if action_id.startswith("act-") else ()
    return recorded[0].position - 1 if recorded else None  # the push stands before it, in the same append


async def waiting_stacks(world: World, workspace: Workspace | None = None) -> list[Waiting]:
    """Return every stack of this server's workspaces, or of one, that has something pending; oldest first."""
    by_key = {each.key: each for each in world.workspaces.values()}
    items = await world.log.open_items(kind="pending", workspace_key=None if workspace is None else workspace.key)
    found = []
    for item in items:
        known = by_key.get(item.workspace_key) if item.workspace_key is not None else None
        if known is None:
            continue
        stack = await read_stack(world, item.stream_id)
        if stack.state.unresolved:
            found.append(Waiting(Session(workspace or known, stack.state.unresolved[-1].work_id), stack))
    return found


async def _candidates(world: World, given: Named) -> list[Waiting]:
    stacks = await waiting_stacks(world, given.workspace)
    return stacks if given.work_id is None else [each for each in stacks if each.session.work_id == given.work_id]


def _several(candidates: Sequence[Waiting]) -> CodespaceError:
    told = [
        {
            "workspace_id": each.session.workspace.workspace_id,
            **({} if each.session.work_id is None else {"work_id": each.session.work_id}),
            "id": each.stack.state.unresolved[-1].action_id,
            "label": each.stack.state.unresolved[-1].label,
        }
        for each in candidates[:_STACKS_NAMED_MAX]
    ]
    names = "; ".join(f"{each['id']} in {each['workspace_id']}" for each in told)
    return CodespaceError(
        ErrorCode.PENDING_ACTION_MISMATCH,
        f"{len(candidates)} stacks have something pending, so name one by id, or by workspace_id and work_id: {names}.",
        detail={"stacks": told},
    )
