"""A log of a million events is verified, told and folded in bounded memory, and shows how far it is (soak).

On a file and on PostgreSQL, where the same log is copied to. `EVENTS=N ./dev test -m soak -s` with this file's name
prints what each command took.
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from large_log import make_log

from support.postgres import PostgresServer

pytestmark = pytest.mark.soak

EVENTS = int(os.environ.get("EVENTS", "1000000"))
MEMORY_MB_MAX = 80
"""Of the whole process, Python and all that it imports included."""

MEASURED = """
import re, sys, time
from adapters.cli.main import run
code = run(sys.argv[1:])
with open("/proc/self/status") as status:  # getrusage would tell of the parent that was forked
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) // 1024
print(f"took {peak} MB {time.process_time():.1f} s", file=sys.stderr)
sys.exit(code)
"""


@dataclass(frozen=True)
class Store:
    """Where the log is, as the command line is told."""

    name: str
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)

    def call(self, *arguments: str) -> tuple[str, str]:
        """Run one command, its stderr a terminal; return what it printed, and what somebody there saw."""
        own, theirs = pty.openpty()
        seen = b""
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as printed, subprocess.Popen(
            [sys.executable, "-c", MEASURED, *arguments, "--data-dir", str(self.directory)], stdout=printed,
            stderr=theirs, env={**os.environ, **self.environment},
        ) as process:
            os.close(theirs)
            with suppress(OSError):  # a terminal ends with an error once the other side is closed
                while chunk := os.read(own, 4096):
                    seen += chunk
            os.close(own)
            process.wait()
            printed.seek(0)
            output = printed.read()
        told = seen.decode()
        assert process.returncode == 0, told
        took = re.search(r"took (\d+) MB ([\d.]+) s", told)
        assert took is not None, told
        seconds = time.monotonic() - started
        print(f"\n{self.name}: {' '.join(arguments)}: {seconds:.1f} s, {took[2]} s of processor time, {took[1]} MB")
        assert int(took[1]) <= MEMORY_MB_MAX, "memory grows with the log"
        return output, told


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = tmp_path_factory.mktemp("million")
    anyio.run(make_log, made / "codespace.db", EVENTS)
    yield Store("file", made)
    for each in made.iterdir():  # more than a gigabyte
        each.unlink()


@pytest.fixture(scope="module", params=["file", "postgres"])
def store(request: pytest.FixtureRequest, file: Store) -> Iterator[Store]:
    if request.param == "file":
        yield file
        return
    request.getfixturevalue("postgres")  # says whether one can be had
    server = PostgresServer(is_large=True)
    address = server.new_schema()
    file.call("store", "copy", address.url)
    yield Store("postgres", file.directory, {"CODESPACE_STORE": address.url})
    server.stop()


def test_verify_in_bounded_memory_with_a_bar(store: Store) -> None:
    printed, seen = store.call("verify", "--json")
    report = json.loads(printed)
    assert report["is_ok"]
    assert report["events"] >= EVENTS
    drawn = [int(each.replace(",", "")) for each in re.findall(r"\r *([\d,]+) of [\d,]+ ", seen)]
    assert len(drawn) > 5
    assert drawn == sorted(drawn)


def test_state_at_any_moment(store: Store) -> None:
    for moment in ("head", str(EVENTS // 2)):
        printed, seen = store.call("replay", "--at", moment, "--json")
        assert json.loads(printed)["operations"]["applied"] >= EVENTS // 7
        assert EVENTS < 1_000_000 or " of " in seen, "what is over soon needs no bar"


def test_the_timeline_from_any_position_and_through_a_filter_that_finds_nothing(store: Store) -> None:
    for after in (0, EVENTS // 2, EVENTS - 10):
        printed, _ = store.call("log", "--after", str(after), "--limit", "50")
        assert printed.split("\t")[0] == str(after + 1)
    printed, _ = store.call("log", "--after", "0", "--text", "nobody wrote this")
    assert printed == ""


def test_export_streams(store: Store) -> None:
    printed, _ = store.call("export", "--after", str(EVENTS - 1_000))
    assert len(printed.splitlines()) >= 1_000
