"""Fixtures and settings that every test folder shares."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from support.effort import EFFORT
from support.postgres import PostgresMissingError, PostgresServer

settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("dev", deadline=None, print_blob=True,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("deep", settings.get_profile("dev"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell without job control starts what is in its background with signals ignored, and servers would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

LONGEST = ("crash/test_server_under_fire.py", "crash/test_patch_writer_crash.py", "crash/test_patch_story_crash.py")
"""The files that take longest, which begin first, so that no worker is left alone with one of them at the end."""


gc.disable()  # what is imported and collected stays: looking through it again and again is a third of the time it takes


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later search for garbage."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not str(item.path).endswith(LONGEST))
    for item in items:
        if item.get_closest_marker("soak") or EFFORT > 1:
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on the backend that the product runs on."""
    return "asyncio"


_missing_postgres: list[str] = []


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start a real PostgreSQL for the session; without one, tests that need it are skipped, and the end says so."""
    try:
        server = PostgresServer()
    except PostgresMissingError as error:
        _missing_postgres.append(str(error))
        pytest.skip(f"no PostgreSQL: {error}")
    try:
        yield server
    finally:
        server.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it where nobody overlooks it: what runs on PostgreSQL was not tested."""
    for reason in _missing_postgres[:1]:
        terminalreporter.write_line(f"NOT TESTED: everything on PostgreSQL, since {reason}", red=True, bold=True)
