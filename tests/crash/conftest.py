"""Prints what the crash sweeps ran: a sweep that silently ran nothing would look like one that found nothing."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.crash_faults import TOTALS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TOTALS:
        terminalreporter.section("crash sweeps")
        for name, runs in sorted(TOTALS.items()):
            terminalreporter.write_line(f"{runs:7d}  {name}")
        terminalreporter.write_line(f"{sum(TOTALS.values()):7d}  together")


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """Return a directory in memory where there is one: the death of a process leaves the same there as on a disk."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="codespace-es-") as directory:
        yield Path(directory)
