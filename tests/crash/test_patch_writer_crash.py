"""Death, errors and foreign edits at every fault point of a patch and of its settling."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from adapters.patch_writer.writer import ExchangePatchWriter
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.patch_writer import PatchOrder, SettleImpossibleError, WriteOutcome
from support.crash_faults import HIT_POINTS, FailAt, Recorder, count
from support.crash_orders import EIGHT_FILES, FOUR_FILES, ONE_FILE, SCENARIOS, UNDO, Scenario, Snapshot, snapshot
from support.dying_writer import dies_at
from support.kept_trees import KeptTree, keep, trees_of_deaths

EXCHANGES = (True, False)
STRIDE_OF_EIGHT = 11
"""Of the pairs of points of the largest patch, every n-th is run; the soak runs all."""
STRIDE_OF_PROCESSES = 11
"""Of the deaths in settling, every n-th is that of a process; the soak lets processes die at all."""
ids = [scenario.name for scenario in SCENARIOS]


class Workshop:
    """Fresh trees of one scenario, with what they must look like before and after."""

    def __init__(self, scenario: Scenario, directory: Path, *, has_exchange: bool = True) -> None:
        self.scenario = scenario
        self.has_exchange = has_exchange
        self._directory = directory
        self._made = 0
        self._settled: dict[KeptTree, WriteOutcome] = {}
        self.after = scenario.expected_after(directory / "after")
        scenario.build(directory / "before")
        self.before = snapshot(directory / "before")
        self._start = keep(directory / "before")

    def fresh(self) -> Path:
        return self.put(self._start)

    def put(self, tree: KeptTree) -> Path:
        self._made += 1
        return tree.plant(self._directory / f"tree{self._made}")

    def writer(self, faults=lambda point: None) -> ExchangePatchWriter:
        return ExchangePatchWriter(faults, has_exchange=self.has_exchange)

    def points_of_write(self) -> list[FaultPoint]:
        recorder = Recorder()
        assert self.writer(recorder).write(self.scenario.order(self.fresh())).status == "applied"
        return recorder.points

    def deaths_in_write(self) -> Iterator[tuple[int, KeptTree]]:
        """Yield the fault points of a write that each leave another tree at a death, and that tree."""
        return self._deaths(self.fresh(), lambda writer, order: writer.write(order))

    def deaths_in_settle(self, tree: KeptTree) -> Iterator[tuple[int, KeptTree]]:
        """Yield the same of settling `tree`."""
        root = self.put(tree)
        yield from self._deaths(root, lambda writer, order: writer.settle(order))
        shutil.rmtree(root)

    def _deaths(
        self, root: Path, act: Callable[[ExchangePatchWriter, PatchOrder], object]
    ) -> Iterator[tuple[int, KeptTree]]:
        order = self.scenario.order(root)
        for k, point, tree in trees_of_deaths(root, lambda hook: act(self.writer(hook), order)):
            HIT_POINTS.add(point)
            yield k, tree

    def die(self, k: int, job: Literal["write", "settle"], tree: KeptTree, expected: KeptTree) -> Path:
        """Let a process really die at its k-th point; return the tree that is left, which must be `expected`."""
        root = self.put(tree)
        assert dies_at(k, job, self.scenario, root, has_exchange=self.has_exchange), k
        assert keep(root) == expected, k
        return root

    def die_in_write(self, k: int, expected: KeptTree) -> Path:
        return self.die(k, "write", self._start, expected)

    def check_settling(self, root: Path, about: object) -> WriteOutcome:
        """Settle what stands at `root`, twice, unless the same has been settled before; return what it came to."""
        tree = keep(root)
        if tree not in self._settled:
            order = self.scenario.order(root)
            outcome = self.writer().settle(order)
            self.check_settled(root, outcome, about)
            again = self.writer().settle(order)
            assert (again.status, again.findings) == (outcome.status, outcome.findings), about
            self.check_settled(root, again, (about, "again"))
            self._settled[tree] = outcome
        return self._settled[tree]

    def check_settled(self, root: Path, outcome: WriteOutcome, about: object) -> None:
        found: Snapshot = snapshot(root)
        if outcome.status == "applied":
            assert found == self.after, about
            assert outcome.findings == (), about
        else:
            assert outcome.status == "failed_rolled_back", about
            assert found == self.before, about
            assert {finding.found for finding in outcome.findings} == {"before"}, about
            assert [finding.path for finding in outcome.findings] == list(self.scenario.targets), about


@pytest.mark.parametrize("has_exchange", EXCHANGES, ids=["exchange", "plain"])
@pytest.mark.parametrize("scenario", [*SCENARIOS, UNDO], ids=[*ids, "undo"])
def test_a_death_at_any_point_leaves_all_or_nothing_after_settling(
    scenario: Scenario, memory_path: Path, *, has_exchange: bool
) -> None:
    """A process really dies wherever that leaves another tree than a death one point before."""
    workshop = Workshop(scenario, memory_path, has_exchange=has_exchange)
    statuses = set()
    for k, tree in workshop.deaths_in_write():
        root = workshop.die_in_write(k, tree)
        statuses.add(workshop.check_settling(root, k).status)
        count("deaths in write, then settled", 1)
    assert statuses == {"applied", "failed_rolled_back"}


@pytest.mark.parametrize("scenario", [*SCENARIOS, UNDO], ids=[*ids, "undo"])
def test_a_death_at_any_point_of_settling_is_settled_by_the_next_one(scenario: Scenario, memory_path: Path) -> None:
    sweep_deaths_in_settle(scenario, memory_path, stride=STRIDE_OF_PROCESSES)


@pytest.mark.soak
@pytest.mark.parametrize("scenario", [*SCENARIOS, UNDO], ids=[*ids, "undo"])
def test_a_process_may_really_die_at_any_point_of_settling(scenario: Scenario, memory_path: Path) -> None:
    sweep_deaths_in_settle(scenario, memory_path, stride=1)


def sweep_deaths_in_settle(scenario: Scenario, memory_path: Path, *, stride: int) -> None:
    """Settle what a death at any point of any settling leaves; every n-th time, a process really dies there."""
    workshop = Workshop(scenario, memory_path)
    runs = 0
    for k, crashed in workshop.deaths_in_write():
        for k2, tree in workshop.deaths_in_settle(crashed):
            is_real = runs % stride == 0
            root = workshop.die(k2, "settle", crashed, tree) if is_real else workshop.put(tree)
            workshop.check_settling(root, (k, k2))
            shutil.rmtree(root)
            runs += 1
    count("deaths in settle after a death in write", runs)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES], ids=errno.errorcode.get)
@pytest.mark.parametrize("has_exchange", EXCHANGES, ids=["exchange", "plain"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=ids)
def test_an_error_at_any_point_of_writing_undoes_everything(
    scenario: Scenario, number: int, memory_path: Path, *, has_exchange: bool
) -> None:
    workshop = Workshop(scenario, memory_path, has_exchange=has_exchange)
    points = workshop.points_of_write()
    for k, point in enumerate(points, start=1):
        root = workshop.fresh()
        hook = FailAt(k, number)
        outcome = workshop.writer(hook).write(scenario.order(root))
        assert outcome.status == "failed_rolled_back", (k, point, outcome)
        workshop.check_settled(root, outcome, k)
        assert outcome.fault is not None
        assert outcome.fault.code == "FILE_OPERATION_FAILED"
        assert os.strerror(number) in outcome.fault.message
        HIT_POINTS.update(hook.points)
    count("single errors in write", len(points))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=ids)
def test_two_errors_in_a_row_never_leave_a_lie(scenario: Scenario, memory_path: Path) -> None:
    sweep_double_errors(scenario, memory_path, stride=STRIDE_OF_EIGHT)


@pytest.mark.soak
def test_no_two_errors_in_a_row_of_a_large_patch_leave_a_lie(memory_path: Path) -> None:
    sweep_double_errors(EIGHT_FILES, memory_path, stride=1)


def sweep_double_errors(scenario: Scenario, memory_path: Path, *, stride: int) -> None:
    workshop = Workshop(scenario, memory_path)
    runs = 0
    for k in range(1, len(workshop.points_of_write()) + 1):
        first = FailAt(k)
        workshop.writer(first).write(scenario.order(workshop.fresh()))
        for k2 in range(k + 1, first.hits + 1):
            if scenario is EIGHT_FILES and (k + k2) % stride:
                continue
            root = workshop.fresh()
            order = scenario.order(root)
            single, second = FailAt(k), FailAt(k2)

            def hook(point: FaultPoint, single: FailAt = single, second: FailAt = second) -> None:
                try:
                    single(point)
                finally:
                    second(point)

            outcome = workshop.writer(hook).write(order)
            check_honest(workshop, root, outcome, (k, k2))
            shutil.rmtree(root)
            runs += 1
    count("double errors in write", runs)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=ids)
def test_errors_that_dont_end_are_told_and_settled_later(scenario: Scenario, memory_path: Path) -> None:
    workshop = Workshop(scenario, memory_path)
    points = workshop.points_of_write()
    for k in range(1, len(points) + 1):
        root = workshop.fresh()
        outcome = workshop.writer(FailAt(k, is_sticky=True)).write(scenario.order(root))
        check_honest(workshop, root, outcome, k)
    count("lasting errors in write", len(points))


def check_honest(workshop: Workshop, root: Path, outcome: WriteOutcome, about: object) -> None:
    assert outcome.status != "applied", about
    assert outcome.findings == workshop.writer().inspect(workshop.scenario.order(root)), about
    if outcome.status == "failed_rolled_back":
        assert snapshot(root) == workshop.before, about
    workshop.check_settling(root, about)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=ids)
def test_an_error_at_any_point_of_settling_leaves_it_to_the_next_one(scenario: Scenario, memory_path: Path) -> None:
    sweep_errors_in_settle(scenario, memory_path, stride=STRIDE_OF_EIGHT)


@pytest.mark.soak
def test_every_error_in_settling_a_large_patch_leaves_it_to_the_next_one(memory_path: Path) -> None:
    sweep_errors_in_settle(EIGHT_FILES, memory_path, stride=1)


def sweep_errors_in_settle(scenario: Scenario, memory_path: Path, *, stride: int) -> None:
    workshop = Workshop(scenario, memory_path)
    runs = 0
    for k, crashed in workshop.deaths_in_write():
        recorder = Recorder()
        workshop.writer(recorder).settle(scenario.order(workshop.put(crashed)))
        for k2 in range(1, len(recorder.points) + 1):
            if scenario is EIGHT_FILES and (k + k2) % stride:
                continue
            root = workshop.put(crashed)
            with pytest.raises(SettleImpossibleError):
                workshop.writer(FailAt(k2, errno.ENOSPC)).settle(scenario.order(root))
            workshop.check_settling(root, (k, k2))
            shutil.rmtree(root)
            runs += 1
    count("errors in settle", runs)


@pytest.mark.parametrize("is_in_place", [True, False], ids=["in_place", "replaced"])
@pytest.mark.parametrize("scenario", [ONE_FILE, FOUR_FILES], ids=["one", "four"])
def test_an_edit_between_death_and_settling_is_never_destroyed(
    scenario: Scenario, memory_path: Path, *, is_in_place: bool
) -> None:
    workshop = Workshop(scenario, memory_path)
    edit = b"somebody's own words\n"
    statuses = set()
    for k, crashed in workshop.deaths_in_write():
        for edited in scenario.targets:
            root = workshop.put(crashed)
            path = root / edited
            path.parent.mkdir(parents=True, exist_ok=True)
            if not is_in_place:
                path.unlink(missing_ok=True)
            path.write_bytes(edit)
            order = scenario.order(root)
            others = snapshot(root)
            outcome = workshop.writer().settle(order)
            assert path.read_bytes() == edit, (k, edited)
            assert {f.path: f.found for f in outcome.findings}[edited] == "foreign", (k, edited)
            found = {finding.found for finding in outcome.findings}
            assert outcome.status == ("failed_partial" if "after" in found else "unknown"), (k, edited)
            left = {name: seen for name, seen in snapshot(root).items() if not name.endswith(".tmp")}
            assert left.items() <= others.items(), (k, edited)
            assert not list(root.rglob("*.tmp")), (k, edited)
            assert workshop.writer().settle(order) == outcome
            statuses.add(outcome.status)
            count("foreign edits between death and settling", 1)
    assert statuses == ({"unknown"} if scenario is ONE_FILE else {"unknown", "failed_partial"})


def test_what_was_displaced_unchecked_at_death_is_put_back(memory_path: Path) -> None:
    runs = 0
    for k in range(1, 40):
        workshop = Workshop(ONE_FILE, memory_path / str(k))
        root = workshop.fresh()
        (root / "a.txt").write_bytes(b"edited after the plan\n")
        if not dies_at(k, "write", ONE_FILE, root):
            break
        outcome = workshop.writer().settle(ONE_FILE.order(root))
        assert snapshot(root) == {"a.txt": (b"edited after the plan\n", 0o644)}, k
        assert outcome.status == "unknown"
        runs += 1
    assert runs > 8
    count("deaths in a write that meets a conflict", runs)


def test_directories_that_an_undo_removes_may_be_removed_by_somebody_before_it_is_done(memory_path: Path) -> None:
    """Then the files in them are missing, not deleted by us; the rest stays as it is, and settling comes to an end."""
    workshop = Workshop(UNDO, memory_path)
    statuses = set()
    for k, tree in workshop.deaths_in_write():
        root = workshop.put(tree)
        shutil.rmtree(root / "n", ignore_errors=True)
        content = (root / "a.txt").read_bytes()
        outcome = workshop.writer().settle(UNDO.order(root))
        assert (root / "a.txt").read_bytes() == content, k
        assert outcome.status == ("unknown" if content == UNDO.files["a.txt"][0] else "applied"), k
        statuses.add(outcome.status)
    assert statuses == {"unknown", "applied"}


WRITERS_POINTS = {
    point for point in FaultPoint
    if point.value.split(".")[0] in {"directory", "temp", "install", "verify", "sweep", "undo"}
}


def test_every_fault_point_of_the_writer_was_hit_and_no_other() -> None:
    """Stands last in this file: the sweeps above must have run."""
    if not HIT_POINTS:
        pytest.skip("run the whole file: the sweeps fill in what was hit")
    # A conflict's own point is died at by the test above, which doesn't record names.
    assert HIT_POINTS | {FaultPoint.INSTALL_PUT_BACK} == WRITERS_POINTS
