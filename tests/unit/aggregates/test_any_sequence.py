"""Whatever commands come in whatever order: what was decided always folds, and the open index says what is open."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import (
    ACTION_ID,
    APPLIED,
    BODY,
    BOUND,
    CALL_REFUSED,
    CHECKED,
    CONSUMED,
    CREATED_AT,
    DIGEST,
    DRAFTED,
    END_REQUESTED,
    EVENTS,
    EXITED,
    EXPIRES_AT,
    HELD_SHORTLY,
    HOLD_ID,
    INPUT_SENT,
    MINTED,
    NOT_STARTED,
    OPERATION_ID,
    OTHER_ID,
    PARKED,
    PUSHED,
    PUSHED_DURABLE,
    RECOVERED,
    REJECTED,
    REMOVED,
    RESIZED,
    RESOLVE_STARTED,
    RETURNED,
    ROLLED_BACK,
    SPAWNED,
    STARTED,
    STOP_REQUESTED,
    STOPPED,
    TAKEN_OVER,
    TIME_IS_UP,
    UNKNOWN,
    WORK_OPENED,
)

from codespace_es.aggregates import approval, claim, instance, operation, pending, process, steering, store, workspace
from codespace_es.aggregates.pending import rules as pending_rules
from codespace_es.aggregates.pending.state import Resolving, Stack
from codespace_es.aggregates.steering import rules
from codespace_es.aggregates.steering.state import Steering
from codespace_es.open_index import open_change
from codespace_es.ports.log import OpenChange
from codespace_es.vocabulary.decider import Decider
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.identifiers import ApprovalId, IntentId, StreamId, WorkId

ENDS = [APPLIED, CHECKED, REJECTED, ROLLED_BACK, UNKNOWN]
MOMENTS = [CREATED_AT, EXPIRES_AT]
HOLDERS = [HOLD_ID, ApprovalId("appr-2")]
WORKS = [WorkId("work-1"), WorkId("work-2")]
INTENTS = [IntentId("fb-1"), IntentId("fb-2"), IntentId("fb-3")]
STEERING_COMMANDS = [
    *[rules.DraftIntent(DRAFTED.model_copy(update={"intent_id": intent, "work_id": work, "delivery": delivery}))
      for intent, work, delivery in zip(
          INTENTS, [*WORKS, None], ["next_checkpoint", "after_current_work", "next_work"], strict=True)],
    *[rules.EditIntent(intent, 1, BODY, None) for intent in INTENTS],
    *[rules.QueueIntent(intent, revision) for intent in INTENTS for revision in (1, 2)],
    *[kind(intent) for kind in (rules.CancelIntent, rules.ReleaseIntent) for intent in INTENTS],
    *[rules.CompleteIntent(work, intent, "done") for work in WORKS for intent in INTENTS],
    *[rules.ReorderIntents(work, (intent,)) for work in WORKS for intent in INTENTS],
    *[rules.ClaimNext(work, again) for work in WORKS for again in (False, True)],
    *[rules.FinishWork(work) for work in WORKS],
    *[rules.StopWork(STOP_REQUESTED.model_copy(update={"work_id": work})) for work in WORKS],
    *[rules.OpenWork(WORK_OPENED.model_copy(update={"work_id": work})) for work in WORKS],
]
ENDINGS = [
    pending_rules.ReturnAction(RETURNED.fault),
    *[pending_rules.PopAction(outcome) for outcome in ("applied", "discarded", "failed", "orphaned")],
]
STARTS = [
    RESOLVE_STARTED.model_copy(update={"action_id": each.action_id, "action": action})
    for each in (PUSHED, PUSHED_DURABLE) for action in ("apply", "discard")
]
PENDING_COMMANDS = [
    pending_rules.PushAction(PUSHED), pending_rules.PushAction(PUSHED_DURABLE), *ENDINGS,
    *[pending_rules.StartResolve(started) for started in STARTS],
    *[pending_rules.ResolveAtOnce(started, ending) for started in STARTS for ending in ENDINGS],
    pending_rules.BeginEffect(ACTION_ID), pending_rules.OrphanActions((PUSHED_DURABLE.action_id, ACTION_ID)),
]

COMMANDS: dict[str, tuple[Decider, list[Any]]] = {
    "store": (store.STORE, [store.CreateStore("store-1", "codespace-es/1"), store.RemoveBodies(REMOVED)]),
    "instance": (instance.INSTANCE, [
        instance.StartInstance(STARTED), instance.StopInstance(STOPPED), instance.RecordRefusal(CALL_REFUSED),
        instance.RecoverInstance(RECOVERED),
        instance.TakeOverInstance(TAKEN_OVER),
    ]),
    "workspace": (workspace.WORKSPACE, [
        workspace.BindWorkspace(BOUND.model_copy(update={"inode": inode})) for inode in (1, 2)
    ]),
    "claim": (claim.CLAIM, [
        claim.TakeClaim("operation_key", OPERATION_ID, DIGEST),
        *[claim.TakeClaim("hold", holder, DIGEST) for holder in HOLDERS],
        *[claim.ReleaseClaim(holder) for holder in HOLDERS],
    ]),
    "operation": (operation.OPERATION, [
        operation.MintOperation(MINTED), operation.MarkReverted(OTHER_ID),
        *[operation.FinishOperation(end) for end in ENDS],
        *[operation.MintFinishedOperation(MINTED, end) for end in ENDS],
    ]),
    "approval": (approval.APPROVAL, [
        approval.CreateApproval(HELD_SHORTLY),
        approval.CreateApproval(HELD_SHORTLY.model_copy(update={"tool": "resolve", "action_id": ACTION_ID})),
        approval.WithdrawApproval("Discarded."),
        *[kind(None, now) for kind in (approval.GrantApproval, approval.DenyApproval) for now in MOMENTS],
        *[kind(now) for kind in (approval.ExpireApproval, approval.QueueApproval) for now in MOMENTS],
        approval.ParkApproval(PARKED.fault), approval.BeginEffect(OPERATION_ID), approval.ConsumeApproval(CONSUMED),
    ]),
    "process": (process.PROCESS, [
        process.RecordSpawn(SPAWNED), process.RecordNoStart(NOT_STARTED), process.RecordInput(INPUT_SENT),
        process.RecordResize(RESIZED), process.RequestEnd(END_REQUESTED), process.RequestEnd(TIME_IS_UP),
        process.RecordExit(EXITED),
    ]),
    "pending": (pending.PENDING, PENDING_COMMANDS),
    "place": (pending.PLACE, [pending.place.PlaceAction(StreamId("pend-1"))]),
    "steering": (steering.STEERING, STEERING_COMMANDS),
}
OPEN_STATES = (
    operation.Minted, instance.Running, process.Running, approval.Pending, approval.Granted, approval.Queued,
    approval.Parked, approval.Resuming,
)


def is_open(state: object) -> bool:
    """Return whether a stream belongs into the open index: one with works for good, a stack while something waits."""
    if isinstance(state, Steering):
        return bool(state.works)
    if isinstance(state, Stack | Resolving):
        return bool(state.unresolved)
    return isinstance(state, OPEN_STATES)


def run(decider: Decider, commands: list[Any]) -> list[Event]:
    """Return what a stream holds after `commands`, of which each refused one leaves nothing."""
    events: list[Event] = []
    for command in commands:
        state = decider.fold(events)
        try:
            events += decider.decide(state, command)
        except (CodespaceError, AssertionError):
            continue
    return events


@pytest.mark.parametrize("kind", COMMANDS)
@given(choices=st.data())
def test_what_was_decided_can_always_be_folded(kind, choices):
    decider, commands = COMMANDS[kind]
    events = run(decider, choices.draw(st.lists(st.sampled_from(commands), max_size=12)))
    decider.fold(events)


@pytest.mark.parametrize("kind", COMMANDS)
@given(choices=st.data())
def test_a_stream_is_in_the_open_index_exactly_while_its_state_is_open(kind, choices):
    decider, commands = COMMANDS[kind]
    events = run(decider, choices.draw(st.lists(st.sampled_from(commands), max_size=12)))
    rows: set[str] = set()
    for count, event in enumerate(events, start=1):
        change = open_change(StreamId("stream"), event) or OpenChange()
        if change.closes:
            assert rows, f"{event.TOPIC} closes what isn't open"
            rows.clear()
        for row_kind, _ in change.opens:
            is_again = row_kind in rows and row_kind not in ("steering", "pending")
            assert not is_again, f"{event.TOPIC} opens what is open already"
            rows.add(row_kind)
        assert bool(rows) == is_open(decider.fold(events[:count]))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.TOPIC)
def test_what_an_event_opens_is_filed_under_its_own_workspace(event):
    change = open_change(StreamId("stream"), event)
    if change is not None:
        for _, workspace_key in change.opens:
            told_by = getattr(event, "request", event) if event.TOPIC == "process.spawned.v1" else event
            assert workspace_key == getattr(told_by, "workspace_key", None)
