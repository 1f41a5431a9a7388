"""Staging: what a tool proposes is put on the stack of its session, and nothing of it is done.

1. The proposal is checked as its apply would be: profile, paths, limits; what could never be applied isn't staged.
2. One append: `pending.action_pushed` with the action's place, its preview and, for edits, the exact bytes.

The store that tool authors know is this over the log, so a stack is the same in every server. Source: decisions 27 to
30; the pending-actions paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from pydantic_core import to_json

from codespace_es import policy
from codespace_es.admission import require_usable_work
from codespace_es.aggregates.pending import PLACE
from codespace_es.aggregates.pending.events import (
    EDITS_HANDLER,
    PendingActionPushed,
    PendingResolveStarted,
    StagedEditRow,
)
from codespace_es.aggregates.pending.place import PlaceAction
from codespace_es.aggregates.pending.rules import PushAction, StartResolve, require_top
from codespace_es.command_handlers.stacks import Session, read_stack
from codespace_es.folding import fresh
from codespace_es.ports.log import Append, NewBody, VersionConflictError
from codespace_es.ports.pending_actions import (
    Claim,
    Effect,
    NewAction,
    PushedAction,
    RegisteredCallback,
    StagedEdit,
    StagedEdits,
    WaitingAction,
)
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Caller
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import ActionId, StreamId, WorkId

_LABEL_CHARACTERS_ADVISED = 80


@dataclass(frozen=True, slots=True)
class LoggedPendingActions:
    """The store of one session: `PendingActionStore` over the log."""

    world: World
    session: Session
    caller: Caller

    async def push(self, action: NewAction) -> PushedAction:
        """Put an action on top. See the port."""
        action_id = ActionId(f"act-{self.world.ids.uuid()}")
        # Digests of many files take long enough to be felt by other callers.
        pushed, bodies = await to_thread.run_sync(_checked_and_stored, self.world, self.session, action_id, action)
        place = fresh(PLACE, action_id).decide(PlaceAction(self.session.stream_id))
        while True:
            stack = await read_stack(self.world, self.session.stream_id)
            try:
                receipt = await self.world.log.append(
                    Append((*stack.folded.decide(PushAction(pushed)), *place), bodies), self.caller
                )
            except VersionConflictError:
                continue
            if not self.world.is_shared:
                self.world.own_pushes.note(self.session.workspace.key, self.session.stream_id, receipt.first_position)
            return PushedAction(action_id, how_to_resolve(action_id), tuple(_remarks(action)))

    async def peek(self) -> WaitingAction | None:
        """Return the next one. See the port."""
        unresolved = (await read_stack(self.world, self.session.stream_id)).state.unresolved
        return _told(unresolved[-1]) if unresolved else None

    async def pop(self, claim: Claim) -> WaitingAction:
        """Take the newest off. See the port."""
        extra = () if claim.extra is None else (extra_body(self.session.stream_id, claim.extra),)
        while True:
            stack = await read_stack(self.world, self.session.stream_id)
            top = require_top(stack.state, claim.action_id)
            started = PendingResolveStarted(
                action_id=top.action_id, action=claim.action, reason=claim.reason,
                extra=extra[0].body if extra else None, effect_id=claim.effect_id,
            )
            try:
                await self.world.log.append(Append(stack.folded.decide(StartResolve(started)), extra), self.caller)
            except VersionConflictError:
                continue
            return _told(top)

    async def has_pending(self) -> bool:
        """Return whether something waits. See the port."""
        return await self.peek() is not None


def how_to_resolve(action_id: ActionId) -> str:
    """Return the line that a preview's text begins with."""
    return (
        f'Nothing is changed yet. Call resolve with action "apply" and id "{action_id}" to do it, '
        'or with action "discard" to drop it.'
    )


def extra_body(stream_id: StreamId, extra: Mapping[str, Any]) -> NewBody:
    """Return what `resolve` hands on to a callback, to be stored. Raises INVALID_ARGUMENT."""
    return NewBody(stream_id, "request", json_bytes("extra", extra))


def _told(pushed: PendingActionPushed) -> WaitingAction:
    return WaitingAction(pushed.action_id, pushed.label, pushed.source_tool_name, pushed.handler is not None)


def _remarks(action: NewAction) -> list[Notice]:
    if len(action.label) <= _LABEL_CHARACTERS_ADVISED:
        return []
    cut = f" and was cut at {limits.LABEL_CHARACTERS_MAX}" if len(action.label) > limits.LABEL_CHARACTERS_MAX else ""
    return [Notice(
        kind="long_label",
        message=f"The label has {len(action.label)} characters{cut}; people read one of {_LABEL_CHARACTERS_ADVISED}.",
    )]


# What may be staged


def _checked_and_stored(
    world: World, session: Session, action_id: ActionId, action: NewAction
) -> tuple[PendingActionPushed, tuple[NewBody, ...]]:
    """Return the event of a push and the bodies that it names, if it may be staged. For a worker thread."""
    _require_usable(world, session, action)
    return _stored(session, action_id, action)


