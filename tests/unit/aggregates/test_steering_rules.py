"""Works and intents: what is claimed when, what ends a work, what rises with what, and what a fold refuses."""

import pytest
from samples import (
    BODY,
    CANCELLED,
    CLAIMED,
    COMPLETED,
    DRAFTED,
    EDITED,
    INTENT_ID,
    INTENT_QUEUED,
    INTENT_RELEASED,
    REDELIVERED,
    REORDERED,
    STOP_REQUESTED,
    WORK_CLOSED,
    WORK_CLOSING,
    WORK_ID,
    WORK_OPENED,
)

from codespace_es.aggregates.steering import STEERING
from codespace_es.aggregates.steering import rules as command
from codespace_es.aggregates.steering.events import (
    Delivery,
    IntentClaimed,
    IntentDrafted,
    IntentQueued,
    IntentRedelivered,
    IntentsReordered,
)
from codespace_es.aggregates.steering.state import Steering
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import IntentId, WorkId

OTHER_WORK = WorkId("work-2")
NOBODY = IntentId("fb-nobody")


def after(*commands: command.SteeringCommand, state: Steering = STEERING.initial_state) -> Steering:
    """Return the state when each command was decided and folded."""
    for each in commands:
        for event in STEERING.decide(state, each):
            state = STEERING.evolve(state, event)
    return state


def draft(name: str, delivery: Delivery = "next_checkpoint", *, key: str | None = None) -> command.DraftIntent:
    return command.DraftIntent(IntentDrafted(
        intent_id=IntentId(name), work_id=WORK_ID, kind="follow_up", delivery=delivery, body=BODY, client_key=key
    ))


def queued(name: str, delivery: Delivery = "next_checkpoint") -> tuple[command.SteeringCommand, ...]:
    return draft(name, delivery), command.QueueIntent(IntentId(name), 1)


def code_of(state: Steering, refused: command.SteeringCommand) -> str:
    """Return the code by which a command is refused."""
    with pytest.raises(CodespaceError) as refusal:
        STEERING.decide(state, refused)
    return refusal.value.code


OPEN = command.OpenWork(WORK_OPENED)
REOPEN = command.OpenWork(WORK_OPENED.model_copy(update={"work_id": OTHER_WORK}))
FINISH = command.FinishWork(WORK_ID)
CLAIM = command.ClaimNext(WORK_ID)
AGAIN = command.ClaimNext(WORK_ID, is_redelivery=True)
A, B = IntentId("fb-a"), IntentId("fb-b")


def claim_all(state: Steering) -> tuple[list[str], Steering]:
    """Claim until nothing is given; return what was, in order."""
    given: list[str] = []
    while events := STEERING.decide(state, CLAIM):
        assert isinstance(events[0], IntentClaimed)
        given.append(events[0].intent_id)
        state = STEERING.evolve(state, events[0])
    return given, state


# Claiming


def test_an_active_work_gives_checkpoint_intents_and_a_closing_one_all_by_position():
    state = after(OPEN, *queued("a", "after_current_work"), *queued("b"), *queued("c", "next_work"), draft("d"))
    given, _ = claim_all(state)
    assert given == ["b"]
    without_b = after(command.CancelIntent(IntentId("b")), FINISH, state=state)
    assert without_b.works[WORK_ID].phase == "closing"
    given, _ = claim_all(after(*queued("e"), state=without_b))
    assert given == ["a", "e"]


def test_a_released_intent_comes_back_in_its_place():
    state = after(OPEN, *queued("a"), CLAIM, *queued("b"), *queued("c"), command.ReleaseIntent(IntentId("a")))
    assert claim_all(state)[0] == ["a", "b", "c"]


def test_what_is_redelivered_is_what_was_claimed_first_whatever_its_place():
    state = after(OPEN, *queued("a"), *queued("b"), *queued("c"))
    state = after(command.ReorderIntents(WORK_ID, (IntentId("c"), IntentId("a"), IntentId("b"))), CLAIM, state=state)
    state = after(command.ReorderIntents(WORK_ID, (IntentId("b"), IntentId("a"))), CLAIM, state=state)
    for _ in range(2):
        assert STEERING.decide(state, AGAIN) == [IntentRedelivered(intent_id=IntentId("c"))]
    state = after(command.CompleteIntent(WORK_ID, IntentId("c"), "done"), state=state)
    assert STEERING.decide(state, AGAIN) == [IntentRedelivered(intent_id=IntentId("b"))]


def test_where_nothing_is_claimed_nothing_is_redelivered():
    assert STEERING.decide(after(OPEN, *queued("a")), AGAIN) == []


# Finishing


def test_claimed_and_checkpoint_intents_hold_a_work_up_and_are_counted_with_the_rest():
    state = after(OPEN, *queued("a"), *queued("b"), *queued("c", "after_current_work"), CLAIM, FINISH)
    assert state.works[WORK_ID].phase == "active"
    assert command.count_pending(state, WORK_ID) == 3


