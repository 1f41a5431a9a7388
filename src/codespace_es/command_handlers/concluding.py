"""How a resolve begins and ends, as parts of the appends that its operation or its callback leads.

A resolve and its effect are never two facts: it begins in the append that mints the operation, unless a callback had to
run first, and it ends in the one that finishes the operation. Found open after a crash, the operation's files decide:
applied → popped, as before → on top again, anything else → popped as failed. Source: event catalogue, 4 and 5.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.aggregates.pending import PENDING
from codespace_es.aggregates.pending.events import EDITS_HANDLER, PendingResolveStarted
from codespace_es.aggregates.pending.rules import PopAction, ResolveAtOnce, ReturnAction, StartResolve, require_top
from codespace_es.aggregates.pending.state import Resolving
from codespace_es.command_handlers.consuming import NOTHING, AppendPart, Outcome
from codespace_es.command_handlers.stacks import FoldedStack, read_stack
from codespace_es.ports.log import NewBody
from codespace_es.ports.world import World
from codespace_es.projections.resolve_result import (
    ResolveResult,
    applied_text,
    discarded_text,
    head_of,
    particulars,
)
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Fault
from codespace_es.vocabulary.identifiers import ActionId, OperationId, StreamId, pending_stream
from codespace_es.vocabulary.patch_result import PatchResult, ResultError


@dataclass(frozen=True, slots=True)
class ResolvedAction:
    """The action that a patch carries out."""

    stream_id: StreamId
    action_id: ActionId
    effect_id: OperationId
    """The id that the operation has."""
    reason: str = ""
    extra: NewBody | None = None
    is_begun: bool = False
    """The resolve is on record already, since a callback had to run first."""
    said: "Said | None" = None

    @property
    def started(self) -> PendingResolveStarted:
        """The beginning of its resolve."""
        return PendingResolveStarted(
            action_id=self.action_id, action="apply", reason=self.reason,
            extra=None if self.extra is None else self.extra.body, effect_id=self.effect_id,
        )


@dataclass(frozen=True, slots=True)
class Said:
    """What a callback returned."""

    text: str = ""
    result: Any = None
    """JSON."""


@dataclass(frozen=True, slots=True)
class Applied:
    """It is done."""

    said: Said
    operation_id: OperationId | None = None


@dataclass(frozen=True, slots=True)
class Discarded:
    """It isn't wanted."""

    said: Said | None = None
    error: Fault | None = None


