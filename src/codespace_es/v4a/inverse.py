"""The plan that undoes plans: each row the other way round; several plans taken together as their net effect.

Several plans come newest first. A path keeps what the newest of them made of it as `before`, and gets what the oldest
found there as `after`; what lies between is never written. That is only right where each plan found what the next older
one had left: `gaps` names the paths where it didn't. Source: ADR 18.
"""

from collections.abc import Iterator, Mapping, Sequence

from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import ChangeKind, PlannedFile

PlanRows = Sequence[PlannedFile]


def invert_plan(plan: PlanRows) -> tuple[PlannedFile, ...]:
    """Return the plan that undoes `plan`: every row the other way round, last row first.

    A move comes out as a move back. Inverting twice gives the first plan again, but for the order of kinds that only
    say how a file came about.
    """
    moved_to = {row.moved_from: row.path for row in plan if row.moved_from is not None and row.before == ABSENT}
    return tuple(_inverted(row, moved_to.get(row.path)) for row in reversed(plan))


def invert_plans(plans: Sequence[PlanRows]) -> tuple[PlannedFile, ...]:
    """Return the plan that undoes `plans`, newest first, at one blow; a path that ends as it begins has no row."""
    if len(plans) == 1:
        return invert_plan(plans[0])
    net: dict[str, PlannedFile] = {}
    came_from: dict[str, str] = {}
    for plan in plans:
        undone = invert_plan(plan)
        _follow_moves(came_from, undone)
        for row in undone:
            newer = net.get(row.path)
            net[row.path] = row if newer is None else newer.model_copy(
                update={"after": row.after, "after_bytes": row.after_bytes, "mode": row.mode}
            )
    return tuple(
        _told_as(row, came_from.get(row.path), net)
        for row in net.values()
        if not row.is_no_change and not row.before == row.after == ABSENT
    )


def gaps(plans: Sequence[PlanRows]) -> Iterator[tuple[str, int, int]]:
    """Yield each path that changed between two of `plans`, newest first: path, index of the older one, of the newer.

    What the older one left there isn't what the newer one found, so somebody else wrote it in between.
    """
    found: dict[str, tuple[str, int]] = {}
    for index, plan in enumerate(plans):
        for row in plan:
            if row.path in found and found[row.path][0] != row.after:
                yield row.path, index, found[row.path][1]
            found[row.path] = row.before, index


def newest_rows(plans: Sequence[PlanRows]) -> dict[str, tuple[int, PlannedFile]]:
    """Return, by path, the row of the newest plan that has one, with the index of that plan."""
    newest: dict[str, tuple[int, PlannedFile]] = {}
    for index, plan in enumerate(plans):
        for row in plan:
            newest.setdefault(row.path, (index, row))
    return newest


def _inverted(row: PlannedFile, moved_to: str | None) -> PlannedFile:
    kind: ChangeKind
    if row.before == ABSENT:
        kind = "delete"
    elif row.after != ABSENT:
        kind = "update"
    else:
        kind = "add" if moved_to is None else "move"
    return PlannedFile(
        path=row.path,
        kind=kind,
        moved_from=moved_to if kind == "move" else None,
        before=row.after,
        after=row.before,
        before_bytes=row.after_bytes,
        after_bytes=row.before_bytes,
        mode=row.before_mode,
        before_mode=row.mode,
    )


def _follow_moves(came_from: dict[str, str], undone: PlanRows) -> None:
    """Note where the file at each path stands before any of the plans is undone, if a move brings it there."""
    moved = {row.path: came_from.get(row.moved_from, row.moved_from) for row in undone if row.moved_from is not None}
    for row in undone:
        if ABSENT in (row.before, row.after):  # an update leaves the file the same one
            came_from.pop(row.path, None)
    came_from.update(moved)


def _told_as(row: PlannedFile, came_from: str | None, net: Mapping[str, PlannedFile]) -> PlannedFile:
    """Return a net row with the kind that says how its file comes about."""
    kind: ChangeKind = "update"
    moved_from = None
    if row.after == ABSENT:
        kind = "delete"
    elif row.before == ABSENT:
        origin = net.get(came_from) if came_from is not None else None
        is_moved = origin is not None and origin.before != ABSENT and origin.after == ABSENT
        kind, moved_from = ("move", came_from) if is_moved else ("add", None)
    return row.model_copy(update={"kind": kind, "moved_from": moved_from})
