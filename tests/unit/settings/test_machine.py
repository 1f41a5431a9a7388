"""The machine's and the process' identity, the clocks and the ids."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from adapters.clock_and_ids import RandomIds, SystemClock
from adapters.machine import machine_id, new_file_mode, this_process


def test_the_system_s_machine_id_is_used_and_never_shown(tmp_path: Path) -> None:
    source = tmp_path / "machine-id"
    source.write_text("0123456789abcdef0123456789abcdef\n", encoding="ascii")
    told = machine_id(tmp_path / "state", RandomIds(), sources=[tmp_path / "missing", source])
    assert told == machine_id(tmp_path / "other", RandomIds(), sources=[source])
    assert told != "0123456789abcdef0123456789abcdef"
    assert len(told) == 32
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("content", [b"", b"uninitialized\n", b"\xff\xfe", None])
def test_without_a_machine_id_one_is_made_once_and_kept(tmp_path: Path, content: bytes | None) -> None:
    source = tmp_path / "machine-id"
    if content is not None:
        source.write_bytes(content)
    state = tmp_path / "state"
    told = machine_id(state, RandomIds(), sources=[source])
    assert told == machine_id(state, RandomIds(), sources=[source])
    assert [path.name for path in state.iterdir()] == ["machine-id"]


def test_servers_that_start_at_once_agree_on_the_id_that_is_made(tmp_path: Path) -> None:
    told: list[str] = []
    together = threading.Barrier(8)

    def start() -> None:
        together.wait()
        told.append(machine_id(tmp_path, RandomIds(), sources=[]))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 8
    assert len(set(told)) == 1


def test_a_kept_id_that_is_damaged_is_refused_rather_than_replaced(tmp_path: Path) -> None:
    (tmp_path / "machine-id").write_text("nonsense", encoding="ascii")
    with pytest.raises(OSError, match="doesn't hold"):
        machine_id(tmp_path, RandomIds(), sources=[])


def test_a_process_is_told_from_another_by_what_the_kernel_says() -> None:
    process = this_process()
    code = "from adapters.machine import this_process as p; x = p(); print(x.pid, x.started_ticks, x.boot_id)"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert process.pid == os.getpid()
    assert process.started_ticks <= int(other[1])
    assert (str(process.pid), process.boot_id) != (other[0], "")
    assert process.boot_id == other[2]
    assert process.pid_namespace == os.stat("/proc/self/ns/pid").st_ino


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0, 0o666), (0o002, 0o664)])
def test_a_new_file_s_mode_follows_the_umask_and_leaves_it(umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        assert new_file_mode() == mode
        assert os.umask(umask) == umask
    finally:
        os.umask(before)


def test_the_clock_is_aware_and_the_other_one_never_runs_backwards() -> None:
    clock = SystemClock()
    offset = clock.now().utcoffset()
    assert offset is not None
    assert not offset
    assert clock.monotonic() <= clock.monotonic()
    assert RandomIds().uuid() != RandomIds().uuid()
