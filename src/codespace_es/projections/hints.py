"""What every answer hints at: that people wait in the work at hand. Source: contract B1.1, `coordination`."""

from codespace_es.aggregates.steering.state import Steering
from codespace_es.vocabulary.answer import Coordination
from codespace_es.vocabulary.identifiers import WorkId


def coordination(state: Steering, named_work_id: str | None) -> Coordination | None:
    """Return the hint for a call in this workspace that named `named_work_id`, None where there is none to give.

    A named work has to be open here; without one named, it is the only open work. Anything else gives no hint, and
    never an error.
    """
    open_works = [each for each in state.works.values() if each.is_open]
    if named_work_id is not None:
        open_works = [each for each in open_works if each.work_id == WorkId(named_work_id)]
    if len(open_works) != 1:
        return None
    work = open_works[0]
    waiting = sum(
        each.phase in ("queued", "claimed") and each.delivery != "next_work" for each in state.attached(work.work_id)
    )
    return Coordination(work_id=work.work_id, pending_user_items=waiting, queue_revision=work.queue_revision)
