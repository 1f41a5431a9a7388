"""What steering costs doesn't grow with what is over; counted in calls of functions, and the shortcuts checked."""

import sys
from collections.abc import Callable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from samples import BODY, WORK_ID, WORK_OPENED

from codespace_es.aggregates.steering import STEERING
from codespace_es.aggregates.steering import rules as command
from codespace_es.aggregates.steering.events import IntentDrafted
from codespace_es.aggregates.steering.state import Steering
from codespace_es.projections.hints import coordination
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.identifiers import IntentId, WorkId

LOG_OF_THE_LENGTH = 1.5
"""A map's tree may have become a level deeper."""


def draft(name: str, work_id: WorkId = WORK_ID) -> command.DraftIntent:
    return command.DraftIntent(IntentDrafted(
        intent_id=IntentId(name), work_id=work_id, kind="follow_up", delivery="next_checkpoint", body=BODY,
        client_key=f"key-{name}",
    ))


def after(state: Steering, *commands: command.SteeringCommand) -> Steering:
    for each in commands:
        for event in STEERING.decide(state, each):
            state = STEERING.evolve(state, event)
    return state


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions were called by `work`."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def one_more(state: Steering, name: str) -> Steering:
    """Have one intent written, queued, claimed and completed, with the hint that every call gives."""
    given = after(state, draft(name), command.QueueIntent(IntentId(name), 1))
    hint = coordination(given, None)
    assert hint is not None
    assert hint.pending_user_items == 1
    done = command.CompleteIntent(WORK_ID, IntentId(name), "done")
    return after(given, command.ClaimNext(WORK_ID), done)


def test_an_intent_costs_the_same_after_many_that_are_over() -> None:
    state = after(STEERING.initial_state, command.OpenWork(WORK_OPENED))
    taken = []
    for number in range(400):
        taken.append(calls_of(lambda: one_more(state, f"fb-{number}")))  # noqa: B023 - called at once
        state = one_more(state, f"fb-{number}")
    assert sum(taken[-20:]) <= LOG_OF_THE_LENGTH * sum(taken[20:40])
    assert calls_of(lambda: STEERING.decide(state, command.FinishWork(WORK_ID))) <= taken[20]


def test_drafts_that_wait_cost_the_next_one_nothing() -> None:
    state = after(STEERING.initial_state, command.OpenWork(WORK_OPENED))
    taken = []
    for number in range(400):
        more = draft(f"fb-{number}")
        taken.append(calls_of(lambda: after(state, more)))  # noqa: B023 - called at once
        state = after(state, more)
    assert sum(taken[-20:]) <= LOG_OF_THE_LENGTH * sum(taken[20:40])


WORKS = [WorkId(f"work-{number}") for number in range(3)]
NAMES = [f"fb-{number}" for number in range(6)]


def a_command() -> st.SearchStrategy[Callable[[Steering], command.SteeringCommand]]:
    work, name = st.sampled_from(WORKS), st.sampled_from(NAMES)

    def opening(work_id: WorkId) -> Callable[[Steering], command.SteeringCommand]:
        return lambda _: command.OpenWork(WORK_OPENED.model_copy(update={"work_id": work_id}))

    def reordering(work_id: WorkId, order: list[int]) -> Callable[[Steering], command.SteeringCommand]:
        def make(state: Steering) -> command.SteeringCommand:
            queued = [each.intent_id for each in state.attached(work_id) if each.phase == "queued"]
            return command.ReorderIntents(work_id, tuple(sorted(queued, key=lambda each: order[NAMES.index(each)])))
        return make

    def of_intent(name: str, kind: str) -> Callable[[Steering], command.SteeringCommand]:
        def make(state: Steering) -> command.SteeringCommand:
            known = state.intents.get(IntentId(name))
            revision = 1 if known is None else known.revision
            made: dict[str, command.SteeringCommand] = {
                "edit": command.EditIntent(IntentId(name), revision, BODY, "next_work"),
                "queue": command.QueueIntent(IntentId(name), revision),
                "cancel": command.CancelIntent(IntentId(name)),
                "release": command.ReleaseIntent(IntentId(name)),
                "complete": command.CompleteIntent(
                    WORK_ID if known is None or known.work_id is None else known.work_id, IntentId(name), "done"
                ),
            }
            return made[kind]
        return make

    def fixed(made: command.SteeringCommand) -> Callable[[Steering], command.SteeringCommand]:
        return lambda _: made

    return st.one_of(
        st.builds(opening, work),
        st.builds(lambda each, work_id: fixed(draft(each, work_id)), name, work),
        st.builds(of_intent, name, st.sampled_from(["edit", "queue", "queue", "cancel", "release", "complete"])),
        st.builds(reordering, work, st.permutations(range(len(NAMES)))),
        st.builds(lambda work_id: fixed(command.ClaimNext(work_id)), work),
        st.builds(lambda work_id: fixed(command.FinishWork(work_id)), work),
    )


def states(made: list[Callable[[Steering], command.SteeringCommand]]) -> Iterator[Steering]:
    """Yield the state after each command; one that is refused, or names what is there or isn't, changes nothing."""
    state = STEERING.initial_state
    for make in made:
        try:
            state = after(state, make(state))
        except (CodespaceError, AssertionError):
            continue
        yield state


@settings(max_examples=150)
@given(st.lists(a_command(), max_size=40))
def test_what_is_kept_to_be_quick_follows_from_the_intents(
    made: list[Callable[[Steering], command.SteeringCommand]]
) -> None:
    for state in states([lambda _: command.OpenWork(WORK_OPENED.model_copy(update={"work_id": WORKS[0]})), *made]):
        for work_id in (None, *WORKS):
            own = [each for each in state.intents.values() if each.work_id == work_id]
            queue = state.queue(work_id)
            assert {*queue.members} == {each.intent_id for each in own}
            assert {*queue.waiting} == {each.intent_id for each in own if not each.is_over}
            assert queue.pending == sum(each.is_pending for each in own)
            assert queue.last == max((each.position for each in own), default=0)
            assert queue.last_over == max((each.position for each in own if each.is_over), default=0)
        assert dict(state.by_client_key) == {f"key-{each}": each for each in state.intents}
