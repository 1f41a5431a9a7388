"""Power cuts on a real ext4: the image as the disk had it at every fault point, its journal replayed, then settled.

A cut is a copy of the backing file of a loop device, so what was never flushed is really not there. That the sweep can
fail is shown by taking one kind of flush away.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.patch_writer import scene, temps
from adapters.patch_writer.writer import ExchangePatchWriter
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.patch_writer import WriteOutcome
from support.crash_faults import count
from support.crash_orders import FOUR_FILES, ONE_FILE, Scenario, snapshot
from support.loop_disk import flush, mount_point, run

IMAGE_BYTES = 8 * 1024 * 1024


@contextmanager
def mounted(image: Path, directory: Path) -> Iterator[Path]:
    with mount_point(directory):
        run("mount", "-o", "loop,noatime", image, directory)
        try:
            yield directory
        finally:
            run("umount", directory)


@pytest.fixture
def image(memory_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("SKIPPED POWER CUTS: only root can mount an image")
    path = memory_path / "disk.img"
    try:
        path.touch()
        os.truncate(path, IMAGE_BYTES)
        run("mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "^has_journal", path)
        run("tune2fs", "-j", "-J", "size=1", path)
        with mounted(path, memory_path / "probe"):
            pass
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"SKIPPED POWER CUTS: no loop mount here ({error})")
    return path


class Cuts:
    """The images of one write: one at each fault point, and one right after the answer."""

    def __init__(self, scenario: Scenario, image: Path, *, edit: Callable[[Path], None] | None = None) -> None:
        self._directory = image.parent
        self.images: list[Path] = []
        self.scenario = scenario
        with mounted(image, self._directory / "disk") as disk:
            scenario.build(disk / "tree")
            if edit is not None:
                edit(disk / "tree")
            self.at_begin = snapshot(disk / "tree")
            flush(disk)

            def cut(_point: FaultPoint) -> None:
                copy = self._directory / f"cut{len(self.images)}.img"
                shutil.copyfile(image, copy)
                self.images.append(copy)

            self.answer: WriteOutcome = ExchangePatchWriter(cut).write(scenario.order(disk / "tree"))
            cut(FaultPoint.PATCH_WRITTEN)
        self.after = scenario.expected_after(self._directory / "after")

    def wrong(self) -> list[str]:
        """Settle what every cut left; return what is neither all before nor all after, or breaks the answer."""
        wrong: list[str] = []
        for number, image in enumerate(self.images):
            with mounted(image, self._directory / "cut") as disk:
                outcome = ExchangePatchWriter().settle(self.scenario.order(disk / "tree"))
                found = snapshot(disk / "tree")
                expected = self.after if outcome.status == "applied" else self.at_begin
                if found != expected or outcome.status not in {"applied", "failed_rolled_back"}:
                    wrong.append(f"cut {number}: {outcome.status}")
                elif image is self.images[-1] and outcome.status != self.answer.status:
                    wrong.append(f"answered {self.answer.status}, is {outcome.status}")
            image.unlink()
        return wrong


@pytest.mark.parametrize("scenario", [ONE_FILE, FOUR_FILES], ids=["one", "four"])
def test_a_power_cut_at_any_point_leaves_all_or_nothing_after_settling(scenario: Scenario, image: Path) -> None:
    cuts = Cuts(scenario, image)
    count("power cuts on ext4", len(cuts.images))
    assert cuts.answer.status == "applied"
    assert cuts.wrong() == []


def test_a_rolled_back_patch_stays_rolled_back_after_a_power_cut(image: Path) -> None:
    """The last row conflicts, so that all the others were written and undone."""

    def occupy(root: Path) -> None:
        (root / "src/to.py").write_bytes(b"mine")

    cuts = Cuts(FOUR_FILES, image, edit=occupy)
    count("power cuts on ext4", 1)
    assert cuts.answer.status == "failed_rolled_back"
    last = cuts.images[-1]
    with mounted(last, last.parent / "cut") as disk:
        assert snapshot(disk / "tree") == cuts.at_begin


def test_without_the_flush_of_files_a_power_cut_is_noticed(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the sweep can fail: nothing else flushes what the temporary files hold."""
    monkeypatch.setattr(temps, "sync_file", lambda descriptor: None)
    monkeypatch.setattr(temps, "start_writeout", lambda descriptor: None)
    assert Cuts(FOUR_FILES, image).wrong() != []


def test_without_the_flush_of_directories_a_power_cut_is_noticed(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the sweep can fail: what was answered must be on the disk."""
    monkeypatch.setattr(scene, "sync_directory", lambda descriptor: None)
    assert Cuts(FOUR_FILES, image).wrong() != []
