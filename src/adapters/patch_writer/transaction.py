"""Carrying out a plan: all of it or none.

Nothing is begun that could run out of descriptors on the way: undoing needs them too.

1. Make the directories.
2. Write every new content to a temporary file beside its target, durable.
3. Install each: exchange and check what was displaced; a file that isn't as planned is put back, and nothing goes on.
4. Read everything again, by its path from the root.
5. Remove what was displaced, unless it was written to meanwhile through a descriptor that was open before.
6. Make the names durable, once a directory.
7. Remove the directories that an undo leaves empty. It is done by now: one that can't be removed stays.

Whatever goes wrong on the way, everything is brought back, and the outcome says what is on disk.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Final, Literal

from adapters.beneath import path_error, shown_name
from adapters.patch_writer.exchange import DisplacedError
from adapters.patch_writer.places import Place, parent_of, parents_of
from adapters.patch_writer.scene import Scene
from adapters.patch_writer.sight import Sight, finding_of, is_mode_change, is_untouched, look, open_regular
from adapters.patch_writer.temps import BATCH_FILES_MAX, TempBatch, sync_file, unlink
from adapters.patch_writer.undo import rescue_displaced, restore
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.patch_writer import WriteOutcome
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Fault
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile

_UNDO_ATTEMPTS: Final = 2
_DESCRIPTORS_BESIDE: Final = 8
"""Beside directories and temporary files: a file that is looked at, a directory that is opened anew, and a few more."""


class Transaction:
    """One attempt at one order."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._order = scene.order
        self._changed = [number for number, row in enumerate(scene.order.plan) if not is_untouched(row)]
        self._begun: set[int] = set()
        """Rows whose path we may have changed: noted before the act, so an error right after it is covered."""
        self._made: list[str] = []
        self._granted: dict[int, int] = {}
        """The permission bits that the file system gave, which may be fewer than were asked for."""

    def run(self) -> WriteOutcome:
        """Carry out the order and say what came of it."""
        order = self._order
        directories = parents_of([*(row.path for row in order.plan), *order.made_directories])
        needed = len(directories) + min(len(order.plan), BATCH_FILES_MAX) + _DESCRIPTORS_BESIDE
        try:
            self._scene.places.require_room(needed)
        except OSError as error:
            message = f"The patch needs {needed} open files at a time: {error.strerror}."
            fault = Fault(code=ErrorCode.FILE_OPERATION_FAILED, message=message)
            return WriteOutcome("failed_rolled_back", fault, self._findings())
        try:
            for is_late in (False, True):
                self._carry_out_stage(is_late=is_late)
            self._verify()
            for number in self._changed:
                self._drop_displaced(number)
            with _blaming("."):
                self._scene.sync_directories(self._changed_rows(), self._made)
        except CodespaceError as error:
            return self._roll_back(Fault.of(error))
        self._scene.remove_emptied()
        return WriteOutcome("applied", is_swap_atomic=self._scene.swaps.is_atomic)

    def _changed_rows(self) -> list[PlannedFile]:
        rows = [self._order.plan[number] for number in self._changed]
        return [row for row in rows if not is_mode_change(row)]

    def _carry_out_stage(self, *, is_late: bool) -> None:
        """Steps 1 to 3; what comes in place of a file that the plan takes away is late, and has a stage of its own."""
        scene, order = self._scene, self._order
        directories = [
            path for path in order.made_directories
            if (scene.gives_way(path) or scene.is_in_anothers_place(path)) == is_late
        ]
        numbers = [
            number for number in self._changed if scene.is_in_anothers_place(order.plan[number].path) == is_late
        ]
        self._make_directories(directories)
        self._write_temps(numbers)
        for number in numbers:
            self._install(number)

    def _make_directories(self, paths: list[str]) -> None:
        for path in paths:
            with _blaming(path):
                place = self._scene.places.of(path)
                self._scene.faults(FaultPoint.DIRECTORY_MAKE)
                # One that somebody made since the plan is theirs: it is used, and stays when we undo.
                with contextlib.suppress(FileExistsError):
                    os.mkdir(place.name, dir_fd=place.directory)
                    self._made.append(path)

    def _write_temps(self, numbers: list[int]) -> None:
        with TempBatch(self._scene.faults) as batch:
            for number in numbers:
                row = self._order.plan[number]
                if row.after == ABSENT or is_mode_change(row):
                    continue
                with _blaming(row.path):
                    self._write_temp(batch, number, row)
            with _blaming("."):
                batch.flush()

    def _write_temp(self, batch: TempBatch, number: int, row: PlannedFile) -> None:
        content = self._scene.image(row.after)
        place = self._place_of(row)
        like = self._open_origin(row)
        mode = row.mode if row.mode is not None else row.before_mode
        try:
            self._granted[number] = batch.write(
                place, self._scene.temp_of(number), content, mode=0o644 if mode is None else mode, like=like
            )
        finally:
            if like is not None:
                os.close(like)

    def _place_of(self, row: PlannedFile) -> Place:
        try:
            return self._scene.places.of(row.path)
        except FileNotFoundError:
            if row.before == ABSENT:
                raise
            raise _conflict(row) from None

    def _open_origin(self, row: PlannedFile) -> int | None:
        """Return the file whose owner and attributes the new one takes over; a missing one shows at the install."""
        path = row.moved_from if row.before == ABSENT else row.path
        if path is None:
            return None
        with contextlib.suppress(FileNotFoundError):
            place = self._scene.places.of(path)
            return open_regular(place.directory, place.name)
        return None

    def _install(self, number: int) -> None:
        row = self._order.plan[number]
        with _blaming(row.path):
            place = self._place_of(row)
            if row.before != ABSENT and not _is_regular(place):
                raise _conflict(row)
            self._scene.faults(FaultPoint.INSTALL)
            self._begun.add(number)
            try:
                self._change(number, row, place)
            except DisplacedError:
                self._begun.discard(number)
                raise _conflict(row) from None
            self._scene.faults(FaultPoint.INSTALL_DONE)

    def _change(self, number: int, row: PlannedFile, place: Place) -> None:
        def is_as_planned(sight: Sight) -> bool:
            return sight.version == row.before and row.before_mode in {None, sight.mode}

        temp = self._scene.temp_of(number)
        if is_mode_change(row):
            self._granted[number] = _change_mode(row, place)
        elif row.before == ABSENT:
            self._scene.swaps.create(place, temp)
        elif row.after == ABSENT:
            self._scene.swaps.remove(place, temp, expects=is_as_planned, swapped=FaultPoint.INSTALL_SWAPPED)
        else:
            self._scene.swaps.replace(
                place, temp, installs=row.after, expects=is_as_planned, swapped=FaultPoint.INSTALL_SWAPPED
            )

    def _verify(self) -> None:
        directories: dict[str, Place] = {}
        for number, row in enumerate(self._order.plan):
            with _blaming(row.path):
                self._scene.faults(FaultPoint.VERIFY)
                place = self._place_of(row)
                directories.setdefault(place.parent, place)
                sight = self._scene.sight_of(row)
                if sight.version != row.after or self._granted.get(number, sight.mode) != sight.mode:
                    raise _changed_on_the_way(row.path)
        for place in directories.values():
            with _blaming(place.path):
                if not self._scene.places.is_still_there(place):
                    raise _changed_on_the_way(place.path)

    def _drop_displaced(self, number: int) -> None:
        row = self._order.plan[number]
        if row.before == ABSENT or is_mode_change(row):
            return
        with _blaming(row.path):
            place = self._scene.places.of(row.path)
            temp = self._scene.temp_of(number)
            self._scene.faults(FaultPoint.SWEEP)
            if look(place.directory, temp).version not in {row.before, ABSENT}:
                raise _conflict(row)
            unlink(place, temp)

    def _roll_back(self, fault: Fault) -> WriteOutcome:
        rescued: set[int] = set()
        failures: list[OSError] = []
        left: list[str] = []
        for _ in range(_UNDO_ATTEMPTS):
            failures.clear()
            self._bring_back(rescued, failures)
            try:
                left = self._scene.sweep()
                self._scene.remove_directories(self._made)
            except OSError as error:
                failures.append(error)
            if not failures:
                break
        is_durable = self._sync_what_was_undone(failures)
        findings = self._findings()
        settled = (findings[number].found == "before" for number in self._begun - rescued)
        is_back = all(settled) and not failures and not left
        status: Literal["failed_rolled_back", "failed_partial", "unknown"]
        status = "failed_partial" if not is_back else "failed_rolled_back" if is_durable else "unknown"
        return WriteOutcome(
            status, _with_failures(fault, failures, left), findings, is_swap_atomic=self._scene.swaps.is_atomic
        )

    def _bring_back(self, rescued: set[int], failures: list[OSError]) -> None:
        for number in sorted(self._begun, reverse=True):
            try:
                if rescue_displaced(self._scene, number):
                    rescued.add(number)
                restore(self._scene, number)
            except OSError as error:
                failures.append(error)

    def _sync_what_was_undone(self, failures: list[OSError]) -> bool:
        for _ in range(_UNDO_ATTEMPTS):
            try:
                self._scene.sync_directories(self._changed_rows(), self._order.made_directories)
            except OSError as error:
                last = error
            else:
                return True
        failures.append(last)
        return False

    def _findings(self) -> tuple[FileFinding, ...]:
        findings: list[FileFinding] = []
        for row in self._order.plan:
            try:
                sight = self._scene.sight_of(row)
            except OSError:
                # What can't be read is nothing that we can vouch for.
                findings.append(FileFinding(path=row.path, found="foreign"))
            else:
                findings.append(finding_of(row, sight))
            if not self._begun:
                self._scene.places.forget(parent_of(row.path))  # descriptors may be scarce, and none is needed again
        return tuple(findings)


