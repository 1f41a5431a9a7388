"""Undoing plans: for any history, the net plan leads back, touches nothing twice, and a gap is seen."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from codespace_es.v4a.inverse import gaps, invert_plan, invert_plans
from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import PlannedFile, digest_of

PATHS = ("a", "b", "c")
File = tuple[bytes, int]
Tree = dict[str, File]
Plan = tuple[PlannedFile, ...]


def row(path: str, before: File | None, after: File | None, moved_from: str | None = None) -> PlannedFile:
    kind = "delete" if after is None else "update" if before else "move" if moved_from else "add"
    return PlannedFile(
        path=path, kind=kind, moved_from=moved_from,  # type: ignore[arg-type]  # one of the four
        before=ABSENT if before is None else digest_of(before[0]),
        after=ABSENT if after is None else digest_of(after[0]),
        before_bytes=None if before is None else len(before[0]),
        after_bytes=None if after is None else len(after[0]),
        before_mode=None if before is None else before[1],
        mode=None if after is None else after[1],
    )


CONTENTS = {digest_of(content): content for content in (b"1", b"22", b"333")}
STEPS = st.tuples(
    st.sampled_from(PATHS), st.sampled_from([*CONTENTS.values(), None]), st.sampled_from([0o644, 0o755]),
    st.sampled_from([None, *PATHS]),
)


def carried_out(tree: Tree, steps: list[tuple[str, bytes | None, int, str | None]]) -> tuple[Tree, Plan]:
    """Return a tree after a patch, and the patch's plan: one row a path, moves as delete and move."""
    rows: dict[str, PlannedFile] = {}
    now = dict(tree)
    for path, content, mode, source in steps:
        if path in rows or source in rows:
            continue
        if source is not None and source != path and source in tree and path not in tree:
            rows[source] = row(source, tree[source], None)
            rows[path] = row(path, None, tree[source], moved_from=source)
            now[path] = now.pop(source)
        elif content is not None:
            rows[path] = row(path, tree.get(path), (content, mode))
            now[path] = content, mode
        elif path in tree:
            rows[path] = row(path, tree[path], None)
            del now[path]
    return now, tuple(rows.values())


def applied(tree: Tree, plan: Plan) -> Tree:
    """Return what a plan makes of a tree in which every path is as the plan expects."""
    now = dict(tree)
    for each in plan:
        there = now.pop(each.path, None)
        assert (ABSENT if there is None else digest_of(there[0])) == each.before
        assert there is None or there[1] == each.before_mode
        if each.after != ABSENT:
            assert each.mode is not None
            now[each.path] = CONTENTS[each.after], each.mode
    return now


HISTORIES = st.lists(st.lists(STEPS, min_size=1, max_size=3), min_size=1, max_size=6)


@given(HISTORIES)
def test_the_net_plan_of_a_whole_history_leads_back_to_its_beginning(history):
    beginning: Tree = {"a": (b"1", 0o644)}
    tree, plans = beginning, []
    for steps in history:
        tree, plan = carried_out(tree, steps)
        plans.insert(0, plan)
    assert list(gaps(plans)) == []
    net = invert_plans(plans)
    assert applied(tree, net) == beginning
    assert len({each.path for each in net}) == len(net)
    if len(plans) == 1:
        assert net == invert_plan(plans[0])
    else:
        assert not any(each.is_no_change for each in net)


@given(HISTORIES)
def test_every_move_of_a_net_plan_names_a_file_that_goes_away(history):
    tree, plans = {"a": (b"1", 0o644)}, []
    for steps in history:
        tree, plan = carried_out(tree, steps)
        plans.insert(0, plan)
    net = invert_plans(plans)
    leaving = {each.path for each in net if each.after == ABSENT}
    moves = [each for each in net if each.kind == "move"]
    assert all(each.moved_from in leaving and each.before == ABSENT for each in moves)
    assert len({each.moved_from for each in moves}) == len(moves)


@given(HISTORIES, st.data())
def test_leaving_plans_out_shows_as_a_gap_wherever_they_mattered(history, data):
    beginning: Tree = {"a": (b"1", 0o644)}
    tree, plans, trees = beginning, [], [beginning]
    for steps in history:
        tree, plan = carried_out(tree, steps)
        plans.insert(0, plan)
        trees.append(tree)
    chosen = data.draw(st.sets(st.sampled_from(range(len(plans))), min_size=1))
    kept = [plan for index, plan in enumerate(plans) if index in chosen]
    found = {path for path, _, _ in gaps(kept)}
    for path in PATHS:
        touching = [each for plan in kept for each in plan if each.path == path]
        is_chained = all(newer.before == older.after for newer, older in pairwise(touching))
        assert (path in found) == (not is_chained)


def test_a_file_that_was_changed_and_moved_twice_is_moved_back_at_one_blow():
    change = (row("a", (b"333", 0o644), (b"1", 0o644)),)
    first = (row("a", (b"1", 0o644), None), row("b", None, (b"1", 0o644), moved_from="a"))
    second = (row("b", (b"1", 0o644), None), row("c", None, (b"22", 0o644), moved_from="b"))
    told = {each.path: (each.kind, each.moved_from) for each in invert_plans([second, first, change])}
    assert told == {"c": ("delete", None), "a": ("move", "c")}
