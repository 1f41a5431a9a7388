"""Bringing one planned path back to what it was.

What is to be done is decided by the hashes on disk, never by memory: an error may come between any act and its note.
"""

import os

from adapters.patch_writer.exchange import DisplacedError
from adapters.patch_writer.places import Place
from adapters.patch_writer.scene import Scene
from adapters.patch_writer.sight import Sight, found_at, is_mode_change, is_untouched, look, open_regular
from adapters.patch_writer.temps import TempBatch, exists, is_ours, sync_file, unlink
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import PlannedFile


def rescue_displaced(scene: Scene, row_number: int) -> bool:
    """Put somebody's file that stands at a temporary name back where it came from; return whether there was one.

    It got there in the moment between a swap and its check. A third content at the path is newer and stays.
    Raises OSError.
    """
    row = scene.order.plan[row_number]
    place = None if is_untouched(row) or is_mode_change(row) else scene.place_if_any(row.path)
    if place is None:
        return False
    temp = scene.temp_of(row_number)
    if not exists(place, temp) or is_ours(scene.order, row, place, temp):
        return False
    present = look(place.directory, place.name)
    if present.version == ABSENT:
        return scene.swaps.bring_back(place, temp)
    if found_at(row, present) not in {"before", "after"}:
        return False
    scene.swaps.put_back(place, temp, on_path=present.key, displaced=look(place.directory, temp))
    return True


def restore(scene: Scene, row_number: int) -> None:
    """Bring the path of a row back to its before-image if its after-image stands there; else leave it.

    Raises:
        OSError: it can't be brought back now.
    """
    row = scene.order.plan[row_number]
    place = None if is_untouched(row) else scene.place_if_any(row.path)
    if place is not None and scene.gives_way(row.path) and look(place.directory, place.name).is_directory:
        scene.clear_way(row.path)
    if place is None or found_at(row, look(place.directory, place.name)) != "after":
        return
    try:
        if is_mode_change(row):
            _restore_mode(scene, row, place)
        elif row.before == ABSENT:
            _withdraw(scene, row, place, row_number)
        else:
            _reinstate(scene, row, place, row_number)
    except DisplacedError:
        # Somebody wrote the file just now; it stands there untouched, and the next look tells.
        return
    scene.faults(FaultPoint.UNDO_DONE)


def _restore_mode(scene: Scene, row: PlannedFile, place: Place) -> None:
    assert row.before_mode is not None
    descriptor = open_regular(place.directory, place.name)
    if descriptor is None:
        raise DisplacedError(look(place.directory, place.name))
    try:
        scene.faults(FaultPoint.UNDO)
        os.fchmod(descriptor, row.before_mode)
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def _withdraw(scene: Scene, row: PlannedFile, place: Place, row_number: int) -> None:
    temp = scene.temp_of(row_number)
    if exists(place, temp) and is_ours(scene.order, row, place, temp):
        unlink(place, temp)
    scene.faults(FaultPoint.UNDO)
    scene.swaps.remove(
        place, temp, expects=lambda sight: sight.version == row.after, swapped=FaultPoint.UNDO_SWAPPED
    )


def _reinstate(scene: Scene, row: PlannedFile, place: Place, row_number: int) -> None:
    temp = scene.temp_of(row_number)
    if not _is_before(row, look(place.directory, temp)):
        _write_before(scene, row, place, row_number)
    scene.faults(FaultPoint.UNDO)
    if row.after == ABSENT:
        scene.swaps.create(place, temp)
        return
    scene.swaps.replace(
        place, temp, installs=row.before, expects=lambda sight: sight.version == row.after,
        swapped=FaultPoint.UNDO_SWAPPED,
    )


def _is_before(row: PlannedFile, sight: Sight) -> bool:
    return sight.version == row.before and row.before_mode in {None, sight.mode}


def _write_before(scene: Scene, row: PlannedFile, place: Place, row_number: int) -> None:
    content = scene.image(row.before)
    temp = scene.temp_of(row_number)
    if exists(place, temp) and is_ours(scene.order, row, place, temp):
        unlink(place, temp)
    like = None if row.after == ABSENT else open_regular(place.directory, place.name)
    try:
        with TempBatch(scene.faults) as batch:
            batch.write(place, temp, content, mode=0o644 if row.before_mode is None else row.before_mode, like=like)
            batch.flush()
    finally:
        if like is not None:
            os.close(like)
