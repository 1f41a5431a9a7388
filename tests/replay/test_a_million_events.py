"""A log of a million events is verified, told and folded in bounded memory, and shows how far it is (soak)."""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from large_log import make_log

pytestmark = pytest.mark.soak

EVENTS = int(os.environ.get("EVENTS", "1000000"))
MEMORY_MB_MAX = 80
"""Of the whole process, Python and all that it imports included."""

MEASURED = """
import re, sys
from adapters.cli.main import run
code = run(sys.argv[1:])
with open("/proc/self/status") as status:  # getrusage would tell of the parent that was forked
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) // 1024, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("million")
    anyio.run(make_log, made / "codespace.db", EVENTS)
    yield made
    for file in made.iterdir():  # more than a gigabyte
        file.unlink()


def call(directory: Path, *arguments: str) -> tuple[str, str]:
    """Run one command, its stderr a terminal; return what it printed, and what somebody there saw."""
    own, theirs = pty.openpty()
    seen = b""
    with tempfile.TemporaryFile("w+") as printed, subprocess.Popen(
        [sys.executable, "-c", MEASURED, *arguments, "--data-dir", str(directory)], stdout=printed, stderr=theirs,
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
    assert int(re.findall(r"\d+", told)[-1]) <= MEMORY_MB_MAX, "memory grows with the log"
    return output, told


def test_verify_in_bounded_memory_with_a_bar(directory: Path) -> None:
    printed, seen = call(directory, "verify", "--json")
    report = json.loads(printed)
    assert report["is_ok"]
    assert report["events"] >= EVENTS
    drawn = [int(each.replace(",", "")) for each in re.findall(r"\r *([\d,]+) of [\d,]+ ", seen)]
    assert len(drawn) > 5
    assert drawn == sorted(drawn)


def test_state_at_any_moment(directory: Path) -> None:
    for moment in ("head", str(EVENTS // 2)):
        printed, seen = call(directory, "replay", "--at", moment, "--json")
        assert json.loads(printed)["operations"]["applied"] >= EVENTS // 7
        assert " of " in seen


def test_the_timeline_from_any_position_and_through_a_filter_that_finds_nothing(directory: Path) -> None:
    for after in (0, EVENTS // 2, EVENTS - 10):
        printed, _ = call(directory, "log", "--after", str(after), "--limit", "50")
        assert printed.split("\t")[0] == str(after + 1)
    printed, _ = call(directory, "log", "--after", "0", "--text", "nobody wrote this")
    assert printed == ""


def test_export_streams(directory: Path) -> None:
    printed, _ = call(directory, "export", "--after", str(EVENTS - 1_000))
    assert len(printed.splitlines()) >= 1_000
