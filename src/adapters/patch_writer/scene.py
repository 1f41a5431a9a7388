"""One order being carried out, undone or settled: what all steps need, and the steps that all of them share."""

import contextlib
import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass

from adapters.patch_writer.exchange import Swaps
from adapters.patch_writer.places import UNREACHABLE_NUMBERS, Place, Places, naming, parent_of, parents_of
from adapters.patch_writer.sight import NO_PARENT, NOT_REACHABLE, NOTHING, Sight, finding_of, is_untouched
from adapters.patch_writer.temps import sweep, temp_name
from codespace_es.ports.fault_points import FaultHook, FaultPoint
from codespace_es.ports.patch_writer import PatchOrder
from codespace_es.vocabulary.event import ABSENT, Digest
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile


@dataclass(frozen=True, slots=True)
class Scene:
    """An order with its open directories."""

    order: PatchOrder
    places: Places
    swaps: Swaps
    faults: FaultHook

    def temp_of(self, row_number: int) -> bytes:
        """Return the temporary name of a row."""
        return temp_name(self.order.operation_id, row_number)

    def place_if_any(self, path: str) -> Place | None:
        """Return the place of `path`, or None if its directory is gone or can't be reached. Raises OSError."""
        try:
            return self.places.of(path)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno in UNREACHABLE_NUMBERS:
                return None
            raise

    def gives_way(self, path: str) -> bool:
        """Return whether the file at `path` makes room for a directory of the same plan."""
        return path in self.order.made_directories and any(
            row.path == path and row.after == ABSENT for row in self.order.plan
        )

    def is_in_anothers_place(self, path: str) -> bool:
        """Return whether a parent of `path` is a file that gives way first."""
        return any(path.startswith(f"{row.path}/") and self.gives_way(row.path) for row in self.order.plan)

    def sight_of(self, row: PlannedFile) -> Sight:
        """Return what stands at the path of `row`. A directory that a file gave way to counts as nothing there.

        Raises OSError.
        """
        sight = self.places.look_at(row.path)
        if sight.is_directory and self.gives_way(row.path):
            return NOTHING
        if sight is NOT_REACHABLE and row.before == ABSENT and self.is_in_anothers_place(row.path):
            return NO_PARENT
        return sight

    def clear_way(self, path: str) -> None:
        """Remove the empty directories and the temporary files that the plan put in place of the file `path`.

        Raises OSError.
        """
        below = f"{path}/"
        for number, row in enumerate(self.order.plan):
            place = self.place_if_any(row.path) if row.path.startswith(below) else None
            if place is not None:
                sweep(self.order, number, place, self.faults)
        self.remove_directories(
            made for made in self.order.made_directories if made == path or made.startswith(below)
        )

    def image(self, digest: Digest) -> bytes:
        """Return an image. Raises OSError (ENODATA) when it is gone."""
        try:
            return self.order.image(digest)
        except LookupError:
            raise OSError(errno.ENODATA, "its stored image is gone") from None

    def inspect(self) -> tuple[FileFinding, ...]:
        """Return what is at every planned path, in plan order. Raises OSError.

        A file that is gone with a directory that the order removes last counts as deleted by us only if all else is
        done: before that, the directory was removed by somebody else.
        """
        sights = [self.sight_of(row) for row in self.order.plan]
        findings = [finding_of(row, sight) for row, sight in zip(self.order.plan, sights, strict=True)]
        removed = {
            number for number, (row, sight) in enumerate(zip(self.order.plan, sights, strict=True))
            if not sight.has_parent and row.after == ABSENT and parent_of(row.path) in self.order.removed_directories
        }
        is_all_else_done = all(
            is_untouched(row) or findings[number].found == "after"
            for number, row in enumerate(self.order.plan) if number not in removed
        )
        if is_all_else_done:
            for number in removed:
                findings[number] = finding_of(self.order.plan[number], NOTHING)
        return tuple(findings)

    def sweep(self) -> list[str]:
        """Remove our temporary files; return the paths beside which one of somebody else's bytes stays.

        Raises:
            OSError: the first failure, after all rows were tried.
        """
        left: list[str] = []
        failures: list[OSError] = []
        for number, row in enumerate(self.order.plan):
            try:
                place = self.place_if_any(row.path)
                if place is not None and not sweep(self.order, number, place, self.faults):
                    left.append(row.path)
            except OSError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return left

    def remove_directories(self, made: Iterable[str]) -> None:
        """Remove those of `made` (parents first) that are empty, innermost first. Raises OSError."""
        for path in reversed(list(made)):
            place = self.place_if_any(path)
            if place is None:
                continue
            self.faults(FaultPoint.DIRECTORY_REMOVE)
            try:
                os.rmdir(place.name, dir_fd=place.directory)
            except OSError as error:
                # Somebody uses it by now, or it was never made, or is something else: it stays.
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY}:
                    raise
            else:
                self.places.forget(path)

    def remove_emptied(self) -> None:
        """Remove the directories that the order names for it, as far as they are empty and can be removed."""
        removed = self.order.removed_directories
        with contextlib.suppress(OSError):
            self.remove_directories(removed)
            if removed:
                self.sync_directories((), removed)

    def sync_directories(self, rows: Iterable[PlannedFile], made: Iterable[str]) -> None:
        """Make the names of `rows`, and of the directories `made`, durable. Raises OSError."""
        for parent in parents_of([row.path for row in rows] + list(made)):
            place = self.place_if_any(_anything_in(parent))
            if place is not None:
                with naming(parent):
                    self.faults(FaultPoint.DIRECTORY_SYNC)
                    sync_directory(place.directory)


def sync_directory(directory: int) -> None:
    """Make the names in a directory durable. Raises OSError."""
    os.fsync(directory)


def _anything_in(parent: str) -> str:
    path = "_" if parent == "." else f"{parent}/_"
    assert parent_of(path) == parent
    return path
