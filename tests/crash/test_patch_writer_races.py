"""Others at work in the same tree: an editor that never stops, a parent turned into a link, a disk that fills up."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from adapters.patch_writer.writer import ExchangePatchWriter
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.patch_writer import WriteOutcome
from support.crash_faults import count
from support.crash_orders import FOUR_FILES, Scenario, Target, snapshot

# Threads that other tests left idle don't matter: the children below take no lock that one of them could hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

ROUNDS = 300
ROUNDS_OF_SOAK = 3_000


@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(ROUNDS_OF_SOAK, marks=pytest.mark.soak)], ids=["short", "long"]
)
def test_an_editor_that_replaces_files_in_a_loop_loses_nothing(memory_path: Path, rounds: int) -> None:
    names = ["a", "b", "c"]
    root = memory_path / "tree"
    Scenario("race", dict.fromkeys(names, (b"edit 0", 420)), {}).build(root)
    statuses: set[str] = set()
    points: list[FaultPoint] = []
    with racing_editor(root, names, memory_path) as stop:
        applied = dict(write_against_an_editor(root, names, rounds, statuses, points))
        records = stop()
    assert {"applied", "failed_rolled_back"} <= statuses <= {"applied", "failed_rolled_back", "failed_partial"}
    assert sum(len(record) for record in records.values()) > 100, "the editor never ran"
    stale = 0
    for name in names:
        last = "edit 0"
        for edit, displaced in records[name]:
            stale += is_stale(name, displaced, last, applied)
            last = edit
        assert not is_stale(name, (root / name).read_text(), last, applied), "nobody is at work any more"
    assert stale <= sum(pair == (FaultPoint.INSTALL_PUT_BACK,) * 2 for pair in pairwise(points))
    assert not list(root.glob("*.tmp"))
    count("patches against a racing editor", rounds)


def write_against_an_editor(
    root: Path, names: list[str], rounds: int, statuses: set[str], points: list[FaultPoint]
) -> Iterator[tuple[str, str]]:
    """Yield, for each file of each applied patch, the written content and the one it replaced."""
    for number in range(rounds):
        present = {name: (root / name).read_bytes() for name in names}
        targets = {name: Target(b"patch %d" % number) for name in names}
        scenario = Scenario("race", {name: (content, 0o644) for name, content in present.items()}, targets)
        outcome = ExchangePatchWriter(points.append).write(scenario.order(root))
        statuses.add(outcome.status)
        for name in names:
            # A partial failure may leave a patched file under an edit made right after it, which is no loss.
            if outcome.status == "applied":
                yield f"{name} patch {number}", present[name].decode()


def is_stale(name: str, displaced: str, last: str, applied: dict[str, str]) -> bool:
    """Return whether `displaced`, met where `last` was written, is an older edit, or a patch that replaced one.

    At rest that is a loss. On the way it may be met where what a swap displaced is put back: if newer edits came since,
    the older one stands there until the newest is put back in its turn, which takes a second turn each time. Who
    writes at that moment replaces them all.
    """
    content = displaced
    while f"{name} {content}" in applied:
        content = applied[f"{name} {content}"]
    return content.startswith("edit") and content != last


@contextlib.contextmanager
def racing_editor(root: Path, names: list[str], directory: Path):
    """Run a process that exchanges numbered edits into the files, and records what each displaced."""
    child = os.fork()
    report = directory / "report.json"
    if child == 0:
        edit_for_ever(root, names, report)
    alive = True

    def stop() -> dict[str, list[tuple[str, str]]]:
        nonlocal alive
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        alive = False
        return {name: [tuple(pair) for pair in record] for name, record in json.loads(report.read_text()).items()}

    try:
        yield stop
    finally:
        if alive:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def edit_for_ever(root: Path, names: list[str], report: Path) -> None:
    stopping = False

    def on_term(*_: object) -> None:
        nonlocal stopping
        stopping = True

    try:
        signal.signal(signal.SIGTERM, on_term)
        exchange = ctypes.CDLL(None).renameat2
        record: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
        number = 0
        while not stopping:
            number += 1
            name = names[number % len(names)]
            edit = f"edit {number}"
            draft = root / f"{name}.draft"
            draft.write_text(edit)
            if exchange(-100, os.fsencode(draft), -100, os.fsencode(root / name), 2) == 0:
                record[name].append((edit, draft.read_text()))
            signal.sigtimedwait([], 0.0003)
        report.write_text(json.dumps(record))
    finally:
        os._exit(0)


def test_a_parent_that_turns_into_a_link_leads_nothing_outside(memory_path: Path) -> None:
    root, outside = memory_path / "tree", memory_path / "outside"
    files = {"d/a": (b"a", 0o644), "d/b": (b"b", 0o644)}
    Scenario("inside", files, {}).build(root)
    Scenario("outside", {"a": (b"a", 0o644), "b": (b"b", 0o644)}, {}).build(outside)
    untouched = snapshot(outside)
    stopping = threading.Event()

    def swap_for_ever() -> None:
        while not stopping.is_set():
            (root / "d").rename(root / "real")
            (root / "d").symlink_to(outside)
            (root / "d").unlink()
            (root / "real").rename(root / "d")

    attacker = threading.Thread(target=swap_for_ever)
    attacker.start()
    outcomes: list[WriteOutcome] = []
    try:
        present = b"a"
        for number in range(ROUNDS):
            files = {"d/a": (present, 0o644), "d/b": (b"b", 0o644)}
            targets = {"d/a": Target(b"a%d" % number), f"d/new{number}": Target(b"new")}
            outcome = ExchangePatchWriter().write(Scenario("race", files, targets).order(root))
            outcomes.append(outcome)
            assert snapshot(outside) == untouched, outcome
            if outcome.status == "applied":
                present = b"a%d" % number
    finally:
        stopping.set()
        attacker.join()
    assert snapshot(outside) == untouched
    assert not list(memory_path.rglob("*.tmp"))
    assert (root / "d/a").read_bytes() == present
    assert len({outcome.status for outcome in outcomes}) > 1, "no patch met a swapped parent, or none got through"
    count("patches under a swapped parent", len(outcomes))


@pytest.fixture
def small_disk(memory_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("SKIPPED FULL DISK: only root can mount a small file system")
    mount_point = memory_path / "small"
    mount_point.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", mount_point], check=False, capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("SKIPPED FULL DISK: no mount here")
    yield mount_point
    subprocess.run(["umount", mount_point], check=True)


def test_a_disk_that_fills_up_at_any_size_undoes_everything(small_disk: Path) -> None:
    statuses = []
    for kilobytes in range(4, 260, 12):
        files = {"old": (b"o" * 8192, 0o644), "gone": (b"g" * 4096, 0o644)}
        targets = {
            "old": Target(b"n" * 8192), "gone": Target(None), "d/big": Target(b"B" * kilobytes * 1024),
            "d/last": Target(b"l" * 4096),
        }
        scenario = Scenario("full", files, targets, made_directories=("d",))
        root = small_disk / f"tree{kilobytes}"
        scenario.build(root)
        before = snapshot(root)
        outcome = ExchangePatchWriter().write(scenario.order(root))
        statuses.append(outcome.status)
        if outcome.status != "applied":
            assert outcome.fault is not None
            assert (outcome.status, outcome.fault.code) == ("failed_rolled_back", "FILE_OPERATION_FAILED")
            assert "No space left on device" in outcome.fault.message
            assert outcome.fault.detail in ({"path": "d/big"}, {"path": "d/last"})
            assert snapshot(root) == before
        subprocess.run(["rm", "-rf", root], check=True)
        count("patches on a full disk", 1)
    assert set(statuses) == {"applied", "failed_rolled_back"}


def test_a_write_that_comes_back_short_is_continued(memory_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, bytes(content[:7])))
    FOUR_FILES.build(memory_path / "tree")
    outcome = ExchangePatchWriter().write(FOUR_FILES.order(memory_path / "tree"))
    monkeypatch.undo()
    assert outcome.status == "applied"
    assert snapshot(memory_path / "tree") == FOUR_FILES.expected_after(memory_path / "after")
