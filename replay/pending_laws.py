"""The laws of pending actions: where they wait, that they end as their operation does, and with what they end.

That a stack is last in, first out, and that only what is being resolved ends, are its fold's own. One function a law,
over the events of one append. Source: event catalogue, sections 4 and 6 (law 6); ADR 12.
"""

from collections.abc import Iterator

from codespace_es.aggregates.approval import ApprovalDenied, Granted, Parked
from codespace_es.aggregates.operation import Minted, OperationFinished, OperationMinted
from codespace_es.aggregates.pending.events import (
    PendingActionPlaced,
    PendingActionPopped,
    PendingActionPushed,
    PendingActionReturned,
    PendingStackLeft,
)
from codespace_es.aggregates.pending.state import Resolving
from codespace_es.aggregates.steering.events import WorkClosed
from codespace_es.vocabulary.identifiers import pending_stream
from replay.finding import Breach, Law
from replay.memory import Memory, SeenAppend

_ENDS_OF_STATUS = {
    "applied": ("applied",),
    "failed_rolled_back": ("returned", "failed"),
    "rejected": ("returned", "failed"),
}
"""How an action may end with an operation of this status; with any other it has failed."""


def an_action_waits_where_it_was_placed(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """A push and its place stand in one append, on the stack of the session that the push names."""
    if not append.is_whole:
        return
    placed: dict[str, str] = {
        seen.stream_id: seen.recorded.event.stack_id
        for seen in append.events if isinstance(seen.recorded.event, PendingActionPlaced)
    }
    pushed: dict[str, str] = {}
    for seen in append.events:
        event = seen.recorded.event
        if not isinstance(event, PendingActionPushed):
            continue
        pushed[event.action_id] = seen.stream_id
        if seen.stream_id != str(pending_stream(event.workspace_key, event.work_id)):
            yield seen.breach(Law.PENDING, "it isn't on the stack of its session")
        if placed.get(event.action_id) != seen.stream_id:
            yield seen.breach(Law.PENDING, f"{event.action_id} isn't placed in the same append")
    for seen in append.events:
        is_place = isinstance(seen.recorded.event, PendingActionPlaced)
        if is_place and pushed.get(seen.stream_id) != placed[seen.stream_id]:
            yield seen.breach(Law.PENDING, "it isn't pushed there in the same append")


def an_action_ends_with_its_operation(append: SeenAppend, memory: Memory) -> Iterator[Breach]:
    """An operation carries out what is being resolved under its id, and both end in one append, the same way."""
    if not append.is_whole:
        return
    ends = dict(_ends(append))
    finished = {seen.stream_id for seen in append.events if isinstance(seen.recorded.event, OperationFinished)}
    for seen in append.events:
        event = seen.recorded.event
        if isinstance(event, OperationMinted) and event.action_id is not None:
            if not _is_being_resolved(append, memory, event, seen.stream_id):
                yield seen.breach(Law.PENDING, f"{event.action_id}, which it carries out, isn't being resolved by it")
        elif isinstance(event, OperationFinished) and isinstance(seen.before, Minted):
            action_id = seen.before.minted.action_id
            if action_id is not None and not _fits(event, seen.stream_id, ends.get(action_id)):
                problem = f"{action_id}, which it carries out, doesn't end with it: it is {event.status}"
                yield seen.breach(Law.PENDING, problem)
        elif isinstance(event, PendingActionPopped) and event.effect_id not in (None, *finished):
            yield seen.breach(Law.PENDING, f"{event.effect_id}, which it led to, doesn't end with it")


def _ends(append: SeenAppend) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yield each action whose resolve ends here, with how, and the operation that it names."""
    for seen in append.events:
        event = seen.recorded.event
        if isinstance(event, PendingActionPopped):
            yield event.action_id, (event.outcome, event.effect_id)
        elif isinstance(event, PendingActionReturned):
            yield event.action_id, ("returned", None)


def _fits(finished: OperationFinished, operation_id: str, end: tuple[str, str | None] | None) -> bool:
    """Return whether an action ended as its operation did."""
    if end is None:
        return False
    outcome, effect_id = end
    is_allowed = outcome in _ENDS_OF_STATUS.get(finished.status, ("failed",))
    return is_allowed and (outcome == "returned" or effect_id == operation_id)


def _is_being_resolved(append: SeenAppend, memory: Memory, minted: OperationMinted, operation_id: str) -> bool:
    stack_id: str = pending_stream(minted.workspace_key, minted.work_id)
    if stack_id in memory.damaged:
        return True
    states = [seen.before for seen in append.events if seen.stream_id == stack_id]
    states += [seen.after for seen in append.events if seen.stream_id == stack_id]
    return any(
        isinstance(state, Resolving) and state.action.action_id == minted.action_id
        and state.started.effect_id == operation_id
        for state in (*states, memory.state(stack_id))
    )


def an_end_has_its_answer(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """What was applied or discarded has the answer that a repeat is given; what has failed has its error."""
    for seen in append.events:
        event = seen.recorded.event
        if not isinstance(event, PendingActionPopped):
            continue
        is_success = event.outcome in ("applied", "discarded")
        if is_success != (event.result is not None):
            yield seen.breach(Law.PENDING, f"it is {event.outcome} {'without' if is_success else 'with'} an answer")
        if event.outcome == "failed" and event.fault is None:
            yield seen.breach(Law.PENDING, "it has failed without an error")
        if event.outcome == "applied" and event.fault is not None:
            yield seen.breach(Law.PENDING, "it is applied with an error")


def a_granted_hold_is_denied_only_by_a_discard(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """A hold that was granted is denied by the discard of its action alone, in the same append."""
    if not append.is_whole:
        return
    discarded = {
        seen.recorded.event.action_id for seen in append.events
        if isinstance(seen.recorded.event, PendingActionPopped) and seen.recorded.event.outcome == "discarded"
    }
    for seen in append.events:
        if not isinstance(seen.recorded.event, ApprovalDenied) or not isinstance(seen.before, Granted | Parked):
            continue
        if seen.before.created.action_id not in discarded:
            yield seen.breach(Law.PENDING, "it was granted, and its action isn't discarded in the same append")


def a_stack_is_left_with_its_work(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """It is the stack of a work that is closed in the same append; that nothing waits there is the fold's own."""
    if not append.is_whole:
        return
    closed = {seen.recorded.event.work_id for seen in append.events if isinstance(seen.recorded.event, WorkClosed)}
    for seen in append.events:
        event = seen.recorded.event
        if not isinstance(event, PendingStackLeft):
            continue
        if event.work_id not in closed:
            yield seen.breach(Law.PENDING, f"{event.work_id} isn't closed in the same append")
        if seen.stream_id != str(pending_stream(event.workspace_key, event.work_id)):
            yield seen.breach(Law.PENDING, "it isn't the stack of its work")