def test_a_work_closes_when_only_drafts_and_next_work_are_left_and_they_are_adopted_in_order():
    state = after(OPEN, draft("a"), *queued("b", "next_work"), FINISH)
    assert not state.works[WORK_ID].is_open
    assert [each.intent_id for each in state.attached(None)] == ["a", "b"]
    late = IntentDrafted(intent_id=IntentId("c"), work_id=WORK_ID, kind="note", delivery="next_checkpoint", body=BODY)
    state = after(command.DraftIntent(late), state=state)
    assert state.intents[IntentId("c")].delivery == "next_work"
    state = after(REOPEN, state=state)
    told = [(each.intent_id, each.position, each.revision, each.delivery) for each in state.attached(OTHER_WORK)]
    assert told == [
        ("a", 1, 2, "next_checkpoint"), ("b", 2, 3, "after_current_work"), ("c", 3, 2, "after_current_work"),
    ]
    assert state.works[OTHER_WORK].queue_revision == 1


def test_what_a_work_leaves_goes_behind_what_waits_already():
    second = command.DraftIntent(DRAFTED.model_copy(update={"intent_id": B, "work_id": OTHER_WORK}))
    first = command.DraftIntent(DRAFTED.model_copy(update={"intent_id": A}))
    state = after(OPEN, REOPEN, second, first, FINISH, command.FinishWork(OTHER_WORK))
    assert [(each.intent_id, each.position) for each in state.attached(None)] == [(A, 1), (B, 2)]


@pytest.mark.parametrize("refused", [FINISH, CLAIM, AGAIN])
def test_a_closed_work_is_neither_finished_nor_claimed_from(refused):
    assert code_of(after(OPEN, FINISH), refused) == "WORK_CLOSED"
    assert code_of(after(), refused) == "WORK_NOT_FOUND"


# Refusals, in their order


def test_an_edit_is_refused_for_the_first_reason_that_holds():
    stale = command.EditIntent(INTENT_ID, 9, BODY, None)
    claimed = after(OPEN, command.DraftIntent(DRAFTED), command.QueueIntent(INTENT_ID, 1), CLAIM)
    assert code_of(after(OPEN), stale) == "INTENT_NOT_FOUND"
    assert code_of(claimed, stale) == "INTENT_ALREADY_CLAIMED"
    assert code_of(after(command.CompleteIntent(WORK_ID, INTENT_ID, "done"), state=claimed), stale) == (
        "INTENT_NOT_EDITABLE"
    )
    assert code_of(after(OPEN, command.DraftIntent(DRAFTED)), stale) == "INTENT_REVISION_CONFLICT"


def test_only_a_draft_is_queued_and_only_at_its_revision():
    state = after(OPEN, command.DraftIntent(DRAFTED))
    assert code_of(state, command.QueueIntent(INTENT_ID, 2)) == "INTENT_REVISION_CONFLICT"
    state = after(command.QueueIntent(INTENT_ID, 1), state=state)
    assert code_of(state, command.QueueIntent(INTENT_ID, 9)) == "INTENT_NOT_EDITABLE"
    assert code_of(after(CLAIM, state=state), command.QueueIntent(INTENT_ID, 9)) == "INTENT_NOT_EDITABLE"


def test_a_claimed_intent_is_completed_or_released_and_nothing_else():
    state = after(OPEN, *queued("a"))
    assert code_of(state, command.CompleteIntent(WORK_ID, IntentId("a"), "done")) == "INTENT_NOT_EDITABLE"
    assert code_of(state, command.ReleaseIntent(IntentId("a"))) == "INTENT_NOT_EDITABLE"
    state = after(CLAIM, state=state)
    assert code_of(state, command.CancelIntent(IntentId("a"))) == "INTENT_ALREADY_CLAIMED"
    state = after(REOPEN, state=state)
    assert code_of(state, command.CompleteIntent(OTHER_WORK, IntentId("a"), "done")) == "INTENT_NOT_FOUND"


@pytest.mark.parametrize("order", [("a",), ("a", "a"), ("a", "b", "b"), ("a", "b", "c"), ("a", "b", "d"), ()])
def test_an_order_names_each_queued_intent_once(order):
    state = after(OPEN, *queued("a"), *queued("b"), draft("c"))
    wanted = command.ReorderIntents(WORK_ID, tuple(IntentId(each) for each in order))
    assert code_of(state, wanted) == "INVALID_ARGUMENT"


def test_an_empty_queue_has_one_order_and_nothing_to_record():
    assert STEERING.decide(after(OPEN, draft("a")), command.ReorderIntents(WORK_ID, ())) == []


# Revisions


