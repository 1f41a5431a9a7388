"""What each aggregate folds to, event by event, and that it refuses every other event in every state."""

import pytest
from samples import (
    APPLIED,
    BOUND,
    CALL_REFUSED,
    CHECKED,
    CONSUMED,
    COPIED,
    CREATED,
    DENIED,
    DIGEST,
    EFFECT_BEGUN,
    END_REQUESTED,
    EVENTS,
    EXITED,
    EXPIRED,
    GRANTED,
    HELD_CREATED,
    HOLD_ID,
    HOLD_TAKEN,
    INPUT_SENT,
    KEY_TAKEN,
    MINTED,
    NOT_STARTED,
    OPERATION_ID,
    ORPHANED,
    OTHER_ID,
    PARKED,
    PLACED,
    POPPED,
    PUSHED,
    PUSHED_DURABLE,
    QUEUED,
    RECOVERED,
    REJECTED,
    RELEASED,
    REMOVED,
    RESIZED,
    RESOLVE_STARTED,
    RESUMING,
    RETURNED,
    REVERTED,
    ROLLED_BACK,
    SPAWNED,
    STACK_LEFT,
    STARTED,
    STOPPED,
    TAKEN_OVER,
    TIME_IS_UP,
    UNKNOWN,
    WORK_OPENED,
)

from codespace_es.aggregates import approval, claim, instance, operation, pending, process, steering, store, workspace
from codespace_es.aggregates.pending import place
from codespace_es.aggregates.pending.state import Resolving, Stack
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.event import Event

ENDS = (APPLIED, CHECKED, REJECTED, ROLLED_BACK, UNKNOWN)
OTHER_BINDING = BOUND.model_copy(update={"inode": 3})
CREATED_STATE = store.Created("store-1", 1)
RUNNING = instance.Running(STARTED)
ENDED = instance.Ended(STARTED)
KEY_HELD = claim.Taken("operation_key", OPERATION_ID, DIGEST)
HELD = claim.Taken("hold", HOLD_ID, DIGEST)
IS_PARKED = approval.Parked(HELD_CREATED, PARKED.fault)
IS_CONSUMED = approval.Consumed(HELD_CREATED, CONSUMED)
HELD_RESOLVE = HELD_CREATED.model_copy(update={"tool": "resolve", "action_id": PUSHED.action_id})
RESOLVE_PARKED = approval.Parked(HELD_RESOLVE, PARKED.fault)
IS_MINTED = operation.Minted(MINTED)
FINISHED = operation.Finished(MINTED, APPLIED)
LIVES = process.Running(SPAWNED)
ENDING = process.Running(SPAWNED, END_REQUESTED)
IS_OVER = process.Exited(SPAWNED, EXITED)
IS_RESOLVING = Resolving((), PUSHED, RESOLVE_STARTED)
HAS_BEGUN = Resolving((), PUSHED, RESOLVE_STARTED, has_begun=True)

