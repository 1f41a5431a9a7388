"""Back from events of steering and of pending actions to the commands that led to them.

These say less than their commands did: whose work an instruction was claimed for, or at which revision it was edited,
follows from the state before.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from codespace_es.aggregates.pending import events as pending
from codespace_es.aggregates.pending import rules as stacks
from codespace_es.aggregates.pending.place import PlaceAction
from codespace_es.aggregates.pending.state import Resolving
from codespace_es.aggregates.steering import events as steering
from codespace_es.aggregates.steering import rules as works
from codespace_es.aggregates.steering.state import Intent, Steering
from codespace_es.vocabulary.event import Event


def _intent(before: Steering, event: Any) -> Intent:
    """Return the instruction before its event. Raises AssertionError where there is none: the event can't follow."""
    intent = before.intents.get(event.intent_id)
    assert intent is not None, f"{event.intent_id} isn't there"
    return intent


def _work_of(before: Steering, event: Any) -> Any:
    work_id = _intent(before, event).work_id
    assert work_id is not None, f"{event.intent_id} belongs to no work"
    return work_id


def _edit(event: Any, before: Any) -> object:
    return works.EditIntent(event.intent_id, _intent(before, event).revision, event.body, event.delivery)


def _pop(event: Any, before: Any) -> object:
    is_resolved = isinstance(before, Resolving) and before.action.action_id == event.action_id
    if event.outcome == "orphaned" and not is_resolved:
        return stacks.OrphanActions((event.action_id,))
    return stacks.PopAction(event.outcome, event.effect_id, event.result, event.fault)


COMMANDS_BY_STATE: Mapping[type[Event], Callable[[Any, Any], object]] = MappingProxyType({
    steering.WorkOpened: lambda event, _: works.OpenWork(event),
    steering.WorkClosing: lambda event, _: works.FinishWork(event.work_id),
    steering.WorkClosed: lambda event, _: works.FinishWork(event.work_id),
    steering.StopRequested: lambda event, _: works.StopWork(event),
    steering.IntentDrafted: lambda event, _: works.DraftIntent(event),
    steering.IntentEdited: _edit,
    steering.IntentQueued: lambda event, before: works.QueueIntent(
        event.intent_id, _intent(before, event).revision
    ),
    steering.IntentsReordered: lambda event, _: works.ReorderIntents(event.work_id, event.intent_ids),
    steering.IntentClaimed: lambda event, before: works.ClaimNext(_work_of(before, event)),
    steering.IntentRedelivered: lambda event, before: works.ClaimNext(_work_of(before, event), is_redelivery=True),
    steering.IntentReleased: lambda event, _: works.ReleaseIntent(event.intent_id),
    steering.IntentCompleted: lambda event, before: works.CompleteIntent(
        _work_of(before, event), event.intent_id, event.outcome
    ),
    steering.IntentCancelled: lambda event, _: works.CancelIntent(event.intent_id),
    pending.PendingActionPlaced: lambda event, _: PlaceAction(event.stack_id),
    pending.PendingActionPushed: lambda event, _: stacks.PushAction(event),
    pending.PendingResolveStarted: lambda event, _: stacks.StartResolve(event),
    pending.PendingEffectBegun: lambda event, _: stacks.BeginEffect(event.action_id),
    pending.PendingActionReturned: lambda event, _: stacks.ReturnAction(event.fault),
    pending.PendingActionPopped: _pop,
    pending.PendingStackLeft: lambda event, _: stacks.LeaveStack(event),
})
"""Event -> command, from the event and the state of its stream before it."""
