"""Prints what the crash sweeps ran: a sweep that silently ran nothing would look like one that found nothing."""

import pytest
from support.crash_faults import TOTALS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TOTALS:
        terminalreporter.section("crash sweeps")
        for name, runs in sorted(TOTALS.items()):
            terminalreporter.write_line(f"{runs:7d}  {name}")
        terminalreporter.write_line(f"{sum(TOTALS.values()):7d}  together")