def _is_regular(place: Place) -> bool:
    try:
        return stat.S_ISREG(os.stat(place.name, dir_fd=place.directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _change_mode(row: PlannedFile, place: Place) -> int:
    """Give the file at `place` the planned mode, durably, and return what it has now. Raises DisplacedError."""
    assert row.mode is not None
    sight = look(place.directory, place.name)
    descriptor = open_regular(place.directory, place.name)
    if descriptor is None or sight.version != row.before or sight.mode != row.before_mode:
        if descriptor is not None:
            os.close(descriptor)
        raise DisplacedError(sight)
    try:
        os.fchmod(descriptor, row.mode)
        sync_file(descriptor)
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def _changed_on_the_way(path: str) -> CodespaceError:
    shown = shown_name(path)
    message = f"{shown!r} was changed while the patch was written."
    return CodespaceError(ErrorCode.VERSION_CONFLICT, message, detail={"path": shown})


def _conflict(row: PlannedFile) -> CodespaceError:
    path = shown_name(row.path)
    if row.before == ABSENT and row.kind == "move":
        code, message = ErrorCode.MOVE_DESTINATION_EXISTS, f"{path!r} exists by now."
    elif row.before == ABSENT and row.kind == "add":
        code, message = ErrorCode.ADD_FILE_EXISTS, f"{path!r} exists by now."
    else:
        code, message = ErrorCode.VERSION_CONFLICT, f"{path!r} isn't what it was when the patch was planned."
    return CodespaceError(code, message, detail={"path": path})


@contextlib.contextmanager
def _blaming(path: str) -> Iterator[None]:
    """Turn a failure of the system into the contract's error that names `path`, or the path that the failure names."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str):
            path = error.filename
        if isinstance(error, FileNotFoundError):
            shown = shown_name(path)
            raise CodespaceError(
                ErrorCode.FILE_OPERATION_FAILED, f"{shown!r}: {error.strerror}.", detail={"path": shown}
            ) from error
        raise path_error(error, path) from error


def _with_failures(fault: Fault, failures: list[OSError], left: list[str]) -> Fault:
    """Return `fault` with what couldn't be undone in its message."""
    reasons = [f"undoing failed: {error.strerror or error}" for error in failures]
    reasons += [f"a displaced file stays beside {shown_name(path)!r}" for path in left]
    if not reasons:
        return fault
    return fault.model_copy(update={"message": " ".join([fault.message, "Also", "; ".join(reasons) + "."])})
