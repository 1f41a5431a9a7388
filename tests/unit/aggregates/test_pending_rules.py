"""What may be done with a stack of pending actions, given what has happened, when a command comes, then this."""

import pytest
from samples import ACTION_ID, EFFECT_BEGUN, OPERATION_ID, PUSHED, PUSHED_DURABLE, RESOLVE_STARTED, RETURNED, STACK_LEFT

from codespace_es.aggregates.pending import PENDING, PLACE
from codespace_es.aggregates.pending.events import (
    PendingActionPlaced,
    PendingActionPopped,
    PendingActionReturned,
)
from codespace_es.aggregates.pending.place import PlaceAction
from codespace_es.aggregates.pending.rules import (
    NOTHING_PENDING,
    BeginEffect,
    LeaveStack,
    OrphanActions,
    PopAction,
    PushAction,
    ResolveAtOnce,
    ReturnAction,
    StartResolve,
    require_top,
)
from codespace_es.aggregates.pending.state import Stack
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import ActionId, StreamId

DISCARD = RESOLVE_STARTED.model_copy(update={"action": "discard", "reason": "No need.", "effect_id": None})
START_DURABLE = RESOLVE_STARTED.model_copy(update={"action_id": PUSHED_DURABLE.action_id})


def after(*events):
    return PENDING.fold(events)


def popped(outcome, *, of=ACTION_ID, remaining=0, **more):
    return PendingActionPopped(action_id=of, outcome=outcome, remaining=remaining, **more)


def refused(state, command):
    with pytest.raises(CodespaceError) as caught:
        PENDING.decide(state, command)
    return caught.value


def test_a_push_is_the_event_that_it_brings():
    assert PENDING.decide(after(), PushAction(PUSHED)) == [PUSHED]


def test_the_newest_is_resolved_first():
    state = after(PUSHED, PUSHED_DURABLE)
    assert PENDING.decide(state, StartResolve(START_DURABLE)) == [START_DURABLE]
    error = refused(state, StartResolve(RESOLVE_STARTED))
    assert error.code is ErrorCode.PENDING_ACTION_MISMATCH
    assert error.detail["pending"] == [PUSHED_DURABLE.action_id, ACTION_ID]


def test_nothing_pending_comes_before_any_mismatch_and_in_these_words():
    for named in (None, "act-9"):
        with pytest.raises(CodespaceError, match="No pending action") as caught:
            require_top(after(), named)
        assert caught.value.code is ErrorCode.NO_PENDING_ACTION
        assert caught.value.message == NOTHING_PENDING


def test_what_is_being_resolved_is_nobody_elses():
    state = after(PUSHED, RESOLVE_STARTED)
    assert refused(state, StartResolve(RESOLVE_STARTED)).code is ErrorCode.WORKSPACE_BUSY


def test_an_action_pushed_during_an_apply_is_the_new_top_once_that_is_over():
    state = after(PUSHED, RESOLVE_STARTED, PUSHED_DURABLE)
    done = PENDING.decide(state, PopAction("applied", OPERATION_ID))
    assert done == [popped("applied", remaining=1, effect_id=OPERATION_ID)]
    assert require_top(PENDING.evolve(state, done[0]), None) == PUSHED_DURABLE


def test_an_apply_that_raises_puts_its_action_back_above_what_it_has_pushed():
    state = after(PUSHED, RESOLVE_STARTED, PUSHED_DURABLE)
    back = PENDING.decide(state, ReturnAction(RETURNED.fault))
    assert back == [PendingActionReturned(action_id=ACTION_ID, fault=RETURNED.fault)]
    assert PENDING.evolve(state, back[0]) == Stack((PUSHED_DURABLE, PUSHED))


def test_what_has_begun_never_returns():
    state = after(PUSHED, RESOLVE_STARTED)
    assert PENDING.decide(state, BeginEffect(ACTION_ID)) == [EFFECT_BEGUN]
    begun = PENDING.evolve(state, EFFECT_BEGUN)
    assert PENDING.decide(begun, BeginEffect(ACTION_ID)) == []
    with pytest.raises(AssertionError):
        PENDING.decide(begun, ReturnAction(RETURNED.fault))
    assert PENDING.decide(begun, PopAction("failed", fault=RETURNED.fault)) == [popped("failed", fault=RETURNED.fault)]


def test_a_callback_whose_resolve_is_over_may_begin_nothing():
    for state in (after(PUSHED), after(), after(PUSHED_DURABLE, START_DURABLE)):
        assert refused(state, BeginEffect(ACTION_ID)).code is ErrorCode.PENDING_ACTION_MISMATCH


def test_a_discard_that_runs_nothing_begins_and_ends_at_once_with_its_reason():
    assert PENDING.decide(after(PUSHED_DURABLE, PUSHED), ResolveAtOnce(DISCARD, PopAction("discarded"))) == [
        DISCARD, popped("discarded", remaining=1, reason="No need."),
    ]


def test_closures_that_wait_are_orphaned_and_what_is_durable_or_being_resolved_never():
    other = PUSHED.model_copy(update={"action_id": ActionId("act-3")})
    command = OrphanActions((ACTION_ID, PUSHED_DURABLE.action_id, other.action_id, ActionId("act-9")))
    state = after(PUSHED, PUSHED_DURABLE, other)
    events = PENDING.decide(state, command)
    assert events == [popped("orphaned", remaining=2), popped("orphaned", of=other.action_id, remaining=1)]
    assert after(PUSHED, PUSHED_DURABLE, other, *events) == Stack((PUSHED_DURABLE,))
    assert PENDING.decide(after(other, PUSHED, RESOLVE_STARTED), command) == [
        popped("orphaned", of=other.action_id, remaining=1),
    ]


def test_a_stack_has_a_bound():
    many = [PUSHED.model_copy(update={"action_id": ActionId(f"act-{number}")})
            for number in range(limits.PENDING_ACTIONS_MAX)]
    last = PUSHED.model_copy(update={"action_id": ActionId("act-last")})
    assert refused(after(*many), PushAction(last)).code is ErrorCode.RESOURCE_QUEUE_FULL
    assert PENDING.decide(after(*many[:-1]), PushAction(last)) == [last]


def test_a_count_that_is_not_the_folds_is_refused():
    with pytest.raises(AssertionError):
        after(PUSHED, RESOLVE_STARTED, popped("applied", remaining=1))


def test_a_stack_is_left_while_nothing_waits_on_it():
    assert PENDING.decide(Stack(), LeaveStack(STACK_LEFT)) == [STACK_LEFT]
    for waiting in (after(PUSHED), after(PUSHED, RESOLVE_STARTED)):
        with pytest.raises(AssertionError):
            PENDING.decide(waiting, LeaveStack(STACK_LEFT))


def test_an_action_is_placed_once():
    assert PLACE.decide(PLACE.initial_state, PlaceAction(StreamId("pend-1"))) == [
        PendingActionPlaced(stack_id=StreamId("pend-1"))
    ]
    with pytest.raises(AssertionError):
        PLACE.decide(PLACE.fold([PendingActionPlaced(stack_id=StreamId("pend-1"))]), PlaceAction(StreamId("pend-2")))
