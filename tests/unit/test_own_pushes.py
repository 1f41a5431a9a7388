"""Where a server's newest push is looked for, against a plain list of what was pushed and what is over."""

from hypothesis import given
from hypothesis import strategies as st

from codespace_es.ports import own_pushes
from codespace_es.ports.own_pushes import OwnPushes
from codespace_es.vocabulary.identifiers import StreamId, WorkspaceKey

KEYS = [WorkspaceKey(f"wsp-{number}") for number in range(2)]
STACKS = [StreamId(f"pend-{number}") for number in range(5)]
STEPS = st.lists(st.tuples(st.sampled_from(STACKS), st.sampled_from(["push", "push", "end", "look", "forget"])))


def key_of(stack: StreamId) -> WorkspaceKey:
    return KEYS[STACKS.index(stack) % 2]


def newest(own: OwnPushes, key: WorkspaceKey, left: dict[StreamId, list[int]]) -> int | None:
    """Look for the newest push as the rules do: ask a stack, and correct what was noted of it."""
    while (noted := own.newest(key)) is not None:
        found = max(left[noted[0]], default=0)
        if found == noted[1]:
            return found
        own.correct(*noted, found)
    return None


@given(STEPS)
def test_the_newest_push_that_isn_t_over_is_found(steps: list[tuple[StreamId, str]]) -> None:
    own, left = OwnPushes(), {each: list[int]() for each in STACKS}
    for position, (stack, step) in enumerate(steps, start=1):
        if step == "push":
            left[stack].append(position)
            own.note(key_of(stack), stack, position)
        elif step == "end" and left[stack]:
            left[stack].pop()
        elif step == "forget" and not left[stack]:
            own.forget(stack, position)
        elif step == "look":
            for key in KEYS:
                expected = max((each for name in STACKS if key_of(name) == key for each in left[name]), default=None)
                assert newest(own, key, left) == expected


def test_a_push_that_came_meanwhile_is_neither_lowered_nor_forgotten() -> None:
    own = OwnPushes()
    own.note(KEYS[0], STACKS[0], 5)
    own.note(KEYS[0], STACKS[0], 9)
    own.correct(STACKS[0], 5, 0)
    own.forget(STACKS[0], 8)
    assert own.newest(KEYS[0]) == (STACKS[0], 9)


def test_nothing_is_held_of_stacks_that_are_over() -> None:
    own = OwnPushes()
    for number in range(1_000):
        stack = StreamId(f"pend-{number}")
        own.note(KEYS[0], stack, number)
        own.forget(stack, number)
    assert not own._latest
    assert len(own._heaps[KEYS[0]]) <= own_pushes._STALE_MAX + 2
