"""Failing system calls, injected by strace into a real writer: no fault point of ours decides where it hurts."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from adapters.patch_writer.writer import ExchangePatchWriter
from support.crash_faults import count
from support.crash_orders import FOUR_FILES, Scenario, Target, snapshot

# Threads that other tests left idle don't matter: the children below take no lock that one of them could hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

CALLS = ["fsync", "renameat2", "write", "unlinkat", "fchmod", "openat2", "mkdirat"]
HITS_MAX = 40
MODE_CHANGE = Scenario("mode", {"tool": (b"tool", 0o644)}, {"tool": Target(b"tool", mode=0o755)})


@pytest.fixture(autouse=True)
def strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("SKIPPED SYSTEM CALL FAULTS: strace isn't installed")


def write_with(injection: str, scenario: Scenario, root: Path) -> tuple[str, bool]:
    """Write `scenario` in a child under strace; return how it ended, and whether the injection took place."""
    report, log = root.with_suffix(".outcome"), root.with_suffix(".strace")
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        write_when_told(ready, scenario, root, report)
    os.close(ready)
    call = injection.split(":", maxsplit=1)[0]
    tracer = subprocess.Popen(
        ["strace", "-f", "-q", "-o", log, "-p", str(child), "-e", f"trace={call}", "-e", f"inject={injection}"],
        stderr=subprocess.PIPE,
    )
    wait_until_traced(child, tracer)
    os.write(go, b"!")
    os.close(go)
    _, status = os.waitpid(child, 0)
    _, errors = tracer.communicate(timeout=10)
    code = os.waitstatus_to_exitcode(status)
    is_injected = "(INJECTED)" in log.read_text() or code == -signal.SIGKILL
    assert code in {0, -signal.SIGKILL}, (injection, code, errors)
    return report.read_text() if code == 0 else "killed", is_injected


def write_when_told(ready: int, scenario: Scenario, root: Path, report: Path) -> None:
    try:
        order = scenario.order(root)
        os.read(ready, 1)
        outcome = ExchangePatchWriter().write(order)
        # Not by a call that may be failing: the report is made where nothing is injected any more.
        descriptor = os.open(report, os.O_WRONLY | os.O_CREAT)
        for _ in range(2):
            try:
                os.pwrite(descriptor, outcome.status.encode(), 0)
                break
            except OSError:
                continue
    except BaseException:
        os._exit(9)
    os._exit(0)


def wait_until_traced(child: int, tracer: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        match = re.search(r"TracerPid:\t(\d+)", Path(f"/proc/{child}/status").read_text())
        if match is not None and match.group(1) != "0":
            return
        if tracer.poll() is not None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.skip("SKIPPED SYSTEM CALL FAULTS: strace can't attach here")
        time.sleep(0.001)
    raise AssertionError("strace never attached")


@pytest.mark.parametrize("effect", ["error=EIO", "error=ENOSPC", "signal=SIGKILL"])
@pytest.mark.parametrize("call", CALLS)
def test_a_failing_system_call_is_undone_and_told(call: str, effect: str, memory_path: Path) -> None:
    after = FOUR_FILES.expected_after(memory_path / "after")
    for k in range(1, HITS_MAX):
        root = memory_path / f"tree{k}"
        FOUR_FILES.build(root)
        before = snapshot(root)
        status, is_injected = write_with(f"{call}:{effect}:when={k}", FOUR_FILES, root)
        if not is_injected:
            assert (status, snapshot(root)) == ("applied", after), k
            break
        count("failing system calls", 1)
        if status == "killed":
            status = ExchangePatchWriter().settle(FOUR_FILES.order(root)).status
            assert status in {"failed_rolled_back", "applied"}, k
        else:
            assert status == "failed_rolled_back", k
        assert snapshot(root) == (after if status == "applied" else before), (k, status)
    assert k > 1, "nothing was injected"


def test_a_failing_mode_change_is_told(memory_path: Path) -> None:
    root = memory_path / "tree"
    MODE_CHANGE.build(root)
    before = snapshot(root)
    assert write_with("fchmod:error=EPERM:when=1", MODE_CHANGE, root) == ("failed_rolled_back", True)
    assert snapshot(root) == before


@pytest.mark.parametrize("error", ["EINVAL", "ENOSYS"])
def test_a_kernel_or_file_system_without_exchange_is_served_by_links(error: str, memory_path: Path) -> None:
    root = memory_path / "tree"
    FOUR_FILES.build(root)
    after = FOUR_FILES.expected_after(memory_path / "after")
    assert write_with(f"renameat2:error={error}", FOUR_FILES, root) == ("applied", True)
    assert snapshot(root) == after
