"""A `SharingMap` is a `dict` that was copied at each change: compared with one, at every step."""

from hypothesis import given
from hypothesis import strategies as st

from codespace_es.vocabulary.sharing_map import SharingMap

KEYS = st.one_of(st.none(), st.integers(0, 600), st.text(max_size=3))
CHANGES = st.lists(st.tuples(KEYS, st.one_of(st.just("without"), st.integers())), max_size=60)


@given(CHANGES)
def test_every_step_is_what_a_copied_dict_would_be_and_stays_so(changes: list[tuple[object, object]]) -> None:
    plain: dict[object, object] = {}
    shared: SharingMap[object, object] = SharingMap()
    steps = [(plain, shared)]
    for key, value in changes:
        if value == "without":
            plain = {each: known for each, known in plain.items() if each != key}
            shared = shared.without(key)
        else:
            plain = {**plain, key: value}
            shared = shared.with_item(key, value)
        steps.append((plain, shared))
    for expected, seen in steps:
        assert list(seen.items()) == list(expected.items())
        assert len(seen) == len(expected)
        assert seen == expected
        assert all(seen.get(key, seen) == expected.get(key, seen) for key, _ in changes)
