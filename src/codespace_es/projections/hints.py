"""What every answer hints at: that people wait in the work at hand, and that previews wait to be resolved.

Source: contract B1.1, `coordination`; the pending-actions paper, *bias*, 2.
"""

from codespace_es.aggregates.pending.state import PendingState
from codespace_es.aggregates.steering.state import Steering
from codespace_es.projections.resolve_result import head_of
from codespace_es.vocabulary.answer import Coordination, PendingHint
from codespace_es.vocabulary.identifiers import WorkId
from codespace_es.vocabulary.workspace import Workspace


def coordination(state: Steering, named_work_id: str | None) -> Coordination | None:
    """Return the hint for a call in this workspace that named `named_work_id`, None where there is none to give.

    A named work has to be open here; without one named, it is the only open work. Anything else gives no hint, and
    never an error.
    """
    if named_work_id is not None:
        work = state.works.get(WorkId(named_work_id))
    else:
        work = state.works[next(iter(state.open_works))] if len(state.open_works) == 1 else None
    if work is None or not work.is_open:
        return None
    pending = state.queue(work.work_id).pending
    return Coordination(work_id=work.work_id, pending_user_items=pending, queue_revision=work.queue_revision)


def pending(state: PendingState, workspace: Workspace, *, is_told_when_empty: bool) -> PendingHint | None:
    """Return the hint of a stack; None for an empty one, unless somebody has just emptied it."""
    unresolved = state.unresolved
    if not unresolved and not is_told_when_empty:
        return None
    return PendingHint(count=len(unresolved), head=head_of(unresolved), bias=workspace.pending_bias)
