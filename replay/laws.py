"""The laws over the events of one append, one function a law. Each yields what is wrong, with its place.

Positions, chain, versions, topics and folds are the walk's own (`verify`), stored contents are `bodies`'. A law sees an
append after it was folded. Source: event catalogue, sections 4 and 6.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType

from codespace_es.aggregates.approval import ApprovalConsumed, ApprovalCreated, ApprovalDenied, ApprovalResuming
from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken
from codespace_es.aggregates.instance import InstanceRecovered, InstanceStarted, InstanceStopped, InstanceTakenOver
from codespace_es.aggregates.instance import Running as RunningInstance
from codespace_es.aggregates.operation import Finished, Minted, OperationFinished, OperationMinted, OperationReverted
from codespace_es.aggregates.pending.events import (
    PendingActionPlaced,
    PendingActionPopped,
    PendingActionPushed,
    PendingStackLeft,
)
from codespace_es.aggregates.process import ProcessExited, ProcessNotStarted, ProcessSpawned
from codespace_es.aggregates.store import STORE_FORMAT, StoreCopied, StoreCreated
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import workspace_key
from replay.approval_laws import (
    ENDS_OF_A_HOLD,
    a_hold_ends_with_its_effect,
    a_hold_has_its_claim_while_it_is_open,
)
from replay.claim_laws import a_claim_has_its_holder
from replay.finding import Breach, Law
from replay.memory import Memory, SeenAppend
from replay.pending_laws import (
    a_granted_hold_is_denied_only_by_a_discard,
    a_stack_is_left_with_its_work,
    an_action_ends_with_its_operation,
    an_action_waits_where_it_was_placed,
    an_end_has_its_answer,
)
from replay.process_laws import a_key_begins_with_its_command, an_end_has_its_cause

AppendLaw = Callable[[SeenAppend, Memory], Iterator[Breach]]


def store_begins_the_log(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """The first event, and no other, is `store.created`, in a known format; a copy names the place it goes on from."""
    for seen in append.events:
        position, event = seen.recorded.position, seen.recorded.event
        if isinstance(event, StoreCreated) != (position == 1):
            yield seen.breach(Law.STORE, "a log begins with store.created, and with it alone")
        if isinstance(event, StoreCreated) and event.format > STORE_FORMAT:
            yield seen.breach(Law.STORE, f"format {event.format} is newer than {STORE_FORMAT}")
        if isinstance(event, StoreCopied) and event.from_position != position - 1:
            yield seen.breach(Law.STORE, f"it goes on from {event.from_position}, not from {position - 1}")


def only_a_running_instance_writes(append: SeenAppend, memory: Memory) -> Iterator[Breach]:
    """An append is made by an instance that has started and has neither stopped nor been recovered (law 9)."""
    writer: str = append.envelope.instance_id
    if writer in memory.damaged:
        return
    own = [seen for seen in append.events if seen.stream_id == writer]
    is_running = memory.is_running(writer)
    if own:
        is_running = isinstance(own[0].before, RunningInstance) or isinstance(own[0].recorded.event, InstanceStarted)
    for seen in append.events:
        if not is_running:
            yield seen.breach(Law.INSTANCE, f"it was written by {writer}, which wasn't running")
        if seen in own:
            is_running = not isinstance(seen.recorded.event, InstanceStopped | InstanceRecovered | InstanceTakenOver)
            if isinstance(seen.recorded.event, InstanceRecovered | InstanceTakenOver):
                yield seen.breach(Law.INSTANCE, "it is said to have found itself dead")


def a_workspace_is_on_record(append: SeenAppend, memory: Memory) -> Iterator[Breach]:
    """A workspace's stream is named by its directory, which is on record before anything in it is to be changed."""
    for seen in append.events:
        match seen.recorded.event:
            case WorkspaceBound(machine_id=machine_id, root=root):
                if seen.stream_id != str(workspace_key(machine_id, root)):
                    yield seen.breach(Law.WORKSPACE, f"the key of {root} is {workspace_key(machine_id, root)}")
            case OperationMinted(check_only=False, plan=plan, workspace_key=key) if plan:
                if not memory.is_bound(key) and key not in memory.damaged:
                    yield seen.breach(Law.WORKSPACE, f"the directory of {key} isn't on record")
            case _:
                pass


