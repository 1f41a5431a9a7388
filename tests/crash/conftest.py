"""Prints what the crash sweeps ran: a sweep that silently ran nothing would look like one that found nothing."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.crash_faults import TOTALS, count
from support.memory import MEMORY


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Give what one of several workers ran to the process that prints it."""
    getattr(session.config, "workeroutput", {})["crash sweeps"] = TOTALS


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for name, runs in getattr(node, "workeroutput", {}).get("crash sweeps", {}).items():
        count(name, runs)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TOTALS:
        terminalreporter.section("crash sweeps")
        for name, runs in sorted(TOTALS.items()):
            terminalreporter.write_line(f"{runs:7d}  {name}")
        terminalreporter.write_line(f"{sum(TOTALS.values()):7d}  together")


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """Return a directory in memory where there is one: the death of a process leaves the same there as on a disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="codespace-es-") as directory:
        yield Path(directory)
