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
from codespace_es.ports.log import OpenItem
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


class _SeveralError(Exception):
    """More than one stack could be meant."""


def named(world: World, workspace_id: str | None, work_id: str | None) -> Named:
    """Return what a call names. Raises WORKSPACE_NOT_FOUND, UNAUTHORIZED."""
    return Named(None if workspace_id is None else admit(world.workspaces, workspace_id, "read"), work_id)


async def choose(world: World, given: Named) -> Session | None:
    """Return the session whose stack is meant; None if nothing is pending there.

    Raises:
        CodespaceError: PENDING_ACTION_MISMATCH naming the stacks, where several could be meant.
    """
    try:
        return await _meant(world, given)
    except _SeveralError:
        items = await _open_stacks(world, given.workspace)
        if given.work_id is not None:
            own = {Session(each, given.work_id).stream_id for each in world.workspaces.values()}
            items = [item for item in items if item.stream_id in own]
        raise _several(len(items), await _read_all(world, items[:_STACKS_NAMED_MAX], given.workspace)) from None


async def guess(world: World, given: Named) -> Session | None:
    """Return whose stack a call is about, by the same rule; None where nothing, or nothing certain, is pending."""
    try:
        return await _meant(world, given)
    except _SeveralError:
        return None


async def own_session(world: World, workspace: Workspace, work_id: str | None) -> Session | None:
    """Return the session that a call is in: the one it names, or, with one client, that of this server's newest push.

    None where nothing is pending there. Whatever else waits costs nothing.
    """
    exact = Session(workspace, work_id)
    if (await read_stack(world, exact.stream_id)).state.unresolved:
        return exact
    return None if work_id is not None or world.is_shared else await _newest_own(world, workspace)


async def _meant(world: World, given: Named) -> Session | None:
    """Return the session that is meant; None if nothing is pending there. Raises _SeveralError."""
    if given.workspace is not None:
        own = await own_session(world, given.workspace, given.work_id)
    elif given.work_id is not None:
        own = await _of_work(world, given.work_id)
    else:
        own = None if world.is_shared else await _newest_own(world, None)
    if own is not None or given.work_id is not None:
        return own
    items = await _open_stacks(world, given.workspace, limit=2)
    if len(items) > 1:
        raise _SeveralError
    found = await _read_all(world, items, given.workspace)
    return found[0].session if found else None


async def _of_work(world: World, work_id: str) -> Session | None:
    """Return the session of a work, in whichever workspace it is; works of several may have one name."""
    found = []
    for each in {each.key: each for each in world.workspaces.values()}.values():
        session = Session(each, work_id)
        stack = await read_stack(world, session.stream_id)
        if stack.state.unresolved:
            found.append((_own_position(world, stack), session))
    own = max(found, key=lambda each: each[0], default=None)
    if own is None or len(found) == 1 or (own[0] and not world.is_shared):
        return None if own is None else own[1]
    raise _SeveralError


async def _newest_own(world: World, workspace: Workspace | None) -> Session | None:
    """Return the session of this server's newest push that isn't over, in a workspace or in any."""
    by_key = {each.key: each for each in world.workspaces.values()} if workspace is None else {workspace.key: workspace}
    best: tuple[int, Session] | None = None
    for key, known in by_key.items():
        while (noted := world.own_pushes.newest(key)) is not None and (best is None or noted[1] > best[0]):
            stack = await read_stack(world, noted[0])
            found = _own_position(world, stack)
            if found == noted[1]:
                best = found, Session(known, stack.state.unresolved[-1].work_id)
                break
            world.own_pushes.correct(*noted, found)
    return None if best is None else best[1]


def _own_position(world: World, stack: ReadStack) -> int:
    """Return the position of this server's newest push in a stack that isn't over; 0 if it has made none."""
    unresolved = {each.action_id for each in stack.state.unresolved}
    return max((
        each.position for each in stack.recorded
        if isinstance(each.event, PendingActionPushed) and each.event.action_id in unresolved
        and each.envelope.instance_id == world.instance_id
    ), default=0)


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


async def is_anything_waiting(world: World) -> bool:
    """Return whether a stack of this server's workspaces has something pending."""
    return bool(await _open_stacks(world, None, limit=1))


async def waiting_stacks(world: World, workspace: Workspace | None = None) -> list[Waiting]:
    """Return every stack of this server's workspaces, or of one, that has something pending; oldest first."""
    return await _read_all(world, await _open_stacks(world, workspace), workspace)


async def _open_stacks(world: World, workspace: Workspace | None, *, limit: int | None = None) -> Sequence[OpenItem]:
    """Return the rows of the stacks that have something pending, oldest first."""
    keys = [each.key for each in world.workspaces.values()] if workspace is None else [workspace.key]
    return await world.log.open_items(kind="pending", workspace_key=keys, limit=limit)


async def _read_all(world: World, items: Sequence[OpenItem], workspace: Workspace | None) -> list[Waiting]:
    by_key = {each.key: each for each in world.workspaces.values()}
    found = []
    for item in items:
        stack = await read_stack(world, item.stream_id, is_passing=True)
        if stack.state.unresolved and item.workspace_key is not None:
            session = Session(workspace or by_key[item.workspace_key], stack.state.unresolved[-1].work_id)
            found.append(Waiting(session, stack))
    return found


def _several(count: int, candidates: Sequence[Waiting]) -> CodespaceError:
    told = [
        {
            "workspace_id": each.session.workspace.workspace_id,
            **({} if each.session.work_id is None else {"work_id": each.session.work_id}),
            "id": each.stack.state.unresolved[-1].action_id,
            "label": each.stack.state.unresolved[-1].label,
        }
        for each in candidates
    ]
    names = "; ".join(f"{each['id']} in {each['workspace_id']}" for each in told)
    return CodespaceError(
        ErrorCode.PENDING_ACTION_MISMATCH,
        f"{count} stacks have something pending, so name one by id, or by workspace_id and work_id: {names}.",
        detail={"stacks": told},
    )
