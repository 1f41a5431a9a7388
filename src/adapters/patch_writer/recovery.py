"""Closing what a dead server left: a table over what stands at each planned path, and nothing else.

Files whose plan changes nothing are ignored.

| on disk | action | status |
| --- | --- | --- |
| all after (or nothing left to look at) | make durable, sweep | applied |
| all before | sweep | failed_rolled_back |
| before and after | undo, sweep | failed_rolled_back |
| somebody else's, none after | sweep | unknown |
| somebody else's, some after | sweep | failed_partial |

Before it is read, a file that was displaced and not yet checked is put back. "Sweep" takes only what is ours, and
directories of the plan that are empty. Repeating it changes nothing; it never applies.
"""

import os
from typing import Literal

from adapters.beneath import shown_name
from adapters.patch_writer.scene import Scene
from adapters.patch_writer.sight import Found, is_mode_change, is_untouched, open_regular
from adapters.patch_writer.temps import sync_file
from adapters.patch_writer.undo import rescue_displaced, restore
from codespace_es.ports.patch_writer import WriteOutcome
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Fault
from codespace_es.vocabulary.file_change import FileFinding


def settle(scene: Scene) -> WriteOutcome:
    """Return what the order came to, after bringing the disk there. Raises OSError when it can't be done now."""
    rows = [number for number, row in enumerate(scene.order.plan) if not is_untouched(row)]
    for number in rows:
        rescue_displaced(scene, number)
    findings = scene.inspect()
    found = {findings[number].found for number in rows}
    if found <= {"after"}:
        _make_durable(scene, rows)
        scene.remove_emptied()
        return WriteOutcome("applied", is_swap_atomic=scene.swaps.is_atomic)
    if found == {"before", "after"}:
        _undo(scene, rows)
        findings = scene.inspect()
        found = {findings[number].found for number in rows}
        if found == {"before", "after"}:
            raise InterruptedError("a file was written again while it was brought back")
    left = scene.sweep()
    scene.remove_directories(scene.order.made_directories)
    scene.sync_directories((scene.order.plan[number] for number in rows), scene.order.made_directories)
    return _failed(scene, findings, found, left)


def _failed(scene: Scene, findings: tuple[FileFinding, ...], found: set[Found], left: list[str]) -> WriteOutcome:
    status: Literal["failed_rolled_back", "failed_partial", "unknown"]
    status = "failed_rolled_back" if found == {"before"} else "failed_partial" if "after" in found else "unknown"
    return WriteOutcome(status, _fault_of_left(left), findings, scene.swaps.is_atomic)


def _make_durable(scene: Scene, rows: list[int]) -> None:
    scene.sweep()
    for number in rows:
        row = scene.order.plan[number]
        if not is_mode_change(row):
            continue
        place = scene.places.of(row.path)
        descriptor = open_regular(place.directory, place.name)
        if descriptor is not None:
            try:
                sync_file(descriptor)
            finally:
                os.close(descriptor)
    scene.sync_directories((scene.order.plan[number] for number in rows), scene.order.made_directories)


def _undo(scene: Scene, rows: list[int]) -> None:
    """Bring back what can be brought back, then raise the first OSError if there was one."""
    failures: list[OSError] = []
    for number in reversed(rows):
        try:
            restore(scene, number)
        except OSError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _fault_of_left(left: list[str]) -> Fault | None:
    if not left:
        return None
    names = ", ".join(repr(shown_name(path)) for path in left)
    return Fault(code=ErrorCode.VERSION_CONFLICT, message=f"A displaced file of somebody else's stays beside {names}.")