FOLDS: list[tuple[Decider, object, list[tuple[Event, object]]]] = [
    (store.STORE, store.Absent(), [(CREATED, CREATED_STATE)]),
    (store.STORE, CREATED_STATE, [(REMOVED, CREATED_STATE), (COPIED, CREATED_STATE)]),
    (instance.INSTANCE, instance.Unstarted(), [(STARTED, RUNNING)]),
    (instance.INSTANCE, RUNNING, [(CALL_REFUSED, RUNNING), (STOPPED, ENDED), (RECOVERED, ENDED),
                                    (TAKEN_OVER, ENDED)]),
    (instance.INSTANCE, ENDED, []),
    (workspace.WORKSPACE, workspace.Unbound(), [(BOUND, workspace.Bound(BOUND))]),
    (workspace.WORKSPACE, workspace.Bound(OTHER_BINDING), [(BOUND, workspace.Bound(BOUND))]),
    (claim.CLAIM, claim.Free(), [(KEY_TAKEN, KEY_HELD), (HOLD_TAKEN, HELD)]),
    (claim.CLAIM, KEY_HELD, []),
    (claim.CLAIM, HELD, [(RELEASED, claim.Free())]),
    (operation.OPERATION, operation.Unminted(), [(MINTED, IS_MINTED)]),
    (operation.OPERATION, IS_MINTED, [(end, operation.Finished(MINTED, end)) for end in ENDS]),
    (operation.OPERATION, FINISHED, [(REVERTED, operation.Reverted(MINTED, APPLIED, OTHER_ID))]),
    (operation.OPERATION, operation.Reverted(MINTED, APPLIED, OTHER_ID), []),
    (approval.APPROVAL, approval.Unheld(), [(HELD_CREATED, approval.Pending(HELD_CREATED))]),
    (approval.APPROVAL, approval.Pending(HELD_CREATED), [
        (GRANTED, approval.Granted(HELD_CREATED)), (DENIED, approval.Denied(HELD_CREATED, "No.")),
        (EXPIRED, approval.Expired(HELD_CREATED)),
    ]),
    (approval.APPROVAL, approval.Granted(HELD_CREATED), [
        (QUEUED, approval.Queued(HELD_CREATED)), (EXPIRED, approval.Expired(HELD_CREATED)),
    ]),
    (approval.APPROVAL, approval.Queued(HELD_CREATED), [
        (PARKED, IS_PARKED), (RESUMING, approval.Resuming(HELD_CREATED, OPERATION_ID)), (CONSUMED, IS_CONSUMED),
    ]),
    (approval.APPROVAL, IS_PARKED, [(QUEUED, approval.Queued(HELD_CREATED))]),
    (approval.APPROVAL, approval.Granted(HELD_RESOLVE), [
        (QUEUED, approval.Queued(HELD_RESOLVE)), (EXPIRED, approval.Expired(HELD_RESOLVE)),
        (DENIED, approval.Denied(HELD_RESOLVE, "No.")),
    ]),
    (approval.APPROVAL, RESOLVE_PARKED, [
        (QUEUED, approval.Queued(HELD_RESOLVE)), (DENIED, approval.Denied(HELD_RESOLVE, "No.")),
    ]),
    (approval.APPROVAL, approval.Resuming(HELD_CREATED, OPERATION_ID), [(CONSUMED, IS_CONSUMED)]),
    (approval.APPROVAL, IS_CONSUMED, []),
    (approval.APPROVAL, approval.Denied(HELD_CREATED, "No."), []),
    (approval.APPROVAL, approval.Expired(HELD_CREATED), []),
    (process.PROCESS, process.Unspawned(), [(SPAWNED, LIVES), (NOT_STARTED, process.NotStarted(NOT_STARTED))]),
    (process.PROCESS, LIVES, [
        (INPUT_SENT, LIVES), (RESIZED, LIVES), (END_REQUESTED, ENDING),
        (TIME_IS_UP, process.Running(SPAWNED, TIME_IS_UP)), (EXITED, IS_OVER),
    ]),
    (process.PROCESS, ENDING, [
        (INPUT_SENT, ENDING), (RESIZED, ENDING), (END_REQUESTED, ENDING), (TIME_IS_UP, ENDING), (EXITED, IS_OVER),
    ]),
    (process.PROCESS, IS_OVER, []),
    (process.PROCESS, process.NotStarted(NOT_STARTED), []),
    (pending.PENDING, Stack(), [
        (PUSHED, Stack((PUSHED,))), (PUSHED_DURABLE, Stack((PUSHED_DURABLE,))), (STACK_LEFT, Stack()),
    ]),
    (pending.PENDING, Stack((PUSHED,)), [
        (PUSHED_DURABLE, Stack((PUSHED, PUSHED_DURABLE))), (RESOLVE_STARTED, IS_RESOLVING), (ORPHANED, Stack()),
    ]),
    (pending.PENDING, IS_RESOLVING, [
        (PUSHED_DURABLE, Resolving((PUSHED_DURABLE,), PUSHED, RESOLVE_STARTED)), (RETURNED, Stack((PUSHED,))),
        (POPPED, Stack()), (ORPHANED, Stack()), (EFFECT_BEGUN, HAS_BEGUN),
    ]),
    (pending.PENDING, HAS_BEGUN, [
        (PUSHED_DURABLE, Resolving((PUSHED_DURABLE,), PUSHED, RESOLVE_STARTED, has_begun=True)),
        (POPPED, Stack()), (ORPHANED, Stack()), (EFFECT_BEGUN, HAS_BEGUN),
    ]),
    (pending.PENDING, Stack((PUSHED, PUSHED_DURABLE)), []),
    (pending.PLACE, place.Unplaced(), [(PLACED, place.Placed(PLACED.stack_id))]),
    (pending.PLACE, place.Placed(PLACED.stack_id), []),
    # What may follow in a workspace with works is a table of its own: test_steering_folds.
    (steering.STEERING, steering.STEERING.initial_state, [
        (WORK_OPENED, steering.STEERING.fold([WORK_OPENED])),
    ]),
]
"""All that may follow, state by state; whatever isn't here must be refused."""

IDS = [f"{type(state).__name__}-{row}" for row, (_, state, _) in enumerate(FOLDS)]


@pytest.mark.parametrize(("decider", "state", "allowed"), FOLDS, ids=IDS)
def test_an_event_is_folded_where_it_may_follow_and_refused_everywhere_else(decider, state, allowed):
    wrong = {}
    for event in EVENTS:
        after = next((after for each, after in allowed if each is event), None)
        try:
            became = decider.evolve(state, event)
        except AssertionError as refusal:
            if after is not None or not str(refusal).startswith(f"{event.TOPIC} can't follow {type(state).__name__}"):
                wrong[event.TOPIC] = refusal
        else:
            if after is None or became != after:
                wrong[event.TOPIC] = became
    assert wrong == {}


def test_every_aggregate_begins_where_nothing_has_happened():
    assert {type(decider.initial_state).__name__ for decider, _, _ in FOLDS} == {
        "Absent", "Unstarted", "Unbound", "Free", "Unminted", "Unspawned", "Unheld", "Steering",
        "Stack", "Unplaced",
    }


def test_every_event_of_the_catalogue_is_tried():
    assert {type(event) for event in EVENTS} == set(CATALOGUE.values()), "add the new event to samples.py"