def _require_usable(world: World, session: Session, action: NewAction) -> None:
    """Refuse what could never be applied, or stored.

    Raises:
        CodespaceError: UNAUTHORIZED, INVALID_ARGUMENT, PATH_ESCAPE, PATH_PROTECTED, INVALID_PATCH.
    """
    policy.require(session.workspace, "write")
    require_usable_work(session.work_id)
    for field, text in (("label", action.label), ("source_tool_name", action.source_tool_name)):
        if not text.strip():
            raise _unusable(field, f"{field} is empty.")
    if len(action.source_tool_name) > limits.LABEL_CHARACTERS_MAX:
        raise _unusable("source_tool_name", f"source_tool_name is longer than {limits.LABEL_CHARACTERS_MAX}.")
    match action.effect:
        case StagedEdits(edits):
            _require_usable_edits(world, session, edits)
        case RegisteredCallback(handler):
            is_usable = 0 < len(handler) <= limits.LABEL_CHARACTERS_MAX and handler != EDITS_HANDLER
            if not is_usable:
                raise _unusable("handler", f"{handler[:100]!r} can't be the name of a handler.")


def _require_usable_edits(world: World, session: Session, edits: tuple[StagedEdit, ...]) -> None:
    normalize = world.files.open(session.workspace.root).normalize
    paths = [each.path for each in edits]
    if any(normalize(path) != path for path in paths):
        raise _unusable("edits", "A path isn't normalised.")
    if not paths:
        raise _unusable("edits", "There is no edit to stage.")
    if len(set(paths)) < len(paths):
        raise _unusable("edits", "A path is staged twice.")
    protected = policy.protects(session.workspace)
    for path in paths:
        if protected(path):
            raise CodespaceError(ErrorCode.PATH_PROTECTED, f"{path} is protected here.", detail={"path": path})
    sizes = [len(each.after) for each in edits if each.after is not None]
    if max(sizes, default=0) > limits.IMAGE_BYTES_MAX or sum(sizes) > limits.PATCH_IMAGES_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_PATCH,
            f"The staged files are larger than {limits.IMAGE_BYTES_MAX // limits.MIB} MiB for one, "
            f"or {limits.PATCH_IMAGES_BYTES_MAX // limits.MIB} MiB together.",
        )


def _unusable(field: str, message: str) -> CodespaceError:
    return CodespaceError(ErrorCode.INVALID_ARGUMENT, message, detail={"field": field})


# How it is stored


def _stored(
    session: Session, action_id: ActionId, action: NewAction
) -> tuple[PendingActionPushed, tuple[NewBody, ...]]:
    """Return the event of a push and the bodies that it names. Raises INVALID_ARGUMENT for what isn't JSON."""
    stream_id = session.stream_id
    preview = NewBody(stream_id, "result", json_bytes("preview", action.preview, limits.MESSAGE_BYTES_MAX))
    bodies = [preview]
    details = None
    if action.details is not None:
        details = NewBody(stream_id, "result", json_bytes("details", action.details))
        bodies.append(details)
    handler, payload, rows = _stored_effect(stream_id, action.effect, bodies)
    pushed = PendingActionPushed(
        workspace_key=session.workspace.key,
        workspace_id=session.workspace.workspace_id,
        work_id=WorkId(session.work_id) if session.work_id else None,
        action_id=action_id,
        label=action.label[: limits.LABEL_CHARACTERS_MAX],
        source_tool_name=action.source_tool_name,
        handler=handler,
        payload=None if payload is None else payload.body,
        preview=preview.body,
        details=None if details is None else details.body,
        edits=rows,
    )
    return pushed, tuple(bodies)


def _stored_effect(
    stream_id: StreamId, effect: Effect, bodies: list[NewBody]
) -> tuple[str | None, NewBody | None, tuple[StagedEditRow, ...]]:
    """Return handler, payload and edits of what apply will do; the bytes that it needs join `bodies`."""
    match effect:
        case StagedEdits(edits):
            bodies.extend(NewBody(stream_id, "image", each.after) for each in edits if each.after is not None)
            rows = tuple(
                StagedEditRow(
                    path=each.path, before=each.before,
                    after=ABSENT if each.after is None else digest_of(each.after),
                )
                for each in edits
            )
            return EDITS_HANDLER, None, rows
        case RegisteredCallback(handler, payload):
            stored = NewBody(stream_id, "request", json_bytes("payload", payload))
            bodies.append(stored)
            return handler, stored, ()
        case _:
            return None, None, ()


def json_bytes(field: str, value: Any, bytes_max: int = limits.PENDING_JSON_BYTES_MAX) -> bytes:
    """Return `value` as it is stored. Raises INVALID_ARGUMENT naming the field, for what isn't JSON or is large."""
    try:
        stored = to_json(value, inf_nan_mode="null")
    except ValueError as error:  # a type that JSON doesn't know, a half character, a circle
        raise _unusable(field, f"{field} isn't JSON: {error}") from error
    if len(stored) > bytes_max:
        raise _unusable(field, f"{field} has {len(stored)} bytes; the limit is {bytes_max}.")
    return stored