@dataclass(frozen=True, slots=True)
class NotApplied:
    """It couldn't be done; `returned` puts it back on top."""

    error: CodespaceError
    outcome: Literal["returned", "failed", "orphaned"]
    operation_id: OperationId | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a resolve, as it is appended and as it is answered."""

    part: AppendPart
    outcome: Outcome
    """What a hold of it remembers."""
    answer: ResolveResult | CodespaceError


def conclude(
    stack: FoldedStack, end: Applied | Discarded | NotApplied, *, started: PendingResolveStarted | None = None
) -> Conclusion:
    """Return the end of what is being resolved; with `started`, of what begins in this very append.

    Raises:
        CodespaceError: with `started`, NO_PENDING_ACTION, PENDING_ACTION_MISMATCH, WORKSPACE_BUSY.
    """
    state = stack.state
    if started is not None:
        require_top(state, started.action_id)
        state = PENDING.evolve(state, started)
    assert isinstance(state, Resolving), "an end has its beginning"
    answer = _tell(state, end)
    stored, command = _recorded(stack.stream_id, end, answer, has_begun=state.has_begun)
    events = stack.decide(command if started is None else ResolveAtOnce(started, command))
    operation_id = getattr(end, "operation_id", None)
    fault = Fault.of(answer) if isinstance(answer, CodespaceError) else None
    outcome = Outcome(operation_id, None if stored is None else stored.content, fault)
    return Conclusion(AppendPart(events, () if stored is None else (stored,)), outcome, answer)


def _tell(state: Resolving, end: Applied | Discarded | NotApplied) -> ResolveResult | CodespaceError:
    left = state.actions
    told = particulars(state)
    if isinstance(end, NotApplied):
        is_returned = end.outcome == "returned" and not state.has_begun
        after = state.unresolved if is_returned else left
        head = head_of(after)
        more = {
            **told,
            "outcome": "returned" if is_returned else "failed" if end.outcome == "returned" else end.outcome,
            "remaining": len(after),
            "next": None if head is None else head.model_dump(),
        }
        if end.operation_id is not None:
            more["operation_id"] = end.operation_id
        return end.error.with_detail(**more)
    told |= {"remaining": len(left), "next": head_of(left)}
    label, reason = state.action.label, state.started.reason
    if isinstance(end, Applied):
        return ResolveResult(
            **told, outcome="applied", text=applied_text(label, end.said.text), source_result=end.said.result,
            operation_id=end.operation_id,
        )
    text = end.said.text if end.said is not None else discarded_text(label, reason)
    error = None if end.error is None else ResultError(code=end.error.code.value, message=end.error.message)
    result = None if end.said is None else end.said.result
    return ResolveResult(**told, outcome="discarded", text=text, source_result=result, error=error)


def _recorded(
    stream_id: StreamId, end: Applied | Discarded | NotApplied, answer: ResolveResult | CodespaceError, *,
    has_begun: bool,
) -> tuple[NewBody | None, PopAction | ReturnAction]:
    """Return the stored answer, if it is a result, and how the stack remembers the end."""
    if isinstance(answer, CodespaceError):
        assert isinstance(end, NotApplied), "only what couldn't be done is an error"
        if end.outcome == "returned" and not has_begun:
            return None, ReturnAction(Fault.of(answer))
        outcome = "failed" if end.outcome == "returned" else end.outcome
        return None, PopAction(outcome, end.operation_id, fault=Fault.of(answer))
    stored = NewBody(stream_id, "result", answer.to_stored())
    if isinstance(end, Discarded):
        return stored, PopAction("discarded", result=stored.body, fault=end.error)
    operation_id = end.operation_id if isinstance(end, Applied) else None
    return stored, PopAction("applied", operation_id, result=stored.body)


# Together with an operation


async def require_beginnable(world: World, action: ResolvedAction | None) -> None:
    """Pass if the action is on top still, or its resolve is begun. Raises what `require_top` raises."""
    if action is not None and not action.is_begun:
        require_top((await read_stack(world, action.stream_id)).state, action.action_id)


async def resolve_beginning(world: World, action: ResolvedAction | None) -> AppendPart:
    """Return what begins together with an operation: the resolve of its action."""
    if action is None or action.is_begun:
        return NOTHING
    stack = (await read_stack(world, action.stream_id)).folded
    return AppendPart(stack.decide(StartResolve(action.started)), () if action.extra is None else (action.extra,))


async def resolve_refused(world: World, action: ResolvedAction, refusal: CodespaceError) -> Conclusion:
    """Return how a resolve ends whose operation is refused in planning: only a stale preview is over by that."""
    stack = (await read_stack(world, action.stream_id)).folded
    if refusal.code is ErrorCode.STALE_PREVIEW:
        end = NotApplied(refusal, "failed", action.effect_id)
    else:
        end = NotApplied(apply_failed(refusal.message, cause=refusal.code), "returned", action.effect_id)
    conclusion = conclude(stack, end, started=None if action.is_begun else action.started)
    if action.is_begun or action.extra is None:
        return conclusion
    part = replace(conclusion.part, bodies=(*conclusion.part.bodies, action.extra))
    return replace(conclusion, part=part)


async def resolve_ending(
    world: World, minted: OperationMinted, finished: OperationFinished, result: PatchResult, said: Said | None
) -> Conclusion | None:
    """Return what ends together with an operation: the resolve of its action; None if it carries out none."""
    if minted.action_id is None:
        return None
    stack = (await read_stack(world, pending_stream(minted.workspace_key, minted.work_id))).folded
    assert isinstance(stack.state, Resolving), "an operation of an action ends with its resolve"
    operation_id = OperationId(result.operation_id)
    end: Applied | NotApplied
    if finished.status == "applied":
        if stack.state.action.handler == EDITS_HANDLER:
            wire = result.to_wire()
            said = Said("", {key: wire[key] for key in wire if key not in ("replayed", "work_id")})
        end = Applied(said or Said(), operation_id)
    else:
        message = finished.fault.message if finished.fault is not None else f"the operation is {finished.status}."
        cause = finished.fault.code if finished.fault is not None else None
        is_undone = finished.status == "failed_rolled_back"
        end = NotApplied(apply_failed(message, cause=cause), "returned" if is_undone else "failed", operation_id)
    return conclude(stack, end)


def apply_failed(message: str, *, cause: ErrorCode | None = None) -> CodespaceError:
    """Return the error of an apply that didn't succeed, in the contract's words."""
    detail = {} if cause is None else {"cause": cause.value}
    return CodespaceError(ErrorCode.APPLY_FAILED, f"Apply failed: {message}", detail=detail)