def test_edit_and_queue_raise_the_revision_and_every_change_raises_that_of_the_queue():
    state = after(OPEN, command.DraftIntent(DRAFTED))
    steps: list[tuple[command.SteeringCommand, int, int]] = [
        (command.EditIntent(INTENT_ID, 1, BODY, None), 2, 3),
        (command.QueueIntent(INTENT_ID, 2), 3, 4),
        (command.ReorderIntents(WORK_ID, (INTENT_ID,)), 3, 5),
        (CLAIM, 3, 6),
        (AGAIN, 3, 6),
        (command.ReleaseIntent(INTENT_ID), 3, 7),
        (CLAIM, 3, 8),
        (command.CompleteIntent(WORK_ID, INTENT_ID, "blocked"), 3, 9),
        (command.StopWork(STOP_REQUESTED), 3, 10),
    ]
    for step, revision, queue_revision in steps:
        state = after(step, state=state)
        assert (state.intents[INTENT_ID].revision, state.works[WORK_ID].queue_revision) == (revision, queue_revision)


def test_a_repeat_of_a_key_makes_no_second_intent():
    state = after(OPEN, draft("a", key="k"))
    assert STEERING.decide(state, draft("b", key="k")) == []
    assert len(STEERING.decide(state, draft("b", key="l"))) == 1
    assert len(STEERING.decide(state, draft("b"))) == 1


# Stopping


def test_a_stop_is_claimed_already_and_waits_unattached_where_the_work_is_closed():
    stopped = after(OPEN, command.StopWork(STOP_REQUESTED)).intents[STOP_REQUESTED.intent_id]
    assert (stopped.phase, stopped.kind, stopped.work_id) == ("claimed", "stop_notice", WORK_ID)
    state = after(OPEN, FINISH, command.StopWork(STOP_REQUESTED))
    late = state.intents[STOP_REQUESTED.intent_id]
    assert (late.phase, late.work_id, late.delivery) == ("queued", None, "next_checkpoint")
    assert after(REOPEN, state=state).claimable(OTHER_WORK)[0].intent_id == late.intent_id


# Folding

DRAFT = [WORK_OPENED, DRAFTED]
QUEUED = [*DRAFT, INTENT_QUEUED]
HELD = [*QUEUED, CLAIMED]
DONE = [*HELD, COMPLETED]
CLOSED = [*DRAFT, WORK_CLOSED.model_copy(update={"detached": (INTENT_ID,)})]
ALL = (
    WORK_OPENED, WORK_CLOSING, WORK_CLOSED, STOP_REQUESTED, DRAFTED, EDITED, INTENT_QUEUED, REORDERED, CLAIMED,
    REDELIVERED, INTENT_RELEASED, COMPLETED, CANCELLED,
)
OF_AN_OPEN_WORK = (WORK_CLOSING, WORK_CLOSED, STOP_REQUESTED)
FOLLOW: list[tuple[list[Event], tuple[Event, ...]]] = [
    ([WORK_OPENED], (*OF_AN_OPEN_WORK, DRAFTED)),
    (DRAFT, (*OF_AN_OPEN_WORK, EDITED, INTENT_QUEUED, CANCELLED)),
    (QUEUED, (*OF_AN_OPEN_WORK, EDITED, REORDERED, CLAIMED, CANCELLED)),
    (HELD, (*OF_AN_OPEN_WORK, REDELIVERED, INTENT_RELEASED, COMPLETED)),
    ([*HELD, INTENT_RELEASED], (*OF_AN_OPEN_WORK, EDITED, REORDERED, CLAIMED, CANCELLED)),
    (DONE, OF_AN_OPEN_WORK),
    ([*DRAFT, CANCELLED], OF_AN_OPEN_WORK),
    (CLOSED, (EDITED, INTENT_QUEUED, CANCELLED)),
    ([*CLOSED, INTENT_QUEUED], (EDITED, CANCELLED)),
]


@pytest.mark.parametrize("event", ALL, ids=lambda event: event.TOPIC)
@pytest.mark.parametrize("row", range(len(FOLLOW)))
def test_a_fold_refuses_what_no_rule_would_have_allowed(row, event):
    given, allowed = FOLLOW[row]
    state = STEERING.fold(given)
    if event in allowed:
        STEERING.evolve(state, event)
    else:
        with pytest.raises(AssertionError, match=rf"{event.TOPIC} can't follow Steering"):
            STEERING.evolve(state, event)


@pytest.mark.parametrize("event", [
    WORK_OPENED.model_copy(update={"work_id": OTHER_WORK, "adopted": (INTENT_ID,)}),
    WORK_CLOSED.model_copy(update={"detached": (NOBODY,)}),
    IntentsReordered(work_id=WORK_ID, intent_ids=(NOBODY,)),
    IntentQueued(intent_id=NOBODY),
])
def test_a_fold_refuses_intents_that_are_not_there_or_belong_elsewhere(event):
    with pytest.raises(AssertionError, match="can't follow"):
        STEERING.evolve(STEERING.fold(QUEUED), event)