def an_end_fits_its_beginning(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """A refusal has a fault and no result, every other end has a result; a preview is never written (law 2)."""
    for seen in append.events:
        event = seen.recorded.event
        if not isinstance(event, OperationFinished) or not isinstance(seen.before, Minted):
            continue
        minted = seen.before.minted
        is_refusal = event.status == "rejected"
        if (event.result is None) != is_refusal:
            yield seen.breach(Law.OPERATION, f"it is {event.status} {'with' if is_refusal else 'without'} a result")
        if is_refusal and event.fault is None:
            yield seen.breach(Law.OPERATION, "it is rejected without a fault")
        if event.status == "applied" and event.fault is not None:
            yield seen.breach(Law.OPERATION, "it is applied with a fault")
        if not is_refusal and (event.status == "checked") != minted.check_only:
            kind = "a preview" if minted.check_only else "a patch"
            yield seen.breach(Law.OPERATION, f"it is {event.status}, but was minted as {kind}")


def an_undo_marks_what_it_undid(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """An undo that was applied and the mark on what it undid stand in one append."""
    if not append.is_whole:
        return
    undone: dict[str, str] = {
        seen.stream_id: seen.recorded.event.by
        for seen in append.events if isinstance(seen.recorded.event, OperationReverted)
    }
    applied: dict[str, tuple[str, ...]] = {
        seen.stream_id: seen.after.minted.undone
        for seen in append.events
        if isinstance(seen.recorded.event, OperationFinished) and isinstance(seen.after, Finished)
        and seen.recorded.event.status == "applied"
    }
    for seen in append.events:
        event, stream_id = seen.recorded.event, seen.stream_id
        if isinstance(event, OperationReverted) and stream_id not in applied.get(event.by, ()):
            yield seen.breach(Law.OPERATION, f"{event.by} isn't applied in the same append as its undo")
        targets = applied.get(stream_id, ()) if isinstance(event, OperationFinished) else ()
        for target in targets:
            if undone.get(target) != stream_id:
                yield seen.breach(Law.OPERATION, f"{target}, which it undoes, isn't marked in the same append")


LAWS: tuple[AppendLaw, ...] = (
    store_begins_the_log,
    only_a_running_instance_writes,
    a_workspace_is_on_record,
    a_claim_has_its_holder,
    an_end_fits_its_beginning,
    an_undo_marks_what_it_undid,
    a_key_begins_with_its_command,
    an_end_has_its_cause,
    a_hold_ends_with_its_effect,
    a_hold_has_its_claim_while_it_is_open,
    an_action_waits_where_it_was_placed,
    an_action_ends_with_its_operation,
    an_end_has_its_answer,
    a_granted_hold_is_denied_only_by_a_discard,
    a_stack_is_left_with_its_work,
)

_CONCERNS: Mapping[AppendLaw, tuple[type[Event], ...]] = MappingProxyType({
    a_workspace_is_on_record: (WorkspaceBound, OperationMinted),
    a_claim_has_its_holder: (ClaimTaken, OperationMinted),
    an_end_fits_its_beginning: (OperationFinished,),
    an_undo_marks_what_it_undid: (OperationReverted, OperationFinished),
    a_key_begins_with_its_command: (ProcessSpawned, ProcessNotStarted),
    an_end_has_its_cause: (ProcessExited,),
    a_hold_ends_with_its_effect: (
        ApprovalConsumed, ApprovalResuming, OperationMinted, OperationFinished, ProcessSpawned, ProcessNotStarted,
    ),
    an_action_waits_where_it_was_placed: (PendingActionPushed, PendingActionPlaced),
    an_action_ends_with_its_operation: (OperationMinted, OperationFinished, PendingActionPopped),
    an_end_has_its_answer: (PendingActionPopped,),
    a_granted_hold_is_denied_only_by_a_discard: (ApprovalDenied,),
    a_stack_is_left_with_its_work: (PendingStackLeft,),
    a_hold_has_its_claim_while_it_is_open: (ApprovalCreated, ClaimReleased, *ENDS_OF_A_HOLD),
})
"""The events without which a law has nothing to say; a law that isn't named here sees every append."""


def find_breaches(append: SeenAppend, memory: Memory) -> Iterator[Breach]:
    """Yield every breach of a law in `append`."""
    for law in _laws_for(frozenset([type(seen.recorded.event) for seen in append.events])):
        yield from law(append, memory)


@cache
def _laws_for(kinds: frozenset[type[Event]]) -> tuple[AppendLaw, ...]:
    """Return the laws that concern an append of these kinds of event: most concern few."""
    return tuple(law for law in LAWS if law not in _CONCERNS or not kinds.isdisjoint(_CONCERNS[law]))
